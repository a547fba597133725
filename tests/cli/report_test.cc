// --report FILE: one page, whole or absent, the same bytes each time, that holds what the command
// prints as JSON.
#include <algorithm>

#include <catch2/catch.hpp>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::kExample;

constexpr char kMixedJob[] = "examples/jobs/gpt2_xl_mixed.yaml";

std::string page_of(std::vector<std::string> arguments, const std::string& name) {
  const std::filesystem::path path = test::scratch_folder() / name;
  arguments.insert(arguments.end(), {"--report", path.string()});
  const test::Ran ran = test::rehearse(arguments);
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  CHECK(test::names_in(path.parent_path()) == std::vector<std::string>{name});
  return test::text_of(path);
}

Json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST_CASE("a page contains the JSON output of the command") {
  const std::vector<std::vector<std::string>> commands = {
      {"simulate", kMixedJob}, {"replay", kExample}, {"whatif", kExample, "--scale", "kernel:0.5"}};
  for (std::vector<std::string> arguments : commands) {
    INFO(arguments.front());
    const Json data = data_of(page_of(arguments, "page.html"));
    arguments.insert(arguments.end(), {"--format", "json"});
    CHECK(data["document"] == Json::parse(test::rehearse(arguments).out));
    CHECK(data["timeline"]["spans"].get<int>() > 10);
    CHECK_FALSE(data["accuracy"].empty());
    CHECK(data["reproduce"]["command"].get<std::string>().starts_with("rehearse --allow-outside " +
                                                                      arguments.front()));
  }
}

TEST_CASE("a page names the ranks and devices of the recordings that were read") {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"replay", kExample}, {"inspect", kExample}, {"compare", kExample, kExample}}) {
    INFO(arguments.front());
    const Json inputs = data_of(page_of(arguments, "page.html"))["reproduce"]["inputs"];
    REQUIRE_FALSE(inputs.empty());
    for (const Json& input : inputs) {
      CHECK(input["path"] == kExample);
      CHECK(input["recording"]["ranks"] == 1);
      CHECK_FALSE(input["recording"]["devices"].empty());
      CHECK(input["recording"]["commits"].empty());
    }
  }
}

TEST_CASE("every command with a result writes its page, and others say that they have none") {
  const std::vector<std::vector<std::string>> commands = {
      {"catalog", "gpus"},
      {"mig", "layouts", "--device", "h100_sxm5_80"},
      {"pack", "examples/fleets/pack.yaml"},
      {"inspect", kExample},
      {"study", "studies/carbon.yaml", "--format", "markdown"}};
  for (const std::vector<std::string>& arguments : commands) {
    INFO(arguments.front());
    const Json data = data_of(page_of(arguments, "page.html"));
    CHECK_FALSE(data["shown"].empty());
    for (const Json& block : data["shown"]) CHECK(block.contains("kind"));
  }
  for (const char* command : {"init", "help"})
    test::check_failed(test::rehearse({command, command == std::string("init") ? "job" : "plan",
                                       "--report", "page.html"}),
                       2, "page");
}

TEST_CASE("the page of a job has memory, roofline and changes that were simulated") {
  const Json data = data_of(page_of({"simulate", kMixedJob}, "page.html"));
  const Json& curves = data["memory"]["curves"];
  REQUIRE(curves.size() == 2);
  for (const Json& curve : curves) {
    const std::size_t moments = curve["time_s"].size();
    CHECK(std::is_sorted(curve["time_s"].begin(), curve["time_s"].end()));
    for (const auto& [part, bytes] : curve["bytes"].items()) CHECK(bytes.size() == moments);
  }
  // The fullest moment of the fullest stage is the peak of the document.
  double most = 0;
  for (const Json& curve : curves) {
    double sum = 0;
    for (const auto& [part, bytes] : curve["bytes"].items())
      sum += bytes[curve["peak"].get<std::size_t>()].get<double>();
    if (sum / curve["usable_b"].get<double>() > most) most = sum / curve["usable_b"].get<double>();
  }
  const Json& memory = data["document"]["memory_per_device"];
  CHECK(most == Approx(memory["value"].get<double>() / memory["usable"]["value"].get<double>()));

  // Ops of all kinds of devices together are the compute time, as a mean over ranks. Communication
  // slows some of them, which only the step counts.
  double time = 0, ranks = 0;
  for (const Json& device : data["roofline"]["devices"]) {
    ranks += device["ranks"].get<double>();
    for (const Json& op : device["ops"])
      time += op["time_s"].get<double>() * device["ranks"].get<double>();
  }
  const double compute = data["document"]["breakdown"]["compute"]["value"].get<double>();
  CHECK(time / ranks <= compute);
  CHECK(time / ranks > 0.999 * compute);

  REQUIRE_FALSE(data["gains"].empty());
  const double step = data["document"]["step_time"]["value"].get<double>();
  for (const Json& gain : data["gains"]) {
    CHECK(gain["step_s"].get<double>() < step);
    CHECK(gain["gain"].get<double>() == Approx(1 - gain["step_s"].get<double>() / step));
  }
}

TEST_CASE("a change on the page equals the result of the changed job file") {
  const Json data = data_of(page_of({"simulate", kMixedJob}, "page.html"));
  const auto wanted =
      std::find_if(data["gains"].begin(), data["gains"].end(),
                   [](const Json& gain) { return gain["change"] == "selective recomputation"; });
  REQUIRE(wanted != data["gains"].end());
  std::string job = test::text_of(test::source_file(kMixedJob));
  const std::size_t at = job.find("recompute: full");
  REQUIRE(at != std::string::npos);
  job.replace(at, 15, "recompute: selective");
  const std::string path = test::write_scratch("job.yaml", job).string();
  const Json changed = Json::parse(test::rehearse({"simulate", path, "--format", "json"}).out);
  CHECK(wanted->at("step_s").get<double>() ==
        Approx(changed["step_time"]["value"].get<double>()).epsilon(1e-9));
  CHECK(wanted->at("memory_b").get<double>() ==
        Approx(changed["memory_per_device"]["value"].get<double>()));
}

TEST_CASE("Chakra jobs have a page too") {
  const Json data =
      data_of(page_of({"simulate", "--chakra", "examples/chakra/transformer", "--ranks", "32",
                       "--cluster", "examples/clusters/dgx_h100_x4.yaml", "--comm-groups",
                       "examples/chakra/transformer.groups.json", "--fidelity", "closed"},
                      "page.html"));
  CHECK(data["timeline"]["lanes"][0]["process"] == "all 32 ranks");
  CHECK(data["roofline"].is_null());
}

TEST_CASE("the same command gives the same page") {
  const std::filesystem::path path = test::scratch_folder() / "page.html";
  std::string first;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(test::rehearse({"replay", kExample, "--report", path.string()}).code == 0);
    if (i == 0) first = test::text_of(path);
  }
  CHECK(first == test::text_of(path));
}

TEST_CASE("a page that cannot be written is an error before the work, and leaves no file") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"simulate", kMixedJob}, {"replay", kExample}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--report", "/no/such/folder/page.html"});
    test::check_failed(test::rehearse(arguments), 1, "/no/such/folder");
  }
}

TEST_CASE("the critical path of a step covers it") {
  for (const char* fidelity : {"closed", "message"}) {
    const Json json = Json::parse(
        test::rehearse({"simulate", kMixedJob, "--fidelity", fidelity, "--format", "json"}).out);
    double time = 0, share = 0;
    for (const Json& category : json["critical_path"]) {
      time += category["time"]["value"].get<double>();
      share += category["share"].get<double>();
      double top = 0;
      for (const Json& part : category["top"]) top += part["time"]["value"].get<double>();
      CHECK(top <= category["time"]["value"].get<double>() * (1 + 1e-9));
    }
    CHECK(time == Approx(json["step_time"]["value"].get<double>()));
    CHECK(share == Approx(1));
  }
}

TEST_CASE("parts of the critical path add up to the step, and so do their provenances") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"simulate", kMixedJob, "--fidelity", "closed"},
        {"simulate", "examples/jobs/resnet50_fed.yaml", "--fidelity", "closed"},
        {"simulate", "--chakra", "examples/chakra/transformer", "--ranks", "32", "--cluster",
         "examples/clusters/dgx_h100_x4.yaml", "--comm-groups",
         "examples/chakra/transformer.groups.json", "--fidelity", "closed"},
        {"replay", kExample},
        {"whatif", kExample, "--scale", "kernel:2"}}) {
    INFO(command[0] << " " << command[1]);
    std::vector<std::string> words = command;
    words.insert(words.end(), {"--format", "json"});
    const Json json = Json::parse(test::rehearse(words).out);
    double time = 0, share = 0, rests = 0;
    for (const Json& part : json["path_parts"]) {
      time += part["time"]["value"].get<double>();
      share += part["share"].get<double>();
      double ops = 0, from = 0;
      for (const Json& op : part["ops"]) ops += op["time"]["value"].get<double>();
      for (const Json& each : part["from"]) from += each.get<double>();
      CHECK(ops <= part["time"]["value"].get<double>() * (1 + 1e-9));
      CHECK(from == Approx(1));
    }
    for (const Json& each : json["step_from"]) rests += each.get<double>();
    const Json& step = json["step_time"];
    const Json& predicted = step.contains("simulated") ? step["simulated"] : step;
    CHECK(time == Approx(predicted["value"].get<double>()).epsilon(1e-9));
    CHECK(share == Approx(1));
    CHECK(rests == Approx(1));
    CHECK(json["path"]["steps"].get<int>() == (command[0] == "simulate" ? 1 : 3));
  }
}

TEST_CASE("an edit changes the recorded parts that it names") {
  const auto recorded = [](const char* edit) {
    return Json::parse(test::rehearse({"whatif", kExample, "--scale", edit, "--format", "json"})
                           .out)["step_from"]["recorded"]
        .get<double>();
  };
  const Json plain = Json::parse(test::rehearse({"replay", kExample, "--format", "json"}).out);
  CHECK(plain["step_from"]["recorded"].get<double>() > 0.9);
  CHECK(recorded("kernel:2") < 0.6);
}

/// What the program prints at a terminal.
std::string at_terminal(const std::vector<std::string>& arguments, const char* no_color) {
  int terminal = -1;
  const int process = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  REQUIRE(process >= 0);
  if (process == 0) {
    ::setenv("TERM", "xterm", 1);
    ::setenv("NO_COLOR", no_color, 1);
    const std::string program = (test::program_folder() / "rehearse").string();
    std::vector<std::string> words = {program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    if (::chdir(test::source_file(".").c_str()) == 0) ::execv(program.c_str(), pointers.data());
    ::_exit(127);
  }
  std::string text;
  char buffer[4096];
  // A terminal whose other end was closed gives an error, not an end.
  for (ssize_t got = 0; (got = ::read(terminal, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  ::close(terminal);
  int status = 0;
  ::waitpid(process, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  return text;
}

TEST_CASE("a terminal gets colours, unless they are disabled") {
  const std::vector<std::string> replay = {"replay", kExample, "--quiet"};
  const std::string text = at_terminal(replay, "");
  CHECK(text.find("\033[1mStep time") != std::string::npos);
  CHECK(text.find("\033[34m█") != std::string::npos);
  CHECK(at_terminal(replay, "1").find("\033[") == std::string::npos);
  std::vector<std::string> plain = replay;
  plain.push_back("--no-color");
  CHECK(at_terminal(plain, "").find("\033[") == std::string::npos);
  const std::filesystem::path path = test::scratch_folder() / "replay.txt";
  plain.back() = "-o";
  plain.push_back(path.string());
  at_terminal(plain, "");
  CHECK(test::text_of(path).find("\033[") == std::string::npos);
}

TEST_CASE("the answers of simulate and replay fit one screen") {
  constexpr auto kLines = 48;  // none of them wraps at 120 columns but the first
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"simulate", "examples/jobs/gpt_175b.yaml", "--fidelity", "closed"},
        {"replay", kExample},
        {"replay", "traces/train-cpu-epyc"}}) {
    const std::string text = test::rehearse(command).out;
    CHECK(std::count(text.begin(), text.end(), '\n') <= kLines);
  }
}

TEST_CASE("output is not coloured if stdout is not a terminal") {
  CHECK(test::rehearse({"replay", kExample}).out.find('\033') == std::string::npos);
  CHECK(test::rehearse({"replay", kExample, "--no-color"}).out.find('\033') == std::string::npos);
}

TEST_CASE("Markdown of a step is a comment: the answer, figures, parts, changes, rows folded") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"simulate", kMixedJob}, {"replay", kExample}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--format", "markdown"});
    const std::string text = test::rehearse(arguments).out;
    INFO(text);
    for (const char* part :
         {"**", "| time | share |", "What would help most", "<details><summary>", "90 % interval"})
      CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace
}  // namespace rehearse
