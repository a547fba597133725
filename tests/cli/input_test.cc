// input: the example, its JSON, and what is wrong with a file.
#include <catch2/catch.hpp>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using Catch::Contains;
using test::Json;
using test::Ran;

Json analysed(const std::string& file) {
  const Ran ran = test::rehearse({"input", file, "--format", "json"});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  return Json::parse(ran.out);
}

TEST_CASE("input: the example says what bounds it and what would help") {
  const Json json = analysed("examples/pipelines/imagenet_s3.yaml");
  test::check_values(json);
  for (const char* path : {"rate", "bottleneck", "stages[].name", "advice[].text"})
    test::check_has(json, path);
  CHECK(json["bottleneck"] == json["limits"][0]["what"]);
  CHECK(json["tuned"]["rate"]["value"] > json["rate"]["value"]);
  // 1000 requests cost 0.0004 USD: a million 0.40.
  CHECK(json["request_cost_per_million_samples_usd"] == Approx(0.4));
  CHECK(json["stall"] > 0);
  for (const Json& stage : json["stages"]) {
    CHECK(stage["busy"] >= 0);
    CHECK(stage["busy"] <= 1);
  }
}

TEST_CASE("input: advice removes the bottleneck, and says so where it cannot") {
  const Json slow =
      analysed(test::write_scratch(
                   "slow.yaml",
                   "stages: [{name: decode, workers: 2, time: 10 ms}, {name: use, time: 1 ms, "
                   "most: {workers: 1}}]\n")
                   .string());
  CHECK(slow["rate"]["value"] == Approx(200).epsilon(0.01));
  CHECK(slow["bottleneck"] == "threads of decode");
  REQUIRE_FALSE(slow["advice"].empty());
  CHECK(slow["advice"][0]["stage"] == "decode");
  CHECK(slow["advice"][0]["setting"] == "workers");
  CHECK(slow["advice"][0]["from"] == 2);
  CHECK(slow["advice"][0]["to"] >= 10);
  CHECK(slow["tuned"]["rate"]["value"] == Approx(1000).epsilon(0.02));
  const Ran bound = test::rehearse(
      {"input", test::write_scratch("bound.yaml",
                                    "stages: [{name: a, time: 1 ms}]\naccelerator: {step: 9 ms}\n")
                    .string()});
  CHECK(bound.code == 0);
  CHECK_THAT(bound.out, Contains("no setting of workers and threads makes it faster") &&
                            Contains("bottleneck: accelerator"));
}

TEST_CASE("input: the same file gives the same bytes") {
  const std::string file =
      test::write_scratch("random.yaml",
                          "stages: [{name: a, workers: 4, time: {mean: 4 ms, exponential: 1}},\n"
                          "         {name: b, time: {mean: 1 ms, lognormal: 1}, ordered: false}]\n")
          .string();
  const auto once = [&] { return test::rehearse({"input", file, "--format", "json"}).out; };
  const std::string first = once();
  CHECK_FALSE(first.empty());
  CHECK(once() == first);
}

TEST_CASE("input: mistakes end with one line each") {
  const auto refused = [](const std::string& text) {
    const Ran ran = test::rehearse({"input", test::write_scratch("wrong.yaml", text).string()});
    CHECK(ran.code == 1);
    CHECK(ran.out.empty());
    return ran.errors;
  };
  CHECK_THAT(refused("stages: [{name: a, time: 5 m}]\n"), Contains("wrong.yaml:1:"));
  CHECK_THAT(refused("stages: [{name: a}]\n"), Contains("wrong.yaml: no stage takes any time"));
  CHECK_THAT(refused("host: {cores: 1, memory: 1 MB}\n"
                     "stages: [{name: a, time: 1 ms, worker_memory: 2 MB}]\n"),
             Contains("wrong.yaml: ") && Contains("memory"));
  CHECK(test::rehearse({"input", "no-such.yaml"}).code == 1);
  CHECK(test::rehearse({"input"}).code == 2);
}

}  // namespace
}  // namespace rehearse
