// whatif --input-pipeline FILE: in the breakdown, in JSON, in timelines, and what is refused.
#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using Catch::Contains;
using test::Json;
using test::kExample;
using test::Ran;
using test::value;

std::string pipeline(const std::string& text) {
  return test::write_scratch("p.yaml", text).string();
}

constexpr const char* kSlowLoading = "stages: [{name: load, time: 900 us}]\n";

Json with_input(std::vector<std::string> edits) {
  edits.insert(edits.begin(), {"whatif", kExample});
  return test::checked_json_of(std::move(edits));
}

TEST_CASE("whatif: steps of a recording wait for the pipeline in front of it") {
  // 720 us of work without the 280 us of loading.
  const Json slow = with_input({"--input-pipeline", pipeline(kSlowLoading), "--batch", "1"});
  CHECK(value(slow["step_time"]) == Approx(900e-6));
  CHECK(value(slow["breakdown"]["input"]) == Approx(180e-6));
  CHECK(value(slow["breakdown"]["total"]) == Approx(900e-6));
  CHECK(slow["change"].get<double>() == Approx(-0.1));
  CHECK(value(slow["baseline"]["breakdown"]["input"]) == Approx(280e-6));
  CHECK(slow["input_pipeline"]["takes_at"] == "loading ranges");
  CHECK(value(slow["input_pipeline"]["replaced"]) == Approx(280e-6));
  CHECK(slow["input_pipeline"]["bottleneck"] == "threads of load");
  CHECK(value(slow["input_pipeline"]["allowed"]) == Approx(1 / 900e-6));
  // After other edits: twice as fast a GPU saves 300 us of kernels, and the pipeline still bounds.
  const Json both = with_input(
      {"--input-pipeline", pipeline(kSlowLoading), "--batch", "1", "--scale", "kernel:0.5"});
  CHECK(value(both["step_time"]) == Approx(900e-6));
  CHECK(value(both["breakdown"]["input"]) > 400e-6);
  // What was removed by hand is not counted again.
  const Json removed = with_input({"--input-pipeline", pipeline(kSlowLoading), "--batch", "1",
                                   "--remove", "host=enumerate(DataLoader)*"});
  CHECK(removed["step_time"] == slow["step_time"]);
}

TEST_CASE("whatif: the output describes the pipeline in front of the recording") {
  const Ran ran = test::rehearse(
      {"whatif", kExample, "--input-pipeline", "examples/pipelines/two_workers.yaml"});
  CHECK(ran.code == 0);
  CHECK_THAT(ran.out, Contains("a rank requests 32 samples at each loading range") &&
                          Contains("instead of the 280 us") &&
                          Contains("1 recorded rank on a host") && Contains("threads of decode"));
  const std::string bare = test::write_scratch("bare.json", test::kineto_recording(5)).string();
  const Ran steps = test::rehearse(
      {"whatif", bare, "--input-pipeline", "examples/pipelines/two_workers.yaml", "--batch", "40"});
  CHECK(steps.code == 0);
  CHECK_THAT(steps.out, Contains("requests 40 samples at each start of a step") &&
                            Contains("--remove 'host=NAME"));
}

TEST_CASE("whatif: the wait for a pipeline is drawn on its thread") {
  const auto path = test::scratch_folder() / "timeline.json";
  REQUIRE(test::rehearse({"whatif", kExample, "--input-pipeline", pipeline(kSlowLoading), "--batch",
                          "1", "--perfetto", path.string()})
              .code == 0);
  double waited = 0;
  const Json json = Json::parse(test::text_of(path));
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] != "X") continue;
    CHECK(event["ts"].get<double>() >= 0);
    if (event["name"] == "wait for input") waited += event["dur"].get<double>();
  }
  CHECK(waited == Approx(3 * 180).epsilon(0.01));
  const auto page = test::scratch_folder() / "page.html";
  REQUIRE(test::rehearse({"whatif", kExample, "--input-pipeline", pipeline(kSlowLoading), "--batch",
                          "1", "--report", page.string()})
              .code == 0);
  CHECK_THAT(test::text_of(page), Contains("wait for input"));
}

TEST_CASE("whatif: a pipeline that cannot precede a recording is one line with the reason") {
  const auto refused = [](std::vector<std::string> edits, int code, const std::string& says) {
    edits.insert(edits.begin(), {"whatif", kExample});
    test::check_failed(test::rehearse(edits), code, says);
  };
  refused({"--input-pipeline", pipeline(kSlowLoading)}, 1, "--batch N, the number of samples");
  refused({"--input-pipeline", "no-such.yaml", "--batch", "1"}, 1, "no-such.yaml");
  refused({"--input-pipeline", pipeline("stages: [{name: a, tiem: 1 ms}]\n"), "--batch", "1"}, 1,
          "did you mean 'time'?");
  // Three steps of 32 samples each, out of units of 512: the first of them would be there for all.
  refused({"--input-pipeline", "examples/pipelines/imagenet_s3.yaml", "--batch", "32"}, 1,
          "consumes 96 samples, and 'batch' produces 512 at a time");
  refused({"--input-pipeline", "workers=2", "--batch", "1"}, 2, "--input-pipeline FILE");
  refused({"--scale", "gpu:2", "--batch", "1"}, 2, "--input-pipeline FILE");
  refused({"--input-pipeline", pipeline(kSlowLoading), "--batch", "0"}, 2, "--batch");
  refused({"--input-pipeline", pipeline(kSlowLoading), "--batch", "1", "--share-with", kExample}, 2,
          "excludes --share-with");
}

}  // namespace
}  // namespace rehearse
