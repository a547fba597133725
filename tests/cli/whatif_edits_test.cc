// whatif with edits that rest on laws: their default times, notes, intervals and refusals.
#include <catch2/catch.hpp>

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
}

TEST_CASE("a graph's launch has bounds unless it is given") {
  const Json law = whatif({"--graph", "range=mlp", "--scale", "gpu:0.01"});
  CHECK(law["notes"].size() == 1);
  CHECK(law["step_time"]["high"].get<double>() > 1.05 * value(law["step_time"]));
  CHECK_FALSE(whatif({"--graph", "range=mlp:19us"}).contains("notes"));
  check_refused({"--graph", "kernel"}, 2, "'kernel' is no range; range=PATTERN[:DURATION]");
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
  check_refused({"--bucket", "1MiB"}, 2, "--bucket requires --data-parallel");
  check_refused({"--straggler", "5:2"}, 1, "the recording has no rank 5");
  check_refused({"--fuse", "range=nothing"}, 1, "'range=nothing' matches nothing");
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
