// whatif with edits that rest on laws: their default times, notes, intervals and refusals.
#include <filesystem>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::value;

constexpr const char* kAttention = "examples/recordings/attention.json";
constexpr const char* kTwoLinears = "examples/recordings/two_linears.json";

Json whatif(std::vector<std::string> arguments, const char* recording = kAttention) {
  arguments.insert(arguments.begin(), {"whatif", recording});
  return test::checked_json_of(std::move(arguments));
}

void check_refused(std::vector<std::string> arguments, int code, const std::string& message) {
  arguments.insert(arguments.begin(), {"whatif", kAttention});
  test::check_failed(test::rehearse(arguments), code, message);
}

TEST_CASE("fused kernels: the default time has bounds and a note, a given time has neither") {
  const Json law = whatif({"--fuse", "range=mlp"});
  CHECK(value(law["step_time"]) == Approx(400e-6));
  // One kernel as long as the longest, 40 us, ends earlier than the host; all of them, 100 us, at
  // 422, and the host wakes 10 us later and works for 16.
  CHECK(law["step_time"]["low"].get<double>() < 400e-6);
  CHECK(law["step_time"]["high"].get<double>() > 448e-6);
  REQUIRE(law["notes"].size() == 1);
  CHECK(law["notes"][0].get<std::string>().starts_with("fused kernels: "));
  const Json given = whatif({"--fuse", "range=mlp:50us"});
  CHECK(given["step_time"]["value"] == law["step_time"]["value"]);
  CHECK_FALSE(given.contains("notes"));
  CHECK(given["step_time"]["high"].get<double>() < law["step_time"]["high"].get<double>());
}

TEST_CASE("fused attention is faster than its kernels, by the law of the recorded GPU") {
  const Json json = whatif({"--fuse", "range=attention", "--scale", "host:0.01"});
  // The host takes no time: 461 us from the first launch to the end of the last kernel remain.
  CHECK(value(json["step_time"]) < 300e-6);
  CHECK(value(json["step_time"]) > 105e-6);  // the other three kernels
  // Without a GPU of the catalog the law has no constants.
  const std::string text = test::text_of(test::source_file(kAttention));
  std::string unknown = text;
  unknown.replace(unknown.find("NVIDIA A100"), 11, "Example GPU");
  unknown.replace(unknown.find("-SXM4-80GB"), 10, "");
  const std::string path = test::write_scratch("unknown.json", unknown).string();
  test::check_failed(test::rehearse({"whatif", path, "--fuse", "range=attention"}), 1,
                     "give the time: --fuse SELECTOR:DURATION");
  test::check_failed(test::rehearse({"whatif", path, "--dtype", "kernel:fp32"}), 1,
                     "give the factor: --scale SELECTOR:FACTOR");
  CHECK(test::rehearse({"whatif", path, "--fuse", "range=mlp"}).code == 0);
}

TEST_CASE("kernels in another number format follow the laws, with casts") {
  const auto step = [](const char* edit) {
    return whatif({"--dtype", edit, "--scale", "host:0.01"})["step_time"];
  };
  const Json recorded = whatif({"--scale", "host:0.01"})["step_time"];
  CHECK(value(step("kernel=scale:fp16")) == Approx(value(recorded)).epsilon(1e-6));
  // Twice the bytes: twice the time, and a cast of the input from the product before it.
  const double longer = value(step("kernel=scale:fp32")) - value(recorded);
  CHECK(longer > 80e-6);
  CHECK(longer < 200e-6);
  // Elementwise kernels that follow each other cast only what the first reads.
  const double both = value(step("kernel=gelu:fp32")) - value(recorded);
  const double range = value(step("range=mlp:fp32")) - value(recorded);
  CHECK(range < 3 * both + 60e-6);
  check_refused({"--dtype", "kernel:fp12"}, 2, "unknown number format 'fp12'");
  check_refused({"--dtype", "kernel:fp8"}, 1, "a100_sxm4_80 has no matrix units for fp8; bf16");
}

TEST_CASE("a graph's launch has bounds unless it is given") {
  const Json law = whatif({"--graph", "range=mlp", "--scale", "gpu:0.01"});
  CHECK(law["notes"].size() == 1);
  CHECK(law["step_time"]["high"].get<double>() > 1.05 * value(law["step_time"]));
  CHECK_FALSE(whatif({"--graph", "range=mlp:19us"}).contains("notes"));
  check_refused({"--graph", "kernel"}, 2, "'kernel' is not a range; range=PATTERN[:DURATION]");
  check_refused({"--graph", "range=ProfilerStep*"}, 1,
                "cudaDeviceSynchronize in 'ProfilerStep*' waits for the device");
}

TEST_CASE("edits combine, and are applied in the order of their list") {
  const Json json = whatif({"--graph", "range=mlp:20us", "--fuse", "range=mlp:50us"});
  // The fused kernel starts at 322 and ends at 372; the host wakes at 382 and works for 16.
  CHECK(value(json["step_time"]) == Approx(398e-6));
  const Json summed =
      whatif({"--data-parallel", "2", "--network", "latency=10us,rate=100GB/s", "--bucket", "1GiB"},
             "examples/recordings/two_gradients.json");
  // Both gradients together, 60 MB, after the second: 2 x (10 + 300) us in place of 2 x 160 of
  // which the first overlapped.
  CHECK(value(summed["step_time"]) == Approx(1619e-6));
  check_refused({"--bucket", "1MiB"}, 1, "has no sums of gradients");
  check_refused({"--straggler", "5:2"}, 1, "the recording has no rank 5");
  check_refused({"--fuse", "range=nothing"}, 1, "'range=nothing' matches nothing");
}

TEST_CASE("an edit changes what the edits before it left") {
  const auto step = [](const char* recording, std::vector<std::string> edits) {
    return value(whatif(std::move(edits), recording)["step_time"]);
  };
  // Sums of 4 MB among two ranks take 2 x 10 us and 40 us. From 548 us on they run one after the
  // other, and the updates of 200 and 100 us follow the first.
  constexpr const char* kThreeSums = "examples/recordings/late_gradient.json";
  const std::vector<std::string> network = {"--network", "latency=10us,rate=100GB/s"};
  const auto on_network = [&](std::vector<std::string> edits) {
    edits.insert(edits.end(), network.begin(), network.end());
    return step(kThreeSums, std::move(edits));
  };
  CHECK(on_network({}) == Approx((548 + 60 + 300 + 12) * 1e-6));
  CHECK(on_network({"--scale", "collective:0.5"}) == Approx((548 + 30 + 300 + 12) * 1e-6));
  CHECK(on_network({"--insert", "collective:20us"}) == Approx((548 + 80 + 300 + 12) * 1e-6));
  CHECK(on_network({"--remove", "collective"}) == Approx((548 + 300 + 12) * 1e-6));
  CHECK(on_network({"--accumulation", "4"}) == Approx((548 + 15 + 75 + 12) * 1e-6));
  // One bucket of 12 MB: 20 us and 120 us.
  CHECK(on_network({"--bucket", "1GiB"}) == Approx((548 + 140 + 300 + 12) * 1e-6));
  CHECK(step(kThreeSums, {"--bucket", "1GiB"}) == Approx((548 + 900 + 300 + 12) * 1e-6));

  constexpr const char* kOptimizer = "examples/recordings/optimizer.json";
  // Backward of dropout takes 10 us more, after the 100 us of forward and a gap.
  CHECK(step(kOptimizer, {"--replace", "kernel=dropout_backward:60us", "--recompute",
                          "range=aten::dropout"}) == Approx((1000 + 10 + 101) * 1e-6));
  // The update of 120 instead of 160 us counts for a quarter.
  CHECK(step(kOptimizer, {"--replace", "kernel=add_*:20us", "--accumulation", "4"}) ==
        Approx((1000 - 160 + 30) * 1e-6));
  // Sums that data-parallel ranks add count for a quarter as well: at this latency they decide.
  const auto ranks = [&](std::vector<std::string> edits, const char* latency) {
    edits.insert(edits.end(), {"--data-parallel", "2", "--bucket", "1GiB", "--network",
                               fmt::format("latency={},rate=100GB/s", latency)});
    return step(kTwoLinears, std::move(edits));
  };
  CHECK(ranks({"--accumulation", "4"}, "40ms") - ranks({"--accumulation", "4"}, "20ms") ==
        Approx((ranks({}, "40ms") - ranks({}, "20ms")) / 4).epsilon(1e-3));
  CHECK(step(kOptimizer, {"--recompute", "range=aten::*"}) == Approx((1000 + 302) * 1e-6));
  test::check_failed(test::rehearse({"whatif", kOptimizer, "--remove", "kernel=dropout", "--insert",
                                     "kernel=dropout:20us"}),
                     1, "'kernel=dropout' matches only work that another edit takes away");
}

TEST_CASE("products in FP8 quantise their inputs once, whatever made them") {
  std::string text = test::text_of(test::source_file(kAttention));
  text.replace(text.find("NVIDIA A100-SXM4-80GB"), 21, "NVIDIA H100 80GB HBM3");
  const std::string h100 = test::write_scratch("h100.json", text).string();
  const auto step = [&](const char* edit) {
    return value(whatif({"--scale", "host:0.01", "--dtype", edit}, h100.c_str())["step_time"]);
  };
  // With the softmax before it in FP8 too, the product of scores and values has no input to cast.
  const double recorded = step("kernel=softmax:fp16");
  CHECK(step("kernel=gemm_values:fp8") - recorded ==
        Approx(step("kernel=*m*a*:fp8") - step("kernel=softmax:fp8")).margin(1e-7));
}

/// Two blocks of 500 + 600 + 200 us forward and 2 x 500 + 1400 + 2 x 200 us backward, with gaps of 1 us,
/// and an update of 100 us. The device is the bottleneck.
constexpr const char* kTwoBlocks = "examples/recordings/two_blocks.json";

TEST_CASE("passes as recorded change nothing") {
  const Json recorded = whatif({"--scale", "gpu:1"}, kTwoBlocks);
  for (const char* edit : {"--samples=8", "--sequence=2048", "--accumulation=1"}) {
    INFO(edit);
    const Json json = whatif({edit}, kTwoBlocks);
    CHECK(value(json["step_time"]) == Approx(value(recorded["step_time"])).epsilon(1e-12));
    CHECK(json["notes"].size() == 1);
  }
}

TEST_CASE("passes of another size follow the laws") {
  const auto step = [](std::vector<std::string> edits) {
    return whatif(std::move(edits), kTwoBlocks)["step_time"];
  };
  const double recorded = value(step({"--scale", "gpu:1"}));
  const Json samples = step({"--samples", "16"}), tokens = step({"--sequence", "4096"});
  // Products and attention of twice the samples take nearly twice the time.
  CHECK(value(samples) > 1.85 * recorded);
  CHECK(value(samples) < 2.0 * recorded);
  // The 4000 us of attention grow with the square of the tokens: four instead of two times the
  // work, at a rate that is higher for longer sequences.
  CHECK(value(tokens) - value(samples) > 1.5 * 4000e-6);
  CHECK(value(tokens) - value(samples) < 2 * 4000e-6);
  CHECK(samples["low"].get<double>() < value(samples));
  CHECK(value(step({"--samples", "4", "--scale", "host:0.01"})) > 0.5 * recorded);
  const double both = value(step({"--samples", "16", "--accumulation", "4"}));
  CHECK(value(samples) - both == Approx(75e-6).epsilon(1e-9));
}

TEST_CASE("accumulated passes have a share of the update") {
  const Json json = whatif({"--accumulation", "4"}, kTwoBlocks);
  CHECK(value(json["step_time"]) == Approx(8400e-6 - 0.75 * 100e-6).epsilon(1e-9));
  CHECK(json["notes"][0].get<std::string>().starts_with("accumulation: "));
}

TEST_CASE("forward of a range runs again in backward") {
  const auto step = [](const char* range) {
    return value(whatif({"--recompute", range}, kTwoBlocks)["step_time"]);
  };
  CHECK(step("range=layers.0") == Approx(8400e-6 + 1300e-6 + 3e-6).epsilon(1e-9));
  CHECK(step("range=layers.*") == Approx(8400e-6 + 2 * 1303e-6).epsilon(1e-9));
}

/// Two ranks on CPUs, 1 ms per step. gloo sums 1 MiB in 30 us and 3 MiB in 70 us, so that 10 us are fixed;
/// the second sum begins at 610 us, and the update 10 us after it.
std::string summing_ranks() {
  const std::filesystem::path folder = test::write_scratch("marker", "").parent_path() / "sums";
  std::filesystem::create_directories(folder);
  for (int rank = 0; rank < 2; ++rank) {
    std::string text = R"({"schemaVersion": 1, "traceEvents": [)";
    for (int step = 0; step < 3; ++step) {
      const auto add = [&](const char* category, const std::string& name, int thread, int from,
                           int duration, const char* args = "") {
        text += fmt::format(
            R"({}{{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}})",
            text.ends_with('[') ? "" : ", ", category, name, thread,
            1700000000000000 + step * 1000 + from, duration, args);
      };
      const char* const floats = R"("Input type": ["float"], "Input Dims": )";
      add("user_annotation", fmt::format("ProfilerStep#{}", step), 1, 0, 1000);
      add("cpu_op", "aten::mm", 1, 0, 300,
          R"("Sequence number": 1, "Fwd thread id": 0, "Input Dims": [[64, 512], [512, 512]], "Input type": ["float", "float"])");
      add("cpu_op", "MmBackward0", 1, 300, 300, R"("Sequence number": 1, "Fwd thread id": 1)");
      add("cpu_op", "aten::mm", 1, 305, 290,
          R"("Input Dims": [[512, 64], [64, 512]], "Input type": ["float", "float"])");
      add("user_annotation", "gloo:all_reduce", 2, 400, 30,
          fmt::format("{}[[262144]]", floats).c_str());
      add("user_annotation", "gloo:all_reduce", 2, 610, 70,
          fmt::format("{}[[786432]]", floats).c_str());
      add("cpu_op", "aten::add_", 1, 690, 300);
    }
    test::write_file(folder / fmt::format("rank{}.json", rank), text + "]}");
  }
  return folder.string();
}

TEST_CASE("recorded sums of gradients join in larger buckets") {
  const std::string ranks = summing_ranks();
  const Json json = whatif({"--bucket", "4MiB"}, ranks.c_str());
  CHECK(value(json["baseline"]["simulated"]) == Approx(1000e-6));
  // 4 MiB take 30 + 70 - 10 us from 610 us on.
  CHECK(value(json["step_time"]) == Approx(1020e-6));
  CHECK(json["notes"][0].get<std::string>().starts_with("sums of gradients in larger buckets"));
  test::check_failed(test::rehearse({"whatif", ranks, "--bucket", "1MiB"}), 1,
                     "has sums of gradients of 1.00 MiB or more, and recorded sums only join");
}

TEST_CASE("edits of passes take operators on threads as kernels where no device was recorded") {
  // Of 650 us of work and a sum of 10 us, the update takes 60 us, of them 40 in an operator.
  const auto step = [](std::vector<std::string> edit) {
    return value(whatif(std::move(edit), "examples/cpu_ranks")["step_time"]);
  };
  CHECK(step({"--samples", "16"}) == Approx(1000e-6 + 590e-6 + 10e-6).epsilon(1e-3));
  CHECK(step({"--accumulation", "4"}) == Approx(1000e-6 - 0.75 * 60e-6));
  // Rank 0 takes 950 us more. It comes to the sum after 580 us instead of 290, and rank 1 after 310:
  // the mean of the ranks is that of 950 and 270 us more.
  CHECK(step({"--straggler", "0:2"}) == Approx(1610e-6));
}

TEST_CASE("without a checkpoint backward runs nothing again") {
  // One kernel of 100 us and its gap less.
  const Json json = whatif({"--keep", "range=layers.0"}, "examples/recordings/checkpoint.json");
  CHECK(value(json["step_time"]) == Approx(499e-6));
}

TEST_CASE("edits of passes are refused where the recording does not tell") {
  const auto refused = [](std::vector<std::string> arguments, int code, const char* message) {
    arguments.insert(arguments.begin(), {"whatif", kTwoBlocks});
    test::check_failed(test::rehearse(arguments), code, message);
  };
  refused({"--samples", "0"}, 2, "'0' is not a count; a whole number from 1 to 1000000000");
  refused({"--sequence", "8.5"}, 2, "'8.5' is not a count");
  refused({"--sequence", "8", "--sequence", "9"}, 2, "--sequence can be given once");
  refused({"--recompute", "kernel"}, 2, "'kernel' is not a range; range=PATTERN");
  refused({"--recompute", "range=Optimizer*"}, 1,
          "'range=Optimizer*' has no work in both forward and backward");
  refused({"--keep", "range=layers.0"}, 1,
          "the backward pass of 'range=layers.0' recomputes nothing");
  test::check_failed(test::rehearse({"whatif", kAttention, "--sequence", "1024"}), 1,
                     "its samples have no tokens");
  test::check_failed(test::rehearse({"whatif", kAttention, "--accumulation", "2"}), 1,
                     "has no update of parameters after a backward pass");
  // A sum of half the size of an output that tensor ranks sum.
  std::string rank = test::text_of(test::source_file("examples/ranks/rank0.json"));
  for (std::size_t at = 0; (at = rank.find("msg nelems\": 196608", at)) != std::string::npos;)
    rank.replace(at, 19, "msg nelems\": 98304");
  test::check_failed(
      test::rehearse(
          {"whatif", test::write_scratch("half.json", rank).string(), "--samples", "16"}),
      1, "does not tell the plan it was recorded under: 1 all-reduce of 384 KiB among ranks 0, 1");
}

TEST_CASE("messages of activations grow with the passes of tensor ranks") {
  const Json json = whatif({"--samples", "16"}, "examples/ranks");
  const Json &edited = json["breakdown"], &recorded = json["baseline"]["breakdown"];
  // Copies of 30 and 50 us, and a sum of 15 us from the arrival of the last rank, take twice the time.
  CHECK(value(recorded["exposed_communication"]) == Approx(15e-6));
  CHECK(value(edited["exposed_communication"]) == Approx(30e-6));
  CHECK(value(edited["memory"]) == Approx(2 * 40e-6));
  const double more = value(edited["compute"]) - value(recorded["compute"]);
  CHECK(value(json["step_time"]) == Approx(520e-6 + more + 50e-6 + 15e-6));
  // The sum is none of gradients, which would have a quarter of its time.
  const Json fewer = whatif({"--accumulation", "4"}, "examples/ranks");
  CHECK(value(fewer["breakdown"]["exposed_communication"]) == Approx(15e-6));
}

TEST_CASE("simulate: edits of the layers of a recording") {
  const auto simulated = [](const std::string& edits) {
    const std::string text = "workload: {recording: " + test::source_file(kTwoBlocks).string() +
                             edits + "}\ntraining: {global_batch: 8}\n" +
                             "cluster: {device: a100_sxm4_80, devices_per_node: 1, nodes: 1}\n";
    return test::rehearse(
        {"simulate", test::write_scratch("job.yaml", text).string(), "--format", "json"});
  };
  const auto step = [&](const std::string& edits) {
    const test::Ran run = simulated(edits);
    REQUIRE(run.code == 0);
    return value(Json::parse(run.out)["step_time"]);
  };
  const double recorded = step("");
  CHECK(step(", sequence: 2048") == recorded);
  // As in whatif, but idle time per kernel is that of the recorded step.
  const double edited = value(whatif({"--sequence", "4096"}, kTwoBlocks)["step_time"]);
  CHECK(step(", sequence: 4096") == Approx(edited).epsilon(0.01));
  CHECK(step(", recompute_layers: [layers.0]") - recorded == Approx(1300e-6).epsilon(0.03));
  test::check_failed(simulated(", recompute_layers: [layers.7]"), 1,
                     "no layer is named 'layers.7'");
  test::check_failed(simulated(", keep_layers: [layers.0]"), 1,
                     "no layer of 'layers.0' runs operations again");
  test::check_failed(simulated(", sequence: 0"), 1,
                     "sequence: 0 is out of range; 1 to 1e+09 tokens");
}

TEST_CASE("simulate: another number format changes the times of a recording") {
  const auto step = [](const char* format) {
    const std::string text = "workload: {recording: " + test::source_file(kTwoLinears).string() +
                             "}\ntraining: {global_batch: 8" + format +
                             "}\ncluster: {device: v100_sxm2_32, devices_per_node: 1, nodes: 1}\n";
    return test::json_of({"simulate", test::write_scratch("job.yaml", text).string()});
  };
  const double recorded = value(step("")["step_time"]);
  CHECK(value(step(", dtype: fp32")["step_time"]) == recorded);
  CHECK(value(step(", dtype: fp16")["step_time"]) < 0.9 * recorded);
}

}  // namespace
}  // namespace rehearse
