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
          {"GITHUB_PATH", (folder / "path.txt").string()},
          {"GITHUB_STEP_SUMMARY", (folder / "summary.md").string()}};
}

TEST_CASE("the workflow stores runs of main that pass, and compares pull requests with them") {
  const Workflow workflow = read_workflow();
  REQUIRE(workflow.runs.size() == 4);
  const std::string history = (test::scratch_folder() / "perf.history").string();
  struct Event {
    const char *name, *recording;
    int code;
    const char *verdict, *history;
  };
  for (const Event& event : {
           Event{"pull_request", "gate_again", 0, "pass",
                 "0 accepted runs"},  // main was never pushed
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
    const bool kept = fs::exists(history) || std::string(event.name) == "push";
    const auto codes = run_workflow(workflow, variables);
    if (!kept) fs::remove(history);
    CHECK(codes.at("Record") == 0);
    CHECK(codes.at("Check") == event.code);
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

TEST_CASE("the workflow says so where a run has no result") {
  const fs::path folder = test::scratch_folder() / "nothing";
  Variables variables = places(folder);
  variables["JOB"] = "";
  variables["GITHUB_EVENT_NAME"] = "pull_request";
  variables["GITHUB_SHA"] = "0123abc";
  variables["HISTORY"] = (folder / "perf.history").string();
  variables["CANDIDATE"] = "no_such_recording";
  const auto codes = run_workflow(read_workflow(), variables);
  CHECK(codes.at("Check") == 1);
  CHECK(codes.at("Show") == 0);
  for (const char* file : {"check.md", "summary.md"})
    CHECK(test::text_of(folder / file).find("Rehearse check: no result") != std::string::npos);
}

TEST_CASE("the workflow installs a release without root") {
  if (std::system("which dpkg-deb curl > /dev/null 2>&1") != 0) return;
  const fs::path folder = test::scratch_folder() / "installed", package = folder / "package";
  Variables variables = places(folder);
  fs::create_directories(package / "DEBIAN");
  fs::create_directories(package / "usr/bin");
  std::ofstream(package / "DEBIAN/control") << "Package: rehearse\nVersion: 1\nArchitecture: "
                                               "all\nMaintainer: a test\nDescription: a test\n";
  std::ofstream(package / "usr/bin/rehearse") << "a program\n";
  const std::string deb = (folder / "released.deb").string();
  REQUIRE(std::system(fmt::format("dpkg-deb --build '{}' '{}' > /dev/null", package.string(), deb)
                          .c_str()) == 0);
  Workflow install;
  install.variables = {{"RELEASE", "file://" + deb}};
  for (const auto& [name, script] : read_workflow().runs)
    if (name == "Install")
      install.runs.emplace_back(name, "cd '" + folder.string() + "'\n" + script);
  REQUIRE(install.runs.size() == 1);
  CHECK(run_workflow(install, variables).at("Install") == 0);
  const std::string path = test::text_of(folder / "path.txt");
  CHECK(fs::exists(fs::path(path.substr(0, path.find('\n'))) / "rehearse"));
}

/// The scripts of the GitLab job, one after the other.
Workflow read_gitlab() {
  const Result<YamlFile> file =
      YamlFile::load(test::source_file("examples/ci/rehearse-check.gitlab-ci.yml"));
  REQUIRE(file);
  const auto job = file->root().map("rehearse check");
  REQUIRE(job);
  Workflow workflow;
  const auto variables = job->map("variables");
  REQUIRE(variables);
  for (const std::string& key : variables->keys())
    workflow.variables[key] = variables->optional<std::string>(key).value_or("");
  std::string script;
  for (const char* part : {"before_script", "script"})
    for (const std::string& each : job->list<std::string>(part)) script += each;
  workflow.runs.emplace_back("script", script);
  for (const std::string& each : job->list<std::string>("after_script"))
    workflow.runs.emplace_back("after", each);
  return workflow;
}

TEST_CASE("the GitLab job checks merge requests, and updates one note") {
  if (std::system("which jq > /dev/null 2>&1") != 0) return;
  const fs::path folder = test::scratch_folder() / "gitlab", notes = folder / "notes";
  fs::create_directories(notes);
  // In place of the service: a note is a file, and the list of notes is made of them.
  const fs::path curl = folder / "curl";
  std::ofstream(curl) << fmt::format(
      "#!/bin/sh\nverb=GET\nfor word; do\n  case $last in --request) verb=$word;; "
      "--data-urlencode) "
      "body=${{word#body@}};; esac\n  last=$word\ndone\n"
      "echo \"$verb $last\" >> '{0}/calls'\n"
      "case $verb in\n  GET) jq -Rs '{{id: 7, body: .}}' '{0}'/notes/* 2> /dev/null | jq -s .;;\n"
      "  *) cp \"$body\" '{0}/notes/note';;\nesac\n",
      folder.string());
  fs::permissions(curl, fs::perms::owner_all);
  Workflow workflow = read_gitlab();
  for (auto& [name, script] : workflow.runs)
    script = fmt::format(
        "export PATH='{0}':\"$PATH\"\nfor each in examples; do ln -sfn \"$PWD/$each\" '{0}'/$each; "
        "done\ncd '{0}'\n{1}",
        folder.string(), script);
  Variables variables = {{"JOB", ""},
                         {"CI_COMMIT_SHA", "0123abc"},
                         {"CI_API_V4_URL", "http://service"},
                         {"CI_PROJECT_ID", "3"},
                         {"REHEARSE_TOKEN", "secret"}};
  struct Event {
    const char *request, *recording;
    int code;
  };
  for (const Event& event : {Event{"11", "gate_before", 0},
                             {"", "gate_before", 0},
                             {"12", "gate_again", 0},
                             {"12", "gate_after", 1}}) {
    variables["CI_MERGE_REQUEST_IID"] = event.request;
    variables["CANDIDATE"] = fmt::format("examples/recordings/{}.json", event.recording);
    const auto codes = run_workflow(workflow, variables);
    CHECK(codes.at("script") == event.code);
    CHECK(codes.at("after") == 0);
    if (std::string(event.request) ==
        "11") {  // its cache is not kept, and it has a note of its own
      CHECK(fs::remove(folder / workflow.variables.at("HISTORY")));
      fs::remove(notes / "note");
      fs::remove(folder / "calls");
    }
  }
  const std::string url = "http://service/projects/3/merge_requests/12/notes";
  CHECK(test::text_of(folder / "calls") == fmt::format("GET {0}?per_page=100\nPOST {0}\n"
                                                       "GET {0}?per_page=100\nPUT {0}/7\n",
                                                       url));
  const std::string note = test::text_of(notes / "note");
  CHECK(note.starts_with("<!-- rehearse check -->\n"));
  CHECK(note.find("Rehearse check: fail") != std::string::npos);
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
