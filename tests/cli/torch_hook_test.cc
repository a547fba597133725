// profile --torch-ops: what PyTorch does has names, and the script is what it is without us.
// PyTorch is a package that looks like it (tests/mock_torch), new and old.
#include <set>

#include <catch2/catch.hpp>

#include "tests/support/capture_run.h"
#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::Json;
using test::Ran;

constexpr const char* kModel = R"(
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
        self.head = torch.nn.Linear(8, 2)
        self.fails = False
    def forward(self, x):
        x = self.body(x)
        if self.fails: raise ValueError("as the script wants")
        return self.head(x)
net = Net().to("cuda")
optimizer = torch.optim.SGD(net.parameters())
def train(steps):
    for _ in range(steps):
        net(1).backward()
        optimizer.step()
)";

struct Hooked {
  Ran ran;
  fs::path folder;

  trace::Trace trace() const { return test::read_captures(folder); }
};

using Variables = std::map<std::string, std::string>;

/// Runs a script under the hook.
Hooked run(const std::string& script, Variables variables = {}) {
  const fs::path scratch = test::scratch_folder();
  variables.try_emplace("PYTHONPATH", test::source_file("tests/mock_torch").string());
  variables["PYTHONDONTWRITEBYTECODE"] = "1";
  const std::string file = test::write_scratch("script.py", script).string();
  Ran ran = test::RunningRehearse({"profile", "--torch-ops", "-o", (scratch / "r").string(),
                                   "--format", "json", "--", "python3", file},
                                  std::move(variables))
                .wait();
  return {.ran = std::move(ran), .folder = scratch / "r"};
}

/// The variables by which the mock GPU is found.
Variables with_gpu() {
  return {{"LD_LIBRARY_PATH", test::capture_program("mocks").string()},
          {"REHEARSE_CUPTI", test::capture_program("mocks/libcupti.so.13").string()}};
}

std::vector<std::string> names_of(const trace::Trace& trace) {
  std::vector<std::string> names;
  for (const trace::Rank& rank : trace.ranks)
    for (const trace::HostOp& op : rank.host_ops)
      if (op.kind == trace::HostKind::kAnnotation) names.emplace_back(trace.names[op.name]);
  std::sort(names.begin(), names.end());
  return names;
}

std::size_t count(const trace::Trace& trace, const std::string& name) {
  const std::vector<std::string> names = names_of(trace);
  return static_cast<std::size_t>(std::count(names.begin(), names.end(), name));
}

TEST_CASE(
    "modules and steps of a script have names, with and without a GPU, in new and old PyTorch") {
  for (const bool gpu : {false, true})
    for (const bool old : {false, true}) {
      Variables variables = gpu ? with_gpu() : Variables();
      if (old) variables["MOCK_TORCH_OLD"] = "1";
      const Hooked hooked = run(std::string(kModel) +
                                    "train(3)\n"
                                    "print(torch.autograd.profiler.emit_nvtx.entered)\n",
                                variables);
      INFO(hooked.ran.errors << " gpu " << gpu << " old " << old);
      REQUIRE(hooked.ran.code == 0);
      const trace::Trace trace = hooked.trace();
      for (const char* name : {"Net", "body", "body.0", "body.1", "head"})
        CHECK(count(trace, name) == 3);
      for (const char* name : {"step 0", "step 1", "step 2", "after the last step"})
        CHECK(count(trace, name) == 1);
      CHECK(count(trace, "step 3") == 0);  // what was open at the end was no step
      CHECK(test::problems(trace, trace::ProblemKind::kUnbalancedRange) == 0);
      // Operators are PyTorch's to name, and only where CUDA runs.
      CHECK(hooked.ran.errors.starts_with(gpu ? "1\n" : "0\n"));
      CHECK((hooked.ran.errors.find("operators have none") != std::string::npos) == !gpu);
      if (gpu) CHECK(Json::parse(hooked.ran.out)["kernels"] > 0);
    }
}

TEST_CASE("a forward pass that fails leaves no range open, and the script sees its exception") {
  for (const char* old : {"", "1"}) {
    const Hooked hooked = run(std::string(kModel) +
                                  "net.fails = True\n"
                                  "for _ in range(2):\n"
                                  "    try: net(1)\n"
                                  "    except ValueError as error: print('caught', error)\n"
                                  "net.fails = False\n"
                                  "train(2)\n",
                              {{"MOCK_TORCH_OLD", old}});
    INFO(hooked.ran.errors);
    CHECK(hooked.ran.code == 0);
    CHECK(hooked.ran.errors.find("caught as the script wants\ncaught") != std::string::npos);
    const trace::Trace trace = hooked.trace();
    CHECK(count(trace, "Net") == 4);
    CHECK(count(trace, "head") == 2);
    CHECK(test::problems(trace, trace::ProblemKind::kUnbalancedRange) == 0);
  }
  const Hooked ends = run(std::string(kModel) + "net.fails = True\nnet(1)\n");
  CHECK(ends.ran.code == 1);
  CHECK(ends.ran.errors.find("ValueError: as the script wants") != std::string::npos);
}

TEST_CASE("threads have ranges of their own, and one optimizer counts the steps") {
  const Hooked hooked = run(std::string(kModel) + R"(
import threading
other = torch.optim.Adam(net.parameters())
def work():
    for _ in range(5):
        net(1)
        other.step()
train(1)
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
other.step()
train(2)
)");
  INFO(hooked.ran.errors);
  REQUIRE(hooked.ran.code == 0);
  const trace::Trace trace = hooked.trace();
  CHECK(count(trace, "Net") == 1 + 4 * 5 + 2);
  CHECK(count(trace, "step 2") == 1);
  CHECK(count(trace, "step 3") == 0);
  CHECK(test::problems(trace, trace::ProblemKind::kUnbalancedRange) == 0);
}

TEST_CASE("a script may start a profiler of its own") {
  const Hooked hooked = run(std::string(kModel) + R"(
train(1)
with torch.autograd.profiler.profile():  # a thread has one: without room for it this raises
    train(1)
print("profiled")
)",
                            with_gpu());
  INFO(hooked.ran.errors);
  CHECK(hooked.ran.code == 0);
  CHECK(hooked.ran.errors.find("a profiler of its own") != std::string::npos);
  CHECK(hooked.ran.errors.find("profiled\n") != std::string::npos);
}

TEST_CASE("naming of operators does not begin during the capture of a CUDA graph") {
  const Hooked hooked = run(std::string(kModel) + R"(
entered = torch.autograd.profiler.emit_nvtx
with torch.cuda.graph(torch.cuda.CUDAGraph()):
    net(1)
print(entered.entered)
net(1)
print(entered.entered)
)",
                            with_gpu());
  INFO(hooked.ran.errors);
  CHECK(hooked.ran.errors == "0\n1\n");
}

TEST_CASE("child processes of the script are hooked, and forked ones count from zero") {
  const Hooked started =
      run("import subprocess, sys\n"
          "subprocess.run([sys.executable, '-c', '''" +
          std::string(kModel) + "train(2)'''], check=True)\n");
  INFO(started.ran.errors);
  CHECK(started.ran.code == 0);
  CHECK(count(started.trace(), "step 1") == 1);

  const Hooked forked = run(std::string(kModel) + R"(
import os
train(2)
child = os.fork()
if child == 0:
    train(2)
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
train(1)
)");
  INFO(forked.ran.errors);
  CHECK(forked.ran.code == 0);
  const trace::Trace trace = forked.trace();
  CHECK(trace.ranks.size() == 2);
  CHECK(count(trace, "step 0") == 2);  // of the child from the end of its first step
  CHECK(count(trace, "step 1") == 1);
  CHECK(count(trace, "step 2") == 1);
  CHECK(count(trace, "step 3") == 0);
}

TEST_CASE("without PyTorch the hook does nothing, and a script's failures stay its own") {
  const Hooked plain = run("import sys\nprint('ran')\nsys.exit(7)\n");
  CHECK(plain.ran.code == 7);
  CHECK(plain.ran.errors == "ran\n");
  const Hooked absent =
      run("try:\n    import torch\nexcept ImportError as e: print('no', e.name)\n"
          "import importlib.util\nprint(importlib.util.find_spec('torch'))\n",
          {{"PYTHONPATH", ""}});
  INFO(absent.ran.errors);
  if (absent.ran.errors.find("None") != std::string::npos)  // where PyTorch is not installed
    CHECK(absent.ran.errors == "no torch\nNone\n");

  const fs::path broken = test::write_scratch("torch.py", "raise OSError('no libtorch')\n");
  const Hooked raises =
      run("for _ in range(2):\n    try:\n        import torch\n"
          "    except OSError as e: print(e)\n",
          {{"PYTHONPATH", broken.parent_path().string()}});
  CHECK(raises.ran.code == 0);
  CHECK(raises.ran.errors == "no libtorch\nno libtorch\n");
}

TEST_CASE("an unknown torch module is one line on stderr") {
  const fs::path other = test::write_scratch("torch.py", "answer = 42\n");
  const Hooked hooked =
      run("import torch\nprint(torch.answer, torch.__spec__.loader.exec_module.__name__)\n",
          {{"PYTHONPATH", other.parent_path().string()}});
  CHECK(hooked.ran.code == 0);
  CHECK(hooked.ran.errors.starts_with("rehearse: PyTorch hook: AttributeError: "));
  CHECK(hooked.ran.errors.ends_with("\n42 exec_module\n"));
  CHECK(std::count(hooked.ran.errors.begin(), hooked.ran.errors.end(), '\n') == 2);
}

TEST_CASE("a failure in the hook is one line, once, and the script continues") {
  const Hooked no_library = run("import os\nos.environ['NVTX_INJECTION64_PATH'] = '/no/such.so'\n" +
                                std::string(kModel) + "train(2)\nprint('trained')\n");
  INFO(no_library.ran.errors);
  CHECK(no_library.ran.code == 0);
  CHECK(no_library.ran.errors.starts_with("rehearse: PyTorch hook: OSError: /no/such.so"));
  CHECK(no_library.ran.errors.ends_with("\ntrained\n"));

  const Hooked odd = run(std::string(kModel) + R"(
class Odd(Net):
    def named_modules(self, prefix=""):
        raise RuntimeError("no names")
net = Odd()
train(3)
print("trained")
)");
  INFO(odd.ran.errors);
  CHECK(odd.ran.code == 0);
  CHECK(odd.ran.errors.starts_with("rehearse: PyTorch hook: RuntimeError: no names\ntrained\n"));
  CHECK(count(odd.trace(), "step 2") == 1);
  CHECK(test::problems(odd.trace(), trace::ProblemKind::kUnbalancedRange) == 0);
}

TEST_CASE("an existing sitecustomize runs as usual") {
  const fs::path own = test::write_scratch("sitecustomize.py", "import builtins\nbuiltins.x = 3\n");
  const std::string torch = test::source_file("tests/mock_torch").string();
  const Hooked chained = run("print(x)\n" + std::string(kModel) + "train(1)\n",
                             {{"PYTHONPATH", own.parent_path().string() + ":" + torch}});
  INFO(chained.ran.errors);
  CHECK(chained.ran.code == 0);
  CHECK(chained.ran.errors.starts_with("3\n"));
  CHECK(count(chained.trace(), "step 0") == 1);

  const fs::path bad = test::write_scratch("sitecustomize.py", "1 / 0\n");
  const Hooked failing =
      run("print('ran')\n", {{"PYTHONPATH", bad.parent_path().string() + ":" + torch}});
  CHECK(failing.ran.code == 0);
  CHECK(failing.ran.errors.find("ZeroDivisionError") != std::string::npos);  // as Python says it
  CHECK(failing.ran.errors.find("ran\n") != std::string::npos);
}

}  // namespace
}  // namespace rehearse
