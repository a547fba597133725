// profile of programs that use a GPU: the mock driver and CUPTI of tests/capture_targets.
#include <catch2/catch.hpp>

#include "sim/base/yaml.h"
#include "tests/support/capture_run.h"
#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::Json;
using test::Ran;

using Variables = std::map<std::string, std::string>;

struct Profiled {
  Ran ran;
  fs::path folder;
};

/// Runs `profile OPTIONS -- gpu_target WAYS`, on the mock GPU unless `program` is another.
Profiled profile(std::vector<std::string> options, std::vector<std::string> ways,
                 Variables variables = {}, const std::string& program = "gpu_target") {
  const fs::path folder = test::scratch_folder() / "recording";
  variables.try_emplace("REHEARSE_CUPTI", test::capture_program("mocks/libcupti.so.13").string());
  std::vector<std::string> words = {"profile", "-o", folder.string()};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back("--");
  words.push_back(test::capture_program(program).string());
  words.insert(words.end(), ways.begin(), ways.end());
  return {test::RunningRehearse(words, std::move(variables)).wait(), folder};
}

std::string fact(const Json& process, const std::string& name) {
  for (const Json& fact : process["facts"])
    if (fact["name"] == name) return fact["detail"];
  return "";
}

TEST_CASE("profile counts GPU work, per process and in total") {
  const Json json =
      test::document(profile({"--format", "json"}, {"init", "steps", "3", "graph", "2"}).ran);
  // Per step 5 kernels, 2 copies and a set, 4 ranges; a graph has 10 nodes.
  CHECK(json["kernels"] == 3 * 5 + 2 * 10);
  CHECK(json["copies"] == 3 * 3);
  CHECK(json["ranges"] == 3 * 4);
  CHECK(json["graphs"] == 0);
  CHECK(json["dropped"] == 0);
  CHECK(json["calls"] > 3 * 5);
  REQUIRE(json["processes"].size() == 1);
  const Json& process = json["processes"][0];
  CHECK(process["device"] == true);
  CHECK(process["kernels"] == json["kernels"]);
  CHECK(fact(process, "driver.cuda") == "CUDA 13.0");
  CHECK(fact(process, "trouble").empty());
}

TEST_CASE("the options reach the library") {
  const Json launches = test::document(
      profile({"--format", "json", "--graph", "launch", "--power", "0"}, {"init", "graph", "2"})
          .ran);
  CHECK(launches["kernels"] == 0);
  CHECK(launches["graphs"] == 2);
  const Profiled all = profile({"--memory", "--jit", "--channels", "--power", "25"},
                               {"init", "memory", "steps", "1"});
  CHECK(all.ran.code == 0);
  CHECK(all.ran.errors.empty());  // no word of it was unknown
  const std::string session = test::text_of(all.folder / "session.yaml");
  CHECK(session.find("options: \"graph=node power=25 memory jit channels\"\n") !=
        std::string::npos);
}

TEST_CASE("wrong options are reported, and nothing runs") {
  test::check_failed(profile({"--graph", "edges"}, {"init"}).ran, 2, "edges");
  test::check_failed(profile({"--power", "2.5"}, {"init"}).ran, 2, "whole number");
  test::check_failed(profile({"--power", "5000"}, {"init"}).ran, 2, "1000");
  test::check_failed(profile({"--overhead", "0"}, {"init"}).ran, 2, "--overhead");
}

TEST_CASE("the reason for missing kernels is repeated after the run") {
  const Profiled held =
      profile({"--format", "table"}, {"init", "steps", "2"}, {{"MOCK_CUPTI_SUBSCRIBE", "39"}});
  CHECK(held.ran.code == 0);
  CHECK(held.ran.out.find("another profiler uses CUPTI") != std::string::npos);
  const Profiled ranges = profile({"--format", "table"}, {"basics"}, {}, "capture_target");
  CHECK(ranges.ran.out.find("no process started the CUDA driver") != std::string::npos);
  const Profiled idle = profile({"--format", "table"}, {"init"});
  CHECK(idle.ran.out.find("the CUDA driver was started, but no kernel ran") != std::string::npos);
  const Profiled nothing = profile({"--format", "table"}, {"exit_code", "3"}, {}, "capture_target");
  CHECK(nothing.ran.code == 3);
  CHECK(nothing.ran.out.find("no process started the CUDA driver or made an NVTX call") !=
        std::string::npos);
}

TEST_CASE("another tool that is attached is named, and nothing runs") {
  for (const char* variable :
       {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN"}) {
    const Profiled refused = profile({}, {"init"}, {{variable, "/opt/nsight/other.so"}});
    test::check_failed(refused.ran, 1, variable);
    CHECK(refused.ran.errors.find("/opt/nsight/other.so") != std::string::npos);
    CHECK_FALSE(fs::exists(refused.folder));
  }
  const Profiled warned = profile({}, {"init", "steps", "1"}, {{"KINETO_USE_DAEMON", "1"}});
  CHECK(warned.ran.code == 0);
  CHECK(warned.ran.errors.find("KINETO_USE_DAEMON=1") != std::string::npos);
}

TEST_CASE(
    "profile --overhead runs the command with and without recording, and reports the overhead") {
  const Profiled profiled =
      profile({"--overhead", "2", "--format", "json"}, {"init", "steps", "30"});
  const Json json = test::document(profiled.ran);
  CHECK(json["kernels"] == 30 * 5);  // of the first run alone
  const Json& measured = json["overhead"]["measured"];
  CHECK(measured["pairs"] == 2);
  CHECK(measured["wall_time"]["value"].get<double>() > 0);
  // A step waits for 75 us of kernels and copies on one stream.
  CHECK(measured["step_time"]["value"].get<double>() > 70e-6);
  for (const char* share : {"step_share", "wall_share"}) {
    CHECK(measured[share]["low"].get<double>() <= measured[share]["value"].get<double>());
    CHECK(measured[share]["value"].get<double>() <= measured[share]["high"].get<double>());
  }
  CHECK(test::names_in(profiled.folder).size() == 3);  // capture, greeting, session

  const Result<YamlFile> file = YamlFile::load(profiled.folder / "session.yaml");
  REQUIRE(file);
  const YamlMap session = file->root();
  CHECK(session.required<Seconds>("measured_step")->s() ==
        Approx(measured["step_time"]["value"].get<double>()));
  CHECK(session.required<Seconds>("wall")->s() > 0);
  CHECK(session.required<std::int64_t>("exit_code") == 0);
  CHECK(session.list<std::string>("command").back() == "30");
  const auto overhead = session.map("overhead");
  REQUIRE(overhead);
  CHECK(*overhead->required<double>("ns_per_range") > 1);
  CHECK(*overhead->required<double>("step_share") ==
        Approx(measured["step_share"]["value"].get<double>()).margin(1e-4));
  CHECK(file->status());
}

TEST_CASE("profile --overhead of a command that fails or marks no steps") {
  const Profiled fails = profile({"--overhead", "--format", "json"}, {"init", "exit_code", "5"});
  CHECK(fails.ran.code == 5);
  CHECK_FALSE(Json::parse(fails.ran.out)["overhead"].contains("measured"));

  const Json plain =
      test::document(profile({"--overhead", "--format", "json"}, {"init", "launches", "9"}).ran);
  CHECK(plain["overhead"]["measured"]["wall_time"]["value"].get<double>() > 0);
  CHECK_FALSE(plain["overhead"]["measured"].contains("step_time"));

  // Runs once only: the second time its folder is there.
  const std::string marker = (test::scratch_folder() / "once").string();
  const std::string folder = (test::scratch_folder() / "recording").string();
  const Ran once = test::rehearse({"profile", "-o", folder, "--overhead", "--", "mkdir", marker});
  CHECK(once.code == 0);
  CHECK(once.errors.find("the overhead was not measured: the command ended with 1") !=
        std::string::npos);
}

TEST_CASE("ranks of a process tree follow from the environment") {
  const fs::path folder = test::scratch_folder() / "recording";
  const std::string target = test::capture_program("gpu_target").string();
  const std::string script =
      "for r in 0 1 2; do RANK=$r WORLD_SIZE=3 " + target + " init steps 1 & done; wait";
  const Ran ran =
      test::RunningRehearse(
          {"profile", "-o", folder.string(), "--format", "json", "--", "sh", "-c", script},
          {{"REHEARSE_CUPTI", test::capture_program("mocks/libcupti.so.13").string()}})
          .wait();
  REQUIRE(ran.code == 0);
  CHECK(Json::parse(ran.out)["processes"].size() == 3);
  CHECK(Json::parse(ran.out)["kernels"] == 3 * 5);
  const trace::Trace trace = test::read_captures(folder);
  REQUIRE(trace.ranks.size() == 3);
  for (std::uint32_t r = 0; r < 3; ++r) {
    CHECK(trace.ranks[r].info.rank == r);
    CHECK(trace.ranks[r].info.world_size == 3);
  }
}

TEST_CASE("the ranks of mpirun are recorded") {
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0) {
    WARN("skipped: no mpirun");
    return;
  }
  const fs::path folder = test::scratch_folder() / "recording";
  const Ran ran =
      test::RunningRehearse(
          {"profile", "-o", folder.string(), "--format", "json", "--", "mpirun", "-n", "2",
           "--oversubscribe", test::capture_program("gpu_target").string(), "init", "steps", "2"},
          {{"REHEARSE_CUPTI", test::capture_program("mocks/libcupti.so.13").string()},
           {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
           {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}})
          .wait();
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  CHECK(Json::parse(ran.out)["kernels"] == 2 * 2 * 5);
  const trace::Trace trace = test::read_captures(folder);
  REQUIRE(trace.ranks.size() == 2);
  CHECK(trace.ranks[1].info.rank == 1);
  CHECK(trace.ranks[1].info.world_size == 2);
}

}  // namespace
}  // namespace rehearse
