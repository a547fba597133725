// rehearse doctor: what this machine can do, and what to install for what it cannot.
#include <cstdlib>

#include <CLI/CLI.hpp>
#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/output/result.h"
#include "sim/base/installed.h"
#include "sim/base/text.h"
#include "sim/engine/simgrid.h"

namespace rehearse::cli {
namespace {

struct Check {
  std::string name;
  bool ok;
  std::string detail;
  std::string remedy;  ///< empty where nothing needs doing
};

/// A shared library to look at. Most of them only exist beside a GPU; none is made to be unloaded,
/// so it stays to the end.
class Library {
 public:
  explicit Library(std::initializer_list<const char*> names) {
    for (const char* name : names)
      if ((handle_ = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL))) {
        name_ = name;
        return;
      }
  }
  explicit operator bool() const { return handle_ != nullptr; }
  const char* name() const { return name_; }
  template <class Function>
  Function* find(const char* symbol) const {
    return handle_ ? reinterpret_cast<Function*>(::dlsym(handle_, symbol)) : nullptr;
  }

 private:
  void* handle_ = nullptr;
  const char* name_ = "";
};

/// "12.4" from the 12040 in which NVIDIA's libraries write versions.
std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

// The functions below have had these types since the first versions of their libraries.
constexpr int kSuccess = 0;

Check check_driver() {
  const Library cuda({"libcuda.so.1"});
  const auto init = cuda.find<int(unsigned)>("cuInit");
  const auto version = cuda.find<int(int*)>("cuDriverGetVersion");
  if (!init || !version)
    return {"driver", false, "libcuda.so.1 is not there", "install the driver of your NVIDIA GPU"};
  int number = 0;
  if (version(&number) != kSuccess || number == 0)
    return {"driver", false, "libcuda.so.1 is there, but no driver answers",
            "load the kernel module: nvidia-smi says what is wrong"};
  if (const int code = init(0); code != kSuccess)
    return {"driver", false,
            fmt::format("CUDA {} does not start (error {})", cuda_version(number), code),
            "nvidia-smi says what is wrong"};
  return {"driver", true, fmt::format("supports CUDA {}", cuda_version(number)), ""};
}

/// NVML, the devices it sees, and whether they are partitioned: three checks of one library.
std::vector<Check> check_devices() {
  const std::string remedy = "install the driver of your NVIDIA GPU";
  const Library nvml({"libnvidia-ml.so.1"});
  const auto init = nvml.find<int()>("nvmlInit_v2");
  const auto shutdown = nvml.find<int()>("nvmlShutdown");
  const auto count = nvml.find<int(unsigned*)>("nvmlDeviceGetCount_v2");
  const auto at = nvml.find<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
  const auto name = nvml.find<int(void*, char*, unsigned)>("nvmlDeviceGetName");
  const auto mig = nvml.find<int(void*, unsigned*, unsigned*)>("nvmlDeviceGetMigMode");
  std::vector<Check> checks;
  unsigned devices = 0;
  if (!init || !shutdown || !count || !at || !name) {
    checks.push_back({"NVML", false, "libnvidia-ml.so.1 is not there", remedy});
  } else if (const int code = init(); code != kSuccess) {
    checks.push_back({"NVML", false, fmt::format("does not start (error {})", code), remedy});
  } else {
    checks.push_back({"NVML", true, "answers", ""});
    count(&devices);
  }
  std::string names, partitioned;
  for (unsigned i = 0; i < devices; ++i) {
    void* device = nullptr;
    char text[128] = "";
    if (at(i, &device) != kSuccess || name(device, text, sizeof text) != kSuccess) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", text);
    unsigned current = 0, pending = 0;
    if (mig && mig(device, &current, &pending) == kSuccess)
      partitioned +=
          fmt::format("{}{}: {}", partitioned.empty() ? "" : ", ", i, current ? "on" : "off");
  }
  if (checks.back().ok) shutdown();
  if (devices == 0)
    checks.push_back({"devices", false, "no NVIDIA GPU",
                      "none needed: recordings of other machines replay anywhere"});
  else
    checks.push_back({"devices", true, names, ""});
  if (partitioned.empty())
    checks.push_back({"MIG", false, "no GPU that can be partitioned", ""});
  else
    checks.push_back({"MIG", true, partitioned, ""});
  return checks;
}

/// A library that is there or not, with the version that `version_symbol` tells.
Check check_library(std::string name, std::initializer_list<const char*> files,
                    const char* version_symbol, std::string remedy) {
  const Library library(files);
  if (!library)
    return {std::move(name), false, fmt::format("{} is not there", *files.begin()),
            std::move(remedy)};
  std::string detail = library.name();
  int number = 0;
  if (const auto version = library.find<int(int*)>(version_symbol);
      version && version(&number) == kSuccess)
    detail += fmt::format(", version {}", number);
  return {std::move(name), true, std::move(detail), ""};
}

Check check_simgrid() {
  const Status ok = engine::check_simgrid();
  if (ok) return {"SimGrid", true, "carries messages as the closed form says", ""};
  const Diagnostic& why = ok.error().diagnostics.front();
  return {"SimGrid", false, why.file.empty() ? why.problem : why.file + " " + why.problem,
          why.expected.empty() ? "apt install libsimgrid-dev, then build again" : why.expected};
}

Check check_program(std::string name, std::string_view program, std::string remedy) {
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : split(path ? path : "", ':')) {
    const std::string file = fmt::format("{}/{}", folder, program);
    if (::access(file.c_str(), X_OK) == 0) return {std::move(name), true, file, ""};
  }
  return {std::move(name), false, fmt::format("{} is not in PATH", program), std::move(remedy)};
}

Check check_capture() {
  const auto library = installed_library("librehearse_capture.so");
  if (!library) return {"capture", false, to_string(library.error()), "run cmake --install again"};
  const Library loaded({library->c_str()});
  const auto cost = loaded.find<double()>("rehearse_capture_ns_per_range");
  if (!cost)
    return {"capture", false, library->string() + " is another library",
            "run cmake --install again"};
  return {"capture", true,
          fmt::format("records NVTX ranges at {} each", to_string(Seconds::ns(cost()))), ""};
}

std::vector<Check> all_checks() {
  std::vector<Check> checks = {check_capture(), check_driver()};
  for (Check& check : check_devices()) checks.push_back(std::move(check));
  checks.push_back(check_library(
      "CUPTI",
      {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
       "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", "/usr/local/cuda/lib64/libcupti.so"},
      "", "install the CUDA toolkit to record kernels here"));
  checks.push_back(check_library("NCCL", {"libnccl.so.2"}, "ncclGetVersion",
                                 "install libnccl2 to record collectives here"));
  checks.push_back(check_simgrid());
  checks.push_back(
      check_program("MPI", "mpirun", "apt install openmpi-bin for the two-process example"));
  return checks;
}

Table check_table(const std::vector<Check>& checks) {
  Table table({{"check", Align::kLeft},
               {"ok", Align::kLeft},
               {"detail", Align::kLeft},
               {"remedy", Align::kLeft}});
  for (const Check& c : checks) table.add({c.name, c.ok ? "yes" : "no", c.detail, c.remedy});
  return table;
}

Json to_json(const std::vector<Check>& checks) {
  Json json = json_root("doctor");
  for (const Check& c : checks)
    json["checks"].push_back(
        {{"name", c.name}, {"ok", c.ok}, {"detail", c.detail}, {"remedy", c.remedy}});
  return json;
}

Result<Exit> run(const Globals& globals) {
  const std::vector<Check> checks = all_checks();
  const Formats formats = {.text = [&] { return check_table(checks).text(72); },
                           .json = [&] { return to_json(checks); },
                           .table = [&] { return check_table(checks); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("doctor", "What this machine can record and run");
  command->callback([&action] { action = run; });
}

}  // namespace rehearse::cli
