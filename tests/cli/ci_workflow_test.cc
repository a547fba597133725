// The ready workflow runs: its steps, in their order, with the built program.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <sys/wait.h>

#include "sim/base/yaml.h"
#include "tests/support/capture_run.h"
#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

struct Workflow {
  Variables variables;
  std::vector<std::pair<std::string, std::string>> runs;  ///< name and script
};

Workflow read_workflow() {
  const Result<YamlFile> file = YamlFile::load(test::source_file("examples/ci/rehearse-check.yml"));
  REQUIRE(file);
  Workflow workflow;
  const auto variables = file->root().map("env");
  REQUIRE(variables);
  for (const std::string& key : variables->keys())
    workflow.variables[key] = variables->optional<std::string>(key).value_or("");
  const auto job = file->root().map("jobs")->map("check");
  REQUIRE(job);
  for (const YamlMap& step : job->maps("steps"))
    if (const auto script = step.optional<std::string>("run"))
      workflow.runs.emplace_back(step.optional<std::string>("name").value_or(""), *script);
  return workflow;
}

/// Exit codes of the steps, by name, in the source tree. A step after one that failed runs as
/// well, as `if: always()` has it.
std::map<std::string, int> run_workflow(const Workflow& workflow, const Variables& changed) {
  Variables variables = workflow.variables;
  for (const auto& [key, value] : changed) variables[key] = value;
  std::string exports;
  for (const auto& [key, value] : variables) exports += fmt::format("export {}='{}'\n", key, value);
  std::map<std::string, int> codes;
  for (const auto& [name, script] : workflow.runs) {
    const fs::path file = test::write_scratch(
        "step.sh", fmt::format("set -e\ncd '{}'\nexport PATH='{}':\"$PATH\"\n{}{}",
                               test::source_file("").string(), test::program_folder().string(),
                               exports, script));
    const int status =
        std::system(fmt::format("bash '{}' > '{}.log' 2>&1", file.string(), file.string()).c_str());
    codes[name] = WEXITSTATUS(status);
    INFO(test::text_of(file.string() + ".log"));
    CHECK(WIFEXITED(status));
  }
  return codes;
}

/// Where the steps leave what they write.
Variables places(const fs::path& folder) {
  fs::create_directories(folder);
  return {{"RUNNER_TEMP", folder.string()},
          {"GITHUB_STEP_SUMMARY", (folder / "summary.md").string()}};
}

TEST_CASE("the workflow stores runs of main that pass, and compares pull requests with them") {
  const Workflow workflow = read_workflow();
  REQUIRE(workflow.runs.size() == 3);
  const std::string history = (test::scratch_folder() / "perf.history").string();
  struct Event {
    const char *name, *recording;
    int code;
    const char *verdict, *history;
  };
  for (const Event& event : {
           Event{"pull_request", "gate_again", 1, "", ""},  // main was never pushed
           Event{"push", "gate_before", 0, "pass", "0 accepted runs"},
           Event{"pull_request", "gate_again", 0, "pass", "1 accepted run;"},
           Event{"pull_request", "gate_after", 1, "fail", "1 accepted run;"},
           Event{"push", "gate_after", 1, "fail", "not accepted: the verdict is fail"},
           Event{"push", "gate_again", 0, "pass", "accepted"},
           Event{"pull_request", "gate_after", 1, "fail", "2 accepted runs;"},
       }) {
    INFO(event.name << " of " << event.recording);
    const fs::path folder = test::scratch_folder() / "run";
    Variables variables = places(folder);
    variables["JOB"] = "";
    variables["GITHUB_EVENT_NAME"] = event.name;
    variables["GITHUB_SHA"] = "0123abc";
    variables["HISTORY"] = history;
    variables["CANDIDATE"] = fmt::format("examples/recordings/{}.json", event.recording);
    const auto codes = run_workflow(workflow, variables);
    CHECK(codes.at("Record") == 0);
    CHECK(codes.at("Check") == event.code);
    if (std::string(event.verdict).empty()) continue;
    CHECK(codes.at("Show") == 0);
    const std::string summary = test::text_of(folder / "summary.md");
    CHECK(summary.find(fmt::format("Rehearse check: {}", event.verdict)) != std::string::npos);
    CHECK(summary.find(event.history) != std::string::npos);
    CHECK(summary.find("cost: ") != std::string::npos);
    const test::Json sarif = test::Json::parse(test::text_of(folder / "check.sarif"));
    CHECK(sarif["runs"][0]["results"].empty() == (event.code == 0));
    CHECK(test::text_of(folder / "check.xml").find("<testsuites") != std::string::npos);
  }
}

TEST_CASE("the workflow records the job itself") {
  const Workflow workflow = read_workflow();
  const fs::path folder = test::scratch_folder() / "recorded";
  Variables variables = places(folder);
  const std::string program = test::capture_program("capture_steps").string();
  // Twelve steps of four ranges and two milliseconds.
  for (const char* word : {program.c_str(), "pushed", "1", "12", "4", "2000", "2000"})
    variables["JOB"] += variables["JOB"].empty() ? word : std::string(" ") + word;
  variables["HISTORY"] = (folder / "perf.history").string();
  variables["GITHUB_SHA"] = "0123abc";
  const fs::path budget = folder / "budget.yaml";
  std::ofstream(budget) << "step_time: +500%\n";  // of a machine that does other things, too
  variables["BUDGET"] = budget.string();
  for (const char* event : {"push", "pull_request"}) {
    variables["GITHUB_EVENT_NAME"] = event;
    variables["CANDIDATE"] = (folder / event).string();
    const auto codes = run_workflow(workflow, variables);
    CHECK(codes.at("Record") == 0);
    CHECK_FALSE(fs::is_empty(folder / event));
    CHECK(codes.at("Check") == 0);
  }
  const std::string summary = test::text_of(folder / "summary.md");
  CHECK(summary.find("baseline  " + variables["HISTORY"]) != std::string::npos);
  CHECK(summary.find("candidate " + variables["CANDIDATE"]) != std::string::npos);
  const std::size_t steps = summary.find("12 whole steps");
  REQUIRE(steps != std::string::npos);
  CHECK(summary.find("12 whole steps", steps + 1) != std::string::npos);
}

}  // namespace
}  // namespace rehearse
