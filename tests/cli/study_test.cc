// study: points, verdicts and exit codes, and what it refuses.
#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"
#include "tests/support/study_run.h"

namespace rehearse {
namespace {

using test::Json;
using test::Ran;
using test::run_study;
using test::study_json;

/// Two layouts of one network on four devices; both sides of a line can be replaced.
std::string study_text(const std::string& from = "", const std::string& to = "") {
  return test::replaced(
      "name: small\n"
      "source: made up\n"
      "fidelity: closed\n"
      "sweep:\n"
      "  batch: [8, 16]\n"
      "  network:\n"
      "    - {model: alexnet, convolutional: 8}\n"
      "    - {model: vgg11, convolutional: 13}\n"
      "base:\n"
      "  workload: {model: $model}\n"
      "  training: {global_batch: $(batch * 3), microbatch: $batch, dtype: fp32}\n"
      "  cluster: {device: v100_sxm2_16, nodes: 4, inter_node: ethernet}\n"
      "jobs:\n"
      "  together:\n"
      "    plan: {data: 3}\n"
      "  apart:\n"
      "    plan: {stages: [{name: a, layers: $convolutional, data: 3}, {name: b}]}\n"
      "measure:\n"
      "  gain: step_time(together) / step_time(apart)\n"
      "  same: (throughput(apart) + throughput(apart)) / throughput(apart)\n"
      "expect:\n"
      "  measure: same\n"
      "  value: 2\n"
      "  tolerance: 0.001\n",
      from, to);
}

std::string verdict_of(const std::string& text, int code) {
  return study_json(text, code)["studies"][0]["verdict"].get<std::string>();
}

TEST_CASE("study: every combination is a point, and the last axis varies fastest") {
  const Json json = study_json(study_text(), 0);
  for (const char* key :
       {"schema", "command", "studies[].name", "studies[].expected.low", "studies[].expected.high",
        "studies[].source", "studies[].got.least.value", "studies[].got.most.value",
        "studies[].tolerance", "studies[].verdict", "studies[].points[].parameters[].name",
        "studies[].points[].measured[].got.value", "studies[].points[].jobs[].step_time.value",
        "studies[].points[].jobs[].ranks", "studies[].points[].jobs[].fits"})
    test::check_has(json, key);
  const Json& points = json["studies"][0]["points"];
  REQUIRE(points.size() == 4);
  const auto value = [&](std::size_t point, std::size_t parameter) {
    return points[point]["parameters"][parameter]["setting"].get<std::string>();
  };
  CHECK(value(0, 0) == "8");
  CHECK(value(0, 1) == "alexnet");
  CHECK(value(0, 2) == "8");
  CHECK(value(1, 0) == "8");
  CHECK(value(1, 1) == "vgg11");
  CHECK(value(1, 2) == "13");
  CHECK(value(2, 0) == "16");
  for (const Json& point : points) {
    const double together = point["jobs"][0]["step_time"]["value"],
                 apart = point["jobs"][1]["step_time"]["value"];
    CHECK(point["measured"][0]["got"]["value"].get<double>() == Approx(together / apart));
    CHECK(point["measured"][1]["got"]["value"].get<double>() == Approx(2));
    CHECK(point["jobs"][0]["ranks"] == 3);
    CHECK(point["jobs"][1]["ranks"] == 4);
  }
}

TEST_CASE("study: a job at a point has the result of simulate") {
  const Json json = study_json(study_text(), 0);
  const std::string job = test::write_scratch("job.yaml",
                                              "workload: {model: vgg11}\n"
                                              "training: {global_batch: 48, microbatch: 16, "
                                              "dtype: fp32}\n"
                                              "plan: {stages: [{name: a, layers: 13, data: 3}, "
                                              "{name: b}]}\n"
                                              "cluster: {device: v100_sxm2_16, nodes: 4, "
                                              "inter_node: ethernet}\n")
                              .string();
  const Ran ran =
      test::rehearse({"simulate", job, "--fidelity", "closed", "--format", "json", "--quiet"});
  REQUIRE(ran.code == 0);
  CHECK(json["studies"][0]["points"][3]["jobs"][1]["step_time"] ==
        Json::parse(ran.out)["step_time"]);
}

/// A study of a published number of a measure that is 1 and 2 over the sweep.
std::string cited(const std::string& expect, const std::string& kind = "paper") {
  std::string text = study_text("source: made up", "source: made up\nsource_kind: " + kind);
  text.replace(text.find("  same:"), text.find("expect:") - text.find("  same:"),
               "  same: batch / 8\n");
  return text.substr(0, text.find("  value:")) + expect;
}

TEST_CASE("study: the verdict follows from source, kind, tolerance and result") {
  const std::string near = "  value: 2\n  at: {batch: 16}\n  tolerance: 0.1\n";
  const std::string far = "  value: 1.5\n  tolerance: 0.1\n";
  CHECK(verdict_of(cited(near), 0) == "reproduced");
  CHECK(verdict_of(cited(far), 0) == "inside the span");
  CHECK(verdict_of(cited(far + "  at: {batch: 16}\n"), 1) == "missed");
  CHECK(verdict_of(cited("  value: 2.5\n  tolerance: 0.1\n"), 1) == "missed");
  CHECK(verdict_of(cited(near + "  kind: mechanism\n"), 0) == "mechanism");
  CHECK(verdict_of(cited(near + "  kind: identity\n"), 0) == "identity");
  CHECK(verdict_of(cited(near, "none"), 0) == "mechanism");
  CHECK(verdict_of(study_text(), 0) == "mechanism");  // without a kind of source nothing is cited
  // Only a prediction can lie inside the span.
  CHECK(verdict_of(cited(far, "none"), 1) == "missed");
  const auto range = [](const char* ends, const char* sweep) {
    return cited(std::string("  range: ") + ends + "\n  sweep: " + sweep + "\n");
  };
  CHECK(verdict_of(range("[1, 3]", "within"), 0) == "reproduced");
  CHECK(verdict_of(range("[1.2, 1.8]", "within"), 0) == "inside the span");
  CHECK(verdict_of(range("[1, 2]", "covers"), 0) == "inside the span");
  CHECK(verdict_of(range("[1, 2.1]", "covers"), 1) == "missed");
  CHECK(verdict_of(range("[1, 2]", "spans"), 0) == "reproduced");
  CHECK(verdict_of(range("[1, 3]", "spans"), 1) == "missed");
  const Ran ran = run_study(cited(far));
  CHECK(ran.errors.empty());
  for (const char* part : {"\nsame ", " 1.50 ", " 10.0 % ", " inside the span\n",
                           "free same: batch 8 – 16, model alexnet or vgg11"})
    CHECK(ran.out.find(part) != std::string::npos);
}

TEST_CASE("study: several files, and one does not meet its expectation") {
  const std::string good = test::write_scratch("good.yaml", study_text()).string();
  const std::string bad =
      test::write_scratch("bad.yaml", study_text("value: 2", "value: 3")).string();
  const Ran ran = test::rehearse({"study", good, bad, "--format", "csv"});
  CHECK(ran.code == 1);
  CHECK(std::count(ran.out.begin(), ran.out.end(), '\n') == 1 + 2 * 4 * 2);
  CHECK(ran.out.find("mechanism") != std::string::npos);
  CHECK(ran.out.find("missed") != std::string::npos);
}

/// The only error of a study.
void check_refused(const std::string& text, const std::string& says) {
  const Ran ran = run_study(text);
  INFO(ran.errors);
  CHECK(ran.code == 1);
  CHECK(ran.out.empty());
  CHECK(ran.errors.ends_with("s.yaml:" + says + "\n"));
  CHECK(std::count(ran.errors.begin(), ran.errors.end(), '\n') == 1);
}

TEST_CASE("study: an error in a file is one line with its place") {
  check_refused(study_text("step_time(apart)", "step_time(apat)"),
                "19:9: measure.gain: unknown job 'apat'; did you mean 'apart'?");
  check_refused(study_text("step_time(together)", "step_tim(together)"),
                "19:9: measure.gain: unknown quantity 'step_tim'; did you mean 'step_time'?");
  check_refused(study_text("/ step_time(apart)", "+ memory(apart)"),
                "19:9: measure.gain: 's' and 'B' cannot be added; terms of one unit");
  check_refused(study_text("/ step_time(apart)", "/ "),
                "19:9: measure.gain: 'step_time(together) /' is incomplete; a number or a name");
  check_refused(study_text("value: 2", "value: 2\n  range: [1, 2]\n  sweep: within"),
                "23:10: expect.value: exactly one of the three is required; value: …, range: "
                "[from, to] or published: {…}");
  check_refused(study_text("value: 2", "range: [3, 1]\n  sweep: within"),
                "23:10: expect.range: is not a range; [from, to]");
  check_refused(study_text("value: 2", "range: [1, 2]"),
                "22:3: expect.sweep: is missing; the criterion: within, covers or spans");
  check_refused(study_text("0.001", "1.5"),
                "24:14: expect.tolerance: 1.5 is not a relative tolerance; from 0 to 1");
  check_refused(study_text("  tolerance: 0.001\n"),
                "22:3: expect.tolerance: is missing; 0.1, or one with a reason:");
  check_refused(study_text("value: 2", "range: [1, 3]\n  sweep: covers"),
                "25:14: expect.tolerance: does not apply to sweep: covers; none: the sweep reaches "
                "both ends or not");
  check_refused(study_text("value: 2", "value: 2\n  kind: prediction"),
                "24:9: expect.kind: a prediction of a number that no publication states; mechanism "
                "or identity, or a source_kind");
  check_refused(study_text("batch: [8, 16]", "model: [alexnet]"),
                "7:5: sweep.network: sets 'model', which another axis sets");
  check_refused(study_text("vgg11, convolutional", "vgg11, layers"),
                "7:5: sweep.network: has mappings of different keys; the same keys in the same "
                "order");
}

TEST_CASE("study: an error in a job shows its parameters") {
  check_refused(study_text("layers: $convolutional", "layers: $convolution"),
                "17:39: jobs.apart.plan.stages[0].layers: unknown parameter 'convolution'; did you "
                "mean 'convolutional'?");
  check_refused(study_text("$(batch * 3)", "$(model * 3)"),
                "11:28: base.training.global_batch: parameter 'model' is 'alexnet'; a number");
  check_refused(study_text("plan: {data: 3}", "plan: {dta: 3}"),
                "15:12: jobs.together.plan.dta: unknown key; did you mean 'data'?");
  check_refused(study_text("plan: {data: 3}", "plan: {data: 4}"),
                " jobs.together: global_batch 24 is not a multiple of data 4 x microbatch 8 with "
                "batch 8, model alexnet, convolutional 8; nearest: data 3");
}

TEST_CASE(
    "study: collocation on slices gains where the host decides, and nothing where the GPU is "
    "busy") {
  const Ran ran = test::rehearse({"study", "studies/mig-collocation.yaml", "--format", "json"});
  CHECK(ran.code == 0);
  const Json study = Json::parse(ran.out)["studies"][0];
  CHECK(study["verdict"] == "inside the span");
  constexpr std::size_t kBatches = 5, kHosts = 3;
  REQUIRE(study["points"].size() == 2 * kBatches * kHosts);
  double slower_host = 0;
  for (std::size_t host = 0; host < kHosts; ++host) {
    double before = 7;
    for (std::size_t batch = 0; batch < kBatches; ++batch) {
      const Json& point = study["points"][batch * kHosts + host];
      const double whole = point["jobs"][0]["step_time"]["value"],
                   slice = point["jobs"][1]["step_time"]["value"];
      const double gain = 7 * whole / slice;
      CHECK(gain < before);
      before = gain;
      CHECK(point["jobs"][1]["fits"] == true);
      if (batch > 0) continue;
      CHECK(gain > slower_host);  // the longer the host takes, the less a slice loses
      slower_host = gain;
    }
    CHECK(before < 1.05);
  }
}

// docs/concepts/study.md works out the bounds.
TEST_CASE("study: layer separation against a parameter server, on as many devices") {
  const Ran ran = test::rehearse({"study", "studies/stanza.yaml", "--format", "json"});
  INFO(ran.errors);
  const Json study = Json::parse(ran.out)["studies"][0];
  CHECK(ran.code == (study["verdict"] == "missed" ? 1 : 0));
  CHECK(study["expected"]["low"] == 1.34);
  CHECK(study["expected"]["high"] == 13.9);
  REQUIRE(study["points"].size() == 6 * 7 * 2);
  for (const Json& point : study["points"])
    for (const Json& job : point["jobs"]) {
      CHECK(std::to_string(int(job["ranks"])) == point["parameters"][2]["setting"]);
      CHECK(job["fits"] == true);
    }
  const Json& vgg = study["points"][7 * 2 + 2 * 2];
  REQUIRE(vgg["parameters"][0]["setting"] == "vgg16");
  REQUIRE(vgg["parameters"][2]["setting"] == "10");
  REQUIRE(vgg["parameters"][3]["setting"] == "1");
  // At least one way of the server's port, at most both, one after the other.
  const double served = vgg["jobs"][0]["step_time"]["value"];
  CHECK(served > 3.98);
  CHECK(served < 2 * 3.98 + 0.5);
  const double apart = vgg["jobs"][1]["step_time"]["value"];
  CHECK(apart > 0.084);
  CHECK(apart < served / 5);
}

/// Two equal jobs of three ranks, that take turns.
std::string turns_text(const std::string& measure, const std::string& second = "{data: 3}") {
  return "name: turns\nsource: made up\nfidelity: closed\n"
         "base:\n"
         "  workload: {model: alexnet}\n"
         "  cluster: {device: v100_sxm2_16, nodes: 4, inter_node: ethernet}\n"
         "jobs:\n"
         "  a:\n    plan: {data: 3}\n"
         "    training: {global_batch: 24, microbatch: 8, dtype: fp32}\n"
         "  b:\n    plan: " +
         second +
         "\n    training: {global_batch: 24, microbatch: 8, dtype: fp32}\n"
         "measure:\n  gain: " +
         measure + "\nexpect: {measure: gain, range: [1, 2], sweep: within, tolerance: 0}\n";
}

TEST_CASE("study: jobs that take turns gain between nothing and their number") {
  const Json study = study_json(turns_text("crossover(a, b)"), 0)["studies"][0];
  CHECK(study["got"]["least"]["value"] > 1);
  // A job alone gains nothing.
  const Json alone = study_json(turns_text("crossover(a)"), 0)["studies"][0];
  CHECK(alone["got"]["least"]["value"] == Approx(1));
}

TEST_CASE("study: jobs in turns share their links, or have their own") {
  const auto gain = [](const std::string& links) {
    const std::string text = "links: " + links + "\n" + turns_text("crossover(a, b)");
    return study_json(text, 0)["studies"][0]["got"]["least"]["value"].get<double>();
  };
  // AlexNet sends more than it computes on Ethernet: the links are full.
  CHECK(gain("fair") < gain("apart") - 0.1);
  CHECK(gain("first_come") < gain("apart") - 0.1);
  CHECK(gain("fair") >= 1);
  // The division may be a parameter.
  const Json swept =
      study_json("links: $links\nsweep: {links: [fair, apart]}\n" + turns_text("crossover(a, b)"),
                 0)["studies"][0];
  CHECK(swept["got"]["least"]["value"] == gain("fair"));
  CHECK(swept["got"]["most"]["value"] == gain("apart"));
  CHECK_THAT(run_study("links: far\n" + turns_text("crossover(a, b)")).errors,
             Catch::Contains("unknown division 'far'"));
  CHECK_THAT(
      run_study("links: $far\nsweep: {far: [near]}\n" + turns_text("crossover(a, b)")).errors,
      Catch::Contains("unknown division 'near'"));
}

TEST_CASE("study: text has the values of JSON though its steps have no intervals") {
  for (const char* measure : {"exposed_communication(a) / step_time(b)", "crossover(a, b)"}) {
    INFO(measure);
    const auto text_for = [&](const std::string& range) {
      return test::replaced(turns_text(measure), "[1, 2]", range);
    };
    const Json got = study_json(text_for("[0, 2]"))["studies"][0]["got"]["least"];
    const double value = got["value"];
    CHECK(value > 0.1);
    const std::string text =
        text_for(fmt::format("[{}, {}]", value * (1 - 1e-12), value * (1 + 1e-12)));
    CHECK(run_study(text).code == 0);
    CHECK(run_study(text, {"--format", "markdown"}).code == 0);
    CHECK(run_study(text_for(fmt::format("[{}, 2]", value * 1.01))).code == 1);
  }
}

TEST_CASE("study: turns that cannot be taken are refused") {
  const auto refused = [](const std::string& text) {
    const Ran ran = run_study(text);
    CHECK(ran.code == 1);
    CHECK(ran.out.empty());
    return ran.errors;
  };
  using Catch::Contains;
  CHECK_THAT(refused(turns_text("crossover(a, c)")), Contains("unknown job 'c'"));
  CHECK_THAT(refused(turns_text("crossover(a, )")), Contains("a name"));
  CHECK_THAT(refused(turns_text("crosover(a, b)")), Contains("did you mean 'crossover'?"));
  CHECK_THAT(refused(turns_text("step_time(a, b)")), Contains("one job"));
  CHECK_THAT(refused(turns_text("crossover(a, b)", "{data: 1}")),
             Contains("have different numbers of ranks"));
  // More jobs than fit in 16 GB.
  std::string many = "crossover(a";
  for (int i = 0; i < 40; ++i) many += ", b";
  CHECK_THAT(refused(turns_text(many + ")")), Contains("together"));
}

}  // namespace
}  // namespace rehearse
