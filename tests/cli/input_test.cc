// input: the example, its JSON, and what is wrong with a file.
#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using Catch::Contains;
using test::Json;
using test::Ran;

Json analysed(const std::string& file) { return test::json_of({"input", file}); }

TEST_CASE("input: the example has its bottleneck and advice") {
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
  CHECK_THAT(bound.out, Contains("no setting of workers and threads is faster") &&
                            Contains("accelerator: at most"));
  CHECK_THAT(
      test::rehearse(
          {"input", test::write_scratch("most.yaml", "stages: [{name: a, time: 1 ms}]\n").string()})
          .out,
      Contains("bounded by threads of a; advice is limited to 64 workers by `most` of the stage"));
}

TEST_CASE(
    "input: a loop that limits the rate is named, with the number in flight that would be enough") {
  const std::string file =
      test::write_scratch("loop.yaml",
                          "loop: {in_flight: 4}\n"
                          "stages: [{name: step, workers: 16, time: 9 ms, ordered: false}, {name: "
                          "take, batch: 4, time: 1 ms, most: {workers: 1}}]\n")
          .string();
  const Json json = analysed(file);
  CHECK(json["bottleneck"] == "samples in flight");
  CHECK(json["rate"]["value"] == Approx(400).epsilon(0.01));
  const Json& advice = json["advice"];
  const auto more = std::find_if(advice.begin(), advice.end(),
                                 [](const Json& one) { return one["setting"] == "in_flight"; });
  REQUIRE(more != advice.end());
  CHECK((*more)["from"] == 4);
  CHECK((*more)["to"] > 16);
  CHECK(json["tuned"]["rate"]["value"] > 1500);
  CHECK_THAT(test::rehearse({"input", file}).out,
             Contains("samples in flight: at most") && Contains("in_flight from 4 to"));
}

TEST_CASE("input: the environment pools of the examples have the measured rates") {
  // Frames a second, four a step, of asynchronous pools with as many threads as cores: fitted.
  const std::vector<std::pair<std::string, double>> machines = {
      {"laptop", 48'400}, {"workstation", 189'000}, {"tpu_vm", 352'000}, {"dgx", 818'000}};
  for (const auto& [name, frames] : machines) {
    INFO(name);
    const Json json = analysed("examples/pipelines/envpool_" + name + ".yaml");
    CHECK(4 * json["rate"]["value"].get<double>() == Approx(frames).epsilon(0.03));
  }
}

TEST_CASE("input: advice that would take too long to simulate follows the law") {
  const std::string file =
      test::write_scratch("long.yaml",
                          "sources: [{name: s, latency: 1 ms}]\n"
                          "stages: [{name: fetch, time: 1 ms, read: {from: s, bytes: 1 MB}},\n"
                          "         {name: batch, batch: 4096, time: 60 s}]\n")
          .string();
  const Json json = analysed(file);
  CHECK_FALSE(json["advice"].empty());
  CHECK_FALSE(json["tuned"].contains("rate"));
  CHECK(json["tuned"]["allowed"]["value"] > json["rate"]["value"]);
  const Ran text = test::rehearse({"input", file});
  CHECK_THAT(text.out, Contains(": at most") && Contains("too long to simulate"));
}

TEST_CASE("input: a comment for a pull request begins with the rate and its bound") {
  const Ran ran =
      test::rehearse({"input", "examples/pipelines/imagenet_s3.yaml", "--format", "markdown"});
  CHECK_THAT(ran.out, Catch::StartsWith("**") && Contains("samples/s") && Contains("bounded by") &&
                          Contains("<details><summary>Stages</summary>"));
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

TEST_CASE("input: storage of the catalog by name, with overridden values") {
  const auto rate = [](const std::string& source) {
    return analysed(
        test::write_scratch("like.yaml", "sources: [{name: s, " + source +
                                             "}]\n"
                                             "stages: [{name: a, read: {from: s, bytes: 875 kB}}]\n"
                                             "samples: 1000\n")
            .string());
  };
  // 150 ms, 875 kB at 87.5 MB/s: 10 ms, and 5500 requests a second.
  constexpr double kAdmitted = 1.0 / 5500;
  const Json s3 = rate("like: s3_standard");
  CHECK(s3["rate"]["value"] == Approx(1 / (0.16 + kAdmitted)));
  CHECK(s3["request_cost_per_million_samples_usd"] == Approx(0.4));
  CHECK(s3["request_cost_per_epoch"]["value"] == Approx(0.0004));
  CHECK(s3["time_to_first"]["value"] == Approx(0.16 + kAdmitted));
  CHECK(rate("like: s3_standard, latency: 40 ms")["rate"]["value"] ==
        Approx(1 / (0.05 + kAdmitted)));
  CHECK(rate("like: s3_standard, usd_per_1000_requests: 0")["request_cost_per_epoch"]["value"] ==
        0);
  const Ran ran =
      test::rehearse({"input", test::write_scratch("like.yaml",
                                                   "sources: [{name: s, like: s3_standart}]\n"
                                                   "stages: [{name: a, time: 1 ms}]\n")
                                   .string()});
  test::check_failed(ran, 1, "did you mean 's3_standard'?");
}

TEST_CASE("input: measuring a folder gives a pipeline") {
  const auto folder = test::write_scratch("a.bin", std::string(5000, 'x')).parent_path();
  for (int i = 0; i < 20; ++i)
    test::write_file(folder / (std::to_string(i) + ".bin"), std::string(20000 + 100 * i, 'y'));
  const auto file = test::scratch_folder() / "measured.yaml";
  const Json json =
      test::document(test::rehearse({"input", "--measure", folder.string(), "--samples", "12",
                                     "--format", "json", "-o", file.string()}));
  test::check_values(json);
  CHECK(json["measured"]["files"] == 21);
  CHECK(json["measured"]["sampled"] == 12);
  CHECK(json["measured"]["jpeg"] == 0);
  CHECK(json["measured"]["size"]["max"]["value"] <= 21900);
  CHECK(json["measured"]["damaged"].empty());
  CHECK(json["predictions"][0]["workers"] == 1);
  CHECK(json["predictions"].back()["workers"] == json["measured"]["threads"]);
  // The file is a pipeline like any other.
  CHECK(test::text_of(file) == json["pipeline"]);
  CHECK(analysed(file.string())["rate"] == json["rate"]);
  const Ran text = test::rehearse({"input", "--measure", folder.string()});
  CHECK_THAT(text.out, Contains("21 files") && Contains("Predicted") && Contains("bottleneck ") &&
                           Contains("stages:\n  - name: load"));
}

TEST_CASE("input: a folder that cannot be measured is an error with the reason") {
  test::check_failed(test::rehearse({"input", "--measure", "no-such-folder"}), 1,
                     "no-such-folder: cannot be listed");
  test::check_failed(test::rehearse({"input", "--measure", "examples", "p.yaml"}), 2, "--measure");
  test::check_failed(test::rehearse({"input", "p.yaml", "--samples", "5"}), 2, "--measure");
  test::check_failed(test::rehearse({"input", "--measure", "examples", "--samples", "0"}), 2,
                     "--samples");
}

TEST_CASE("input: mistakes end with one line each") {
  const auto refused = [](const std::string& text) {
    const Ran ran = test::rehearse({"input", test::write_scratch("wrong.yaml", text).string()});
    CHECK(ran.code == 1);
    CHECK(ran.out.empty());
    return ran.errors;
  };
  CHECK_THAT(refused("stages: [{name: a, time: 5 m}]\n"), Contains("wrong.yaml:1:"));
  for (const char* threads : {"threads: 1024", "workers: 4, threads: 512"})
    CHECK_THAT(refused(fmt::format("sources: [{{name: s, latency: 1 ms}}]\n"
                                   "stages: [{{name: a, {}, read: {{from: s, bytes: 1 MB}}, "
                                   "time: 1 ms, serial: 1 us}}]\n",
                                   threads)),
               Contains("fewer threads than the") && Contains("'a'"));
  CHECK_THAT(refused("stages: [{name: a}]\n"), Contains("wrong.yaml: all stages take no time"));
  CHECK_THAT(refused("host: {cores: 1, memory: 1 MB}\n"
                     "stages: [{name: a, time: 1 ms, worker_memory: 2 MB}]\n"),
             Contains("wrong.yaml: ") && Contains("memory"));
  CHECK(test::rehearse({"input", "no-such.yaml"}).code == 1);
  CHECK(test::rehearse({"input"}).code == 2);
  CHECK_THAT(refused("stages: [{name: a, read: {from: s, bytes: 1 MB}}]\n"),
             Contains("'s' is not a source of this file; sources: [{name: …}]\n"));
  test::check_failed(test::rehearse({"input", test::scratch_folder().string()}), 1,
                     "is a folder; a pipeline file; --measure DIR");
}

}  // namespace
}  // namespace rehearse
