// pack: the example, its JSON, and what is wrong with a file.
#include <catch2/catch.hpp>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using Catch::Contains;
using test::Json;
using test::Ran;

Json json_of(const std::string& file) {
  const Ran ran = test::rehearse({"pack", file, "--format", "json"});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  return Json::parse(ran.out);
}

Json packed(const std::string& text) {
  return json_of(test::write_scratch("p.yaml", text).string());
}

TEST_CASE("pack: the example shares where it gains") {
  const Json json = json_of("examples/fleets/pack.yaml");
  test::check_values(json);
  CHECK(json["per_job"].size() == 6);
  for (const Json& job : json["per_job"]) {
    CHECK(job["slowdown"] >= 1 - 1e-9);
    CHECK(job["finish"]["unit"] == "s");
  }
  bool slices = false, turns = false;
  for (const Json& placed : json["placements"]) {
    CHECK_FALSE(placed["why"].get<std::string>().empty());
    slices |= placed["how"] == "slices";
    turns |= placed["how"] == "crossover" && placed["gain"] == Approx(1.2).epsilon(0.01);
  }
  CHECK(slices);
  CHECK(turns);
  CHECK(json["cost_usd"] < json["cost_alone_usd"]);
  CHECK(json["gpu_time"]["value"] < json["gpu_time_alone"]["value"]);
}

TEST_CASE("pack: measured pairs, named in any order, decide") {
  const std::string jobs =
      "gpus: 1\ndevice: v100_sxm2_16\njobs:\n"
      "  - {job: a, duration: 100 s, memory: 4 GiB}\n"
      "  - {job: b, duration: 100 s, memory: 4 GiB}\n";
  CHECK(packed(jobs)["makespan"]["value"] == Approx(200));
  const Json together = packed(jobs + "pairs: [{a: b, b: a, share_a: 0.5, share_b: 0.8}]\n");
  CHECK(together["makespan"]["value"] == Approx(162.5));
  CHECK(together["placements"][0]["how"] == "together");
  CHECK(together["per_job"][0]["slowdown"] == Approx(1.25));
  // By a family: the pair of c and d is that of a and b.
  const std::string known =
      "gpus: 1\ndevice: v100_sxm2_16\njobs:\n"
      "  - {job: c, duration: 100 s, memory: 4 GiB, step: 1 s}\n"
      "  - {job: d, duration: 100 s, memory: 4 GiB, step: 1 s}\n";
  CHECK(packed(known)["makespan"]["value"] == Approx(100 / 0.525));
}

TEST_CASE("pack: mistakes of a file are one line each") {
  const auto refused = [](const std::string& text) {
    const Ran ran = test::rehearse({"pack", test::write_scratch("wrong.yaml", text).string()});
    CHECK(ran.code == 1);
    CHECK(ran.out.empty());
    return ran.errors;
  };
  const std::string head = "gpus: 2\ndevice: a100_sxm4_80\njobs:\n";
  CHECK_THAT(refused("gpus: 2\n"), Contains("device") && Contains("jobs"));
  CHECK_THAT(refused("gpus: 0\ndevice: a100_sxm4_80\njobs: []\n"),
             Contains(":1:") && Contains("0 GPUs"));
  CHECK_THAT(refused("gpus: 2\ndevice: a100_sxm4_81\njobs: []\n"), Contains("a100_sxm4_80"));
  CHECK_THAT(refused(head + "  - {job: a}\n"), Contains("wrong.yaml:4") && Contains("duration"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s, memory: 90 GiB}\n"), Contains("memory"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s, gpus: 3}\n"), Contains("1 to 2"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s, slices: {1g.11gb: 0.5}}\n"),
             Contains("1g.10gb"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s, slices: {1g.10gb: 1.5}}\n"),
             Contains("1 at most"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s, exposed: 1 ms}\n"),
             Contains("needs a step"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s, step: 1 ms, exposed: 2 ms}\n"),
             Contains("longer than the step"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s}\n  - {job: a, duration: 1 s}\n"),
             Contains("stands twice"));
  CHECK_THAT(refused(head + "  - {job: abc, duration: 1 s}\npairs: [{a: abd, b: abc, share_a: 2, "
                            "share_b: 1}]\n"),
             Contains("did you mean 'abc'?") && Contains("1 at most"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s}\ngoal: speed\n"), Contains("throughput"));
  CHECK_THAT(refused("gpus: 2\ndevice: a100_sxm4_80\njobs: []\n"), Contains("no job"));
}

}  // namespace
}  // namespace rehearse
