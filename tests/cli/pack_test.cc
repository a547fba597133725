// pack: the example, its JSON, and what is wrong with a file.
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using Catch::Contains;
using test::Json;
using test::json_of;
using test::Ran;

Json packed(const std::string& text) {
  return json_of({"pack", test::write_scratch("p.yaml", text).string()});
}

TEST_CASE("pack: the example shares GPUs where sharing helps") {
  const Json json = json_of({"pack", "examples/fleets/pack.yaml"});
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
  // Nothing is known of pairs on this GPU: time slicing.
  const std::string known =
      "gpus: 1\ndevice: p100_pcie_16\njobs:\n"
      "  - {job: c, duration: 100 s, memory: 4 GiB, step: 1 s}\n"
      "  - {job: d, duration: 100 s, memory: 4 GiB, step: 1 s}\n";
  const Json sliced = packed(known);
  CHECK(sliced["makespan"]["value"] == Approx(100 / 0.525));
  CHECK_THAT(sliced["placements"][0]["why"].get<std::string>(),
             Contains("without a measured pair"));
}

TEST_CASE("pack: shipped pairs of a GPU are used by default") {
  const auto file = [](const std::string& device, const std::string& family) {
    return "gpus: 1\ndevice: " + device +
           "\njobs:\n"
           "  - {job: a, duration: 100 s, memory: 4 GiB, step: 56 ms, family: ResNet-18, batch: "
           "128}\n"
           "  - {job: b, duration: 100 s, memory: 4 GiB, step: 22 ms, family: " +
           family + ", batch: 40}\n";
  };
  // ResNet-18 keeps its speed with a language model on V100; on K80 they take turns.
  const Json v100 = packed(file("v100_sxm2_16", "LM"))["placements"][0];
  CHECK(v100["how"] == "together");
  CHECK(v100["rates"][0].get<double>() > 0.95);
  CHECK_THAT(v100["why"].get<std::string>(),
             Contains("from measured pairs of the same families on v100_sxm2_16"));
  const Json k80 = packed(file("k80", "LM"))["placements"][0];
  CHECK(k80["rates"][0].get<double>() < 0.8);
  // Of a family that was never measured only the other's part is known.
  const Json stranger = packed(file("v100_sxm2_32", "Mine"))["placements"][0];
  CHECK_THAT(stranger["why"].get<std::string>(), Contains("pairs of other families"));
  // A pair of the file goes before, and says something of other batches.
  const Json own = packed(file("v100_sxm2_16", "LM") +
                          "pairs: [{a: a, b: b, share_a: 0.6, share_b: 0.6}]\n")["placements"][0];
  CHECK(own["rates"][0].get<double>() == Approx(0.6));
}

TEST_CASE("pack: which pairs to measure") {
  const std::string path =
      test::write_scratch("m.yaml",
                          "gpus: 1\ndevice: v100_sxm2_16\njobs:\n"
                          "  - {job: a, duration: 9 s, memory: 4 GiB, step: 1 s}\n"
                          "  - {job: b, duration: 9 s, memory: 4 GiB, step: 1 s}\n"
                          "  - {job: c, duration: 9 s, memory: 4 GiB, step: 1 s}\n"
                          "  - {job: wide, duration: 9 s, memory: 14 GiB, step: 1 s}\n"
                          "  - {job: bare, duration: 9 s, memory: 1 GiB}\n"
                          "pairs: [{a: a, b: b, share_a: 0.5, share_b: 0.5}]\n")
          .string();
  const Ran ran = test::rehearse({"pack", path, "--measure", "9", "--format", "json"});
  INFO(ran.errors);
  const Json json = Json::parse(ran.out);
  // One of the three pairs that fit together was measured.
  REQUIRE(json["measure"].size() == 2);
  for (const Json& pair : json["measure"]) CHECK(pair[1] == "c");
  CHECK_THAT(test::rehearse({"pack", path, "--measure", "1"}).out,
             Contains("Pairs to measure, the most informative first\n  a with c"));
  CHECK(test::rehearse({"pack", path, "--measure", "0"}).code == 2);
}

TEST_CASE("pack: the maximum number of jobs on a GPU without a law") {
  std::string text = "gpus: 1\ndevice: p100_pcie_16\njobs:\n";
  for (int j = 0; j < 36; ++j)
    text += fmt::format("  - {{job: j{}, duration: 9 s, memory: 4 GiB, step: 1 s}}\n", j);
  CHECK(packed(text)["measure"].empty());
  // 630 pairs are too many to choose from, which nobody asked for above.
  test::check_failed(
      test::rehearse({"pack", test::write_scratch("many.yaml", text).string(), "--measure", "1"}),
      1, "many.yaml: 630 pairs");
}

TEST_CASE("pack: a rate that the file gives is of that slice alone") {
  // Two of 2g.10gb at the rate given, which only one of the two has; the other by its share.
  const Json placed = packed(
      "gpus: 1\ndevice: a100_sxm4_40\ngoal: cost\njobs:\n"
      "  - {job: a, duration: 100 s, memory: 8 GiB, slices: {1g.5gb: 0.9, 2g.10gb: 0.95}}\n"
      "  - {job: b, duration: 100 s, memory: 8 GiB, step: 10 ms, host: 9.9 ms, "
      "slices: {1g.5gb: 0.9}}\n")["placements"][0];
  REQUIRE(placed["how"] == "slices");
  const std::string why = placed["why"];
  for (const Json& slice : placed["slices"]) CHECK(slice != "1g.5gb");
  CHECK_THAT(why, Contains("as given") && Contains("from a step and its host"));
}

TEST_CASE("pack: rates on slices follow from the known data of a job") {
  const auto rates = [](const std::string& known) {
    const Json json = packed(
        "gpus: 1\ndevice: a100_sxm4_40\ngoal: cost\njobs:\n"
        "  - {job: a, duration: 100 s, memory: 1 GiB, " +
        known + "}\n  - {job: b, duration: 100 s, memory: 1 GiB, slices: {1g.5gb: 1}}\n");
    return json["placements"][0];
  };
  // The host decides: nothing is lost on a slice.
  const Json idle = rates("step: 10 ms, host: 10 ms");
  CHECK(idle["how"] == "slices");
  CHECK(idle["rates"][0].get<double>() == Approx(1));
  CHECK_THAT(idle["why"].get<std::string>(),
             Contains("a step and its host") && Contains("as given"));
  const Json busy = rates("step: 10 ms, host: 9.8 ms, work: transformer");
  REQUIRE(busy["how"] == "slices");
  CHECK(busy["rates"][0].get<double>() < 1);
  CHECK(busy["ranges"][0][0] < busy["rates"][0]);
  CHECK(busy["ranges"][0][1] > busy["rates"][0]);
  const Json swept =
      rates("batch: 1, sweep: " + test::source_file("examples/sharing/steps.csv").string());
  CHECK(swept["rates"][0].get<double>() > 0.9);
  CHECK_THAT(swept["why"].get<std::string>(), Contains("from a sweep"));
}

TEST_CASE("pack: jobs in turns share their links") {
  const auto gain = [](const std::string& links, const std::string& more) {
    std::string text = "gpus: 4\ndevice: a100_sxm4_80\n" + links + "jobs:\n";
    for (const char* name : {"a", "b"})
      text += std::string("  - {job: ") + name +
              ", duration: 100 s, gpus: 4, memory: 30 GiB, step: 190 ms, exposed: 90 ms" + more +
              "}\n";
    return packed(text)["placements"][0]["gain"].get<double>();
  };
  CHECK(gain("links: apart\n", "") == Approx(1.9).epsilon(0.02));
  // 150 ms of the links for 190 ms alone.
  CHECK(gain("", ", communication: 150 ms") < 190.0 / 150 * 1.02);
  CHECK(gain("links: first_come\n", ", communication: 150 ms") ==
        Approx(190.0 / 150).epsilon(0.02));
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
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s, step: 1 ms, exposed: 0.5 ms, "
                            "communication: 2 ms}\n"),
             Contains("communication"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s, host: 2 ms}\n"), Contains("needs a step"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s, step: 1 ms, host: 2 ms}\n"),
             Contains("longer than the step"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s, sweep: nowhere.csv}\n"),
             Contains("wrong.yaml:4") && Contains("nowhere.csv"));
  // All that is wrong with a file that is named, with its own lines.
  const auto named = [](const std::string& file, const std::string& text) {
    return test::write_scratch(file, text).string();
  };
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s, sweep: " +
                     named("sweep.csv", "profile,batch,step_time_ms\n7g.80gb,1,0\n") + "}\n"),
             Contains("wrong.yaml:4") && Contains("sweep.csv:2: step_time_ms: "));
  CHECK_THAT(
      refused(head + "  - {job: a, steps: 3, predict: " +
              named("job.yaml", "workload: {model: alexnet}\ntraning: {}\nplna: {}\n") + "}\n"),
      Contains("job.yaml:2:1: traning") && Contains("job.yaml:3:1: plna"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s, work: transformer}\n"),
             Contains("without sweep or host"));
  CHECK_THAT(refused("gpus: 1\ndevice: v100_sxm2_16\njobs: [{job: a, duration: 1 s, step: 1 s, "
                     "host: 1 ms}]\n"),
             Contains("'v100_sxm2_16' has no slices"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s}\nlinks: far\n"), Contains("fair"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s}\n  - {job: a, duration: 1 s}\n"),
             Contains("appears twice"));
  CHECK_THAT(refused(head + "  - {job: abc, duration: 1 s}\npairs: [{a: abd, b: abc, share_a: 2, "
                            "share_b: 1}]\n"),
             Contains("did you mean 'abc'?") && Contains("1 at most"));
  CHECK_THAT(refused(head + "  - {job: a, duration: 1 s}\ngoal: speed\n"), Contains("throughput"));
  CHECK_THAT(refused("gpus: 2\ndevice: a100_sxm4_80\njobs: []\n"), Contains("no job"));
}

}  // namespace
}  // namespace rehearse
