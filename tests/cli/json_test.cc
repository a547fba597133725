// JSON: the keys that scripts rely on, quantities with units, numbers that are numbers.
#include <filesystem>
#include <set>
#include <sstream>

#include <catch2/catch.hpp>
#include <fmt/ranges.h>

#include "tests/support/capture_run.h"
#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::kExample;
using test::Ran;

Json result_of(std::vector<std::string> arguments) {
  const std::string command = arguments.front();
  arguments.insert(arguments.begin(), {"--format", "json"});
  const Ran ran = test::rehearse(arguments);
  INFO(command << ": " << ran.errors);
  REQUIRE(ran.code == 0);
  CHECK(ran.errors.empty());
  Json json = Json::parse(ran.out);
  CHECK(json["schema"] == "rehearse/1");
  CHECK(json["command"] == command);
  test::check_values(json, "interval_coverage");  // absent for a suite without rows
  return json;
}

TEST_CASE("import: keys") {
  const std::string store = (test::scratch_folder() / "a.rehearse").string();
  // An annotation of negative duration is a problem that is counted.
  std::string text = test::kineto_recording(3);
  text.replace(text.find("\"dur\": 400"), 10, "\"dur\": -40");
  const std::string input = test::write_scratch("a.json", text).string();
  const Json json = result_of({"import", input, "-o", store});
  for (const char* key : {"ranks", "devices", "ops.host", "ops.gpu", "steps", "problems[].kind",
                          "problems[].severity", "problems[].count", "problems[].first"})
    test::check_has(json, key);
  CHECK(json["ranks"] == 1);
  CHECK(json["steps"] == 3);
  CHECK(json["ops"]["host"] == 8);
  CHECK(json["problems"][0]["kind"] == "negative_duration");
  CHECK(json["problems"][0]["count"] == 1);
}

TEST_CASE("inspect: keys and the example's numbers") {
  const Json json = result_of({"inspect", kExample});
  for (const char* key :
       {"ranks[].steps[].name", "ranks[].steps[].measured_s", "ops[].name", "ops[].kind",
        "ops[].calls", "ops[].total.value", "breakdown.total", "breakdown.compute", "problems"})
    test::check_has(json, key);
  CHECK(json["ranks"][0]["steps"].size() == 3);
  CHECK(json["ranks"][0]["steps"][1]["measured_s"].get<double>() == Approx(1e-3));
  // Two kernels of 500 and 100 us in a step of 1000 us.
  CHECK(json["breakdown"]["compute"]["value"].get<double>() == Approx(600e-6));
}

TEST_CASE("inspect --workload: keys and the example's numbers") {
  const Json json = result_of({"inspect", "examples/recordings/two_linears.json", "--workload"});
  for (const char* key : {"step.name", "step.time", "device.busy", "layers[].name",
                          "layers[].forward.low", "notes", "problems"})
    test::check_has(json, key);
  CHECK(json["device"]["layers"]["value"].get<double>() == Approx(700e-6));
  CHECK(json["parameters"] == 525568);
  REQUIRE(json["layers"].size() == 2);
  CHECK(json["layers"][1]["backward"]["value"].get<double>() == Approx(230e-6));
}

void check_replay_keys(const Json& json) {
  for (const char* key :
       {"ranks[].steps[].rank", "ranks[].steps[].name", "ranks[].steps[].partial",
        "ranks[].steps[].measured_s", "ranks[].steps[].simulated_s",
        "ranks[].steps[].gpu.measured_s", "ranks[].steps[].gpu.simulated_s", "error.median",
        "error.worst", "kernel_start_error", "residual_share", "breakdown.total",
        "critical_path[].category", "critical_path[].time", "critical_path[].share"})
    test::check_has(json, key);
}

TEST_CASE("replay: keys and the example's numbers") {
  const Json json = result_of({"replay", kExample});
  check_replay_keys(json);
  for (const char* key : {"value", "low", "high", "unit", "provenance"})
    test::check_has(json["step_time"]["simulated"], key);
  CHECK(json["step_time"]["simulated"]["value"].get<double>() == Approx(1e-3));
  CHECK(json["step_time"]["measured"]["value"].get<double>() == Approx(1e-3));
  CHECK(json["error"]["median"].get<double>() == Approx(0).margin(1e-6));
}

TEST_CASE("whatif: keys and the example's numbers") {
  const Json json = result_of({"whatif", kExample, "--scale", "kernel=gemm*:0.5"});
  check_replay_keys(json);
  for (const char* key : {"step_time.value", "step_time.low", "step_time.high", "step_time.unit",
                          "step_time.provenance", "baseline.measured", "baseline.simulated.low",
                          "baseline.error.median", "change"})
    test::check_has(json, key);
  // gemm takes 250 us less of a step of 1000 us.
  CHECK(json["step_time"]["value"].get<double>() == Approx(750e-6));
  CHECK(json["change"].get<double>() == Approx(-0.25));
  CHECK(json["step_time"]["provenance"] == "extrapolated");
}

TEST_CASE("validate: keys") {
  const std::filesystem::path recording =
      test::write_scratch("a.json", test::text_of(test::source_file(kExample)));
  const Json json = result_of({"validate", recording.string()});
  for (const char* key : {"name", "rows", "median_error", "p90_error", "worst_error", "bias",
                          "interval_coverage", "interval_width", "fitted_rows", "blind_rows"})
    test::check_has(json, std::string("suites[].") + key);
  CHECK(json["suites"][0]["name"] == "replay");
  CHECK(json["suites"][0]["rows"] == 6);  // three steps, by host and by device
  CHECK(json["suites"][0]["interval_coverage"] == 1.0);
}

TEST_CASE("profile: keys, and a recording that the other commands read") {
  const std::string folder = (test::scratch_folder() / "capture").string();
  const Json json = result_of(
      {"profile", "-o", folder, "--", test::capture_program("capture_target"), "ranges", "10"});
  for (const char* key : {"processes[].name", "processes[].command", "kernels", "dropped",
                          "overhead.per_range", "overhead.total"})
    test::check_has(json, key);
  CHECK(json["dropped"] == 0);
  CHECK(json["ranges"] == 10);
  const Json inspected = result_of({"inspect", folder});
  CHECK(inspected["ranks"][0]["format"] == "capture");
  CHECK(inspected["ranks"][0]["host_ops"] == json["ranges"]);
}

TEST_CASE("odd recordings give numbers or an error, never NaN") {
  const auto event = [](const std::string& category, const std::string& name, int start,
                        int length) {
    return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
           R"(", "pid": 1, "tid": 1, "ts": )" + std::to_string(start) + R"(, "dur": )" +
           std::to_string(length) + R"(, "args": {"device": 0, "stream": 7, "correlation": 1}})";
  };
  const auto recording = [](const std::string& events) {
    return "{\"traceEvents\": [" + events + "]}";
  };
  const std::vector<std::string> texts = {
      recording(""),
      recording(event("cpu_op", "nothing", 5, 0)),
      recording(event("kernel", "alone", 5, 0)),
      recording(event("user_annotation", "ProfilerStep#1", 5, 0)),
      recording(event("user_annotation", "ProfilerStep#1", 5, 0) + "," +
                event("kernel", "k", 5, 3)),
      recording(event("cuda_runtime", "cudaLaunchKernel", 9, 1) + "," +
                event("kernel", "earlier", 5, 3)),
      recording(event("cpu_op", "far", -2000000000, 1) + "," +
                event("cpu_op", "apart", 2000000000, 1)),
      R"({"schema": "1.0.3", "pid": 1, "time": "", "start_ts": 1, "nodes": []})",
  };
  for (const std::string& text : texts) {
    const std::string path = test::write_scratch("odd.json", text).string();
    INFO(text);
    for (std::vector<std::string> arguments : {std::vector<std::string>{"inspect", path},
                                               {"replay", path},
                                               {"whatif", path, "--scale", "gpu:0"},
                                               {"whatif", path, "--scale", "host:0"}}) {
      arguments.insert(arguments.end(), {"--format", "json", "--quiet"});
      const Ran ran = test::rehearse(arguments);
      INFO(arguments.front() << ": " << ran.errors);
      if (ran.code == 0) {
        CHECK(ran.errors.empty());
        test::check_values(Json::parse(ran.out));
      } else {
        test::check_failed(ran, 1, "");
      }
    }
  }
}

/// A log of nccl-tests of a ring of two ranks at 100 GB/s.
std::string nccl_log() {
  std::string text =
      "# nccl-tests version 2.17.6 nccl-headers=22902 nccl-library=22902\n"
      "# Collective test starting: all_reduce_perf\n# Using devices\n";
  for (int rank = 0; rank < 2; ++rank)
    text += fmt::format(
        "#  Rank  {0} Group  0 Pid   1 on   host1 device  {0} [0000:0{0}:00] NVIDIA "
        "A100-SXM4-80GB\n",
        rank);
  text +=
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     "
      "time   "
      "algbw   busbw  #wrong\n";
  for (double size = 1024; size <= 268435456; size *= 2)
    text += fmt::format("{:.0f} {:.0f} float sum -1 {:.2f} 1.00 1.75 0 {:.2f} 1.00 1.75 0\n", size,
                        size / 4, 14 + size / 100e3, 13 + size / 100e3);
  return test::write_scratch("all_reduce.log", text + "# Out of bounds values : 0 OK\n").string();
}

/// The commands that the help lists.
std::set<std::string> listed_commands() {
  std::istringstream help(test::rehearse({"--help"}).out);
  std::set<std::string> commands;
  bool listing = false;
  for (std::string line; std::getline(help, line);) {
    listing |= line == "Recordings:";
    if (listing && line.starts_with("  ") && line[2] != ' ')
      commands.insert(line.substr(2, line.find(' ', 2) - 2));
  }
  return commands;
}

TEST_CASE("each prediction says how it was computed, and names options that its command has") {
  const std::string recording = kExample;
  // Those without a prediction of their own. Pages of live are those of simulate and of whatif.
  std::set<std::string> seen = {"profile",   "import",     "inspect", "export",
                                "bench-gpu", "catalog",    "explain", "init",
                                "help",      "completion", "doctor",  "live"};
  const std::string sweep = test::write_scratch("steps.csv",
                                                "profile,batch,step_time_ms,memory_mib\n"
                                                "7g.40gb,1,10.0,2600\n7g.40gb,16,11.0,2700\n"
                                                "7g.40gb,32,18.0,2900\n7g.40gb,64,34.0,9000\n")
                                .string();
  const std::string pair =
      test::write_scratch("pair.yaml",
                          fmt::format("record: cp '{}' recording\nbaseline: echo step 1 ms\n"
                                      "candidate: echo step 0.75 ms\n"
                                      "predict: whatif recording --input-pipeline workers=2\n"
                                      "step: step (.* ms)\n",
                                      test::source_file(recording).string()))
          .string();
  for (std::vector<std::string> words : std::vector<std::vector<std::string>>{
           {"replay", recording},
           {"whatif", recording, "--scale", "kernel:0.5"},
           {"simulate", "examples/jobs/gpt2_xl_mixed.yaml", "--fidelity", "closed"},
           {"simulate", "examples/jobs/serve_llama3_70b.yaml"},
           {"simulate", "examples/dataflows/gcn.yaml"},
           {"plan", "examples/jobs/gpt2_xl_search.yaml", "--fidelity", "closed"},
           {"recommend", "examples/jobs/mpt_7b_rent.yaml", "--provider", "lambda", "--counts", "1"},
           {"compare", recording, "examples/recordings/gate_before.json"},
           {"network", "--device", "h100_sxm5_80", "--op", "all_reduce", "--sizes", "1MiB"},
           {"fleet", "examples/fleets/four_jobs.csv", "--nodes", "1", "--gpus-per-node", "4"},
           {"pack", "examples/fleets/pack.yaml"},
           {"input", "examples/pipelines/two_workers.yaml"},
           {"study", "studies/stanza.yaml"},
           {"check", "--baseline", "examples/recordings/gate_before.json", "--candidate",
            "examples/recordings/gate_again.json"},
           {"validate", recording},
           {"prove", pair, "--rounds", "1"},
           {"calibrate", "nccl", nccl_log(), "--device", "a100_sxm4_80"},
           {"mig", "layouts", "--device", "h100_sxm5_80"},
           {"mig", "predict", sweep, "--device", "a100_sxm4_40"}}) {
    const std::string command = words.front();
    seen.insert(command);
    INFO(fmt::format("{}", fmt::join(words, " ")));
    std::vector<std::string> for_help = {command, "--help"};
    if (command == "mig" || command == "calibrate") for_help.insert(for_help.begin() + 1, words[1]);
    const std::string help = test::rehearse(for_help).out;
    words.insert(words.begin(), "--quiet");
    const std::string screen = test::rehearse(words).out;
    CHECK(screen.find("\n\nHow this was computed\n  ") != std::string::npos);
    words.insert(words.begin(), {"--format", "json"});
    const Json json = Json::parse(test::rehearse(words).out);
    REQUIRE(!json["methods"].empty());
    for (const Json& method : json["methods"]) {
      CHECK(screen.find(method["meaning"].get<std::string>()) != std::string::npos);
      for (const Json& change : method["changes"]) {
        const std::string what = change["change"];
        INFO(what);
        CHECK((!what.starts_with("--") ||
               help.find("  " + what.substr(0, what.find_first_of(" ,")) + " ") !=
                   std::string::npos));
        CHECK(screen.find(what) != std::string::npos);
      }
    }
  }
  CHECK(listed_commands() == seen);
}

}  // namespace
}  // namespace rehearse
