// study: curves of published numbers, several expectations, what was fitted, and the page.
#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"
#include "tests/support/study_run.h"

namespace rehearse {
namespace {

using Catch::Contains;
using test::Json;
using test::Ran;
using test::run_study;

/// A job whose step takes as long as it may: `n` times a number, so that a curve over n is known.
std::string curve_text(const std::string& expect, const std::string& fitted = "") {
  return "name: curve\n"
         "source: made up\n"
         "source_kind: artifact\n"
         "fidelity: closed\n"
         "sweep:\n"
         "  n: [1, 2, 3, 4]\n"
         "  machine: [near, far]\n"
         "base:\n"
         "  workload: {model: alexnet}\n"
         "  training: {global_batch: $(n * 8), microbatch: $(n * 8), dtype: fp32}\n"
         "  cluster: {device: v100_sxm2_16, nodes: 1}\n"
         "jobs:\n"
         "  one: {}\n"
         "measure:\n"
         "  twice: (step_time(one) + step_time(one)) / step_time(one)\n"
         "  rate: throughput(one)\n" +
         fitted + "expect:\n" + expect;
}

Json study_of(const std::string& text, int code) {
  return test::study_json(text, code)["studies"][0];
}

constexpr char kCurve[] =
    "  - measure: twice\n"
    "    over: n\n"
    "    published: {2: 2, 3: 2.1, 4: 1.9}\n"
    "    tolerance: {mean: 0.05, worst: 0.1}\n"
    "    source: table 2\n"
    "    source_kind: page\n"
    "    configuration: two at a time\n";

TEST_CASE(
    "study: a curve is reproduced by its mean and its worst error, each number where it was "
    "published") {
  const Json study = study_of(curve_text(kCurve), 0);
  CHECK(study["verdict"] == "reproduced");
  const Json& e = study["expectations"][0];
  CHECK(e["source"] == "table 2");
  CHECK(e["source_kind"] == "page");
  CHECK(e["configuration"] == "two at a time");
  CHECK(e["over"] == "n");
  CHECK(e["expected"]["comparison"] == "curve");
  CHECK(e["expected"]["low"] == 1.9);
  CHECK(e["expected"]["high"] == 2.1);
  REQUIRE(e["curve"].size() == 3);
  CHECK(e["curve"][1]["setting"] == "3");
  CHECK(e["curve"][1]["published"]["value"] == 2.1);
  CHECK(e["curve"][1]["error"].get<double>() == Approx(2 / 2.1 - 1));
  CHECK(e["worst_error"].get<double>() == Approx(2 / 1.9 - 1));
  CHECK(e["mean_error"].get<double>() == Approx((1 - 2 / 2.1 + 2 / 1.9 - 1) / 3));
  // The same curve misses by either tolerance.
  const auto with = [](const std::string& tolerance) {
    std::string text = kCurve;
    const std::size_t at = text.find("    tolerance"), end = text.find('\n', at) + 1;
    return curve_text(text.replace(at, end - at, tolerance));
  };
  const auto verdict = [&](const std::string& tolerance, int code) {
    return study_of(with("    " + tolerance + "\n"), code)["verdict"];
  };
  CHECK(verdict("tolerance: {mean: 0.03, worst: 0.1}", 1) == "missed");
  CHECK(verdict("tolerance: {mean: 0.05, worst: 0.05}", 1) == "missed");
  CHECK(verdict("tolerance: {mean: 0.05}", 0) == "reproduced");
  CHECK(verdict("tolerance: 0.05", 1) == "missed");
  // The usual tolerance, or one that is not chosen after the error, needs no reason.
  CHECK(verdict("tolerance: 0.1", 0) == "reproduced");
  CHECK(verdict("tolerance: 0.06", 0) == "reproduced");
  const auto refused = [&](const std::string& tolerance, const std::string& says) {
    test::check_failed(test::run_study(with(tolerance)), 1, "expect[0].tolerance" + says);
  };
  refused("", ": is missing; 0.1, or one with a reason:");
  refused("    tolerance: 0.2\n", ": 0.2 is more than 0.1; a reason: such as the error that the");
  refused("    tolerance: {mean: 0.2}\n", ".mean: 0.2 is more than 0.1; a reason:");
  refused("    tolerance: 0.054\n", ": 0.054 is within a tenth of its own error, 0.0526; 0.1, or");
  refused("    tolerance: {mean: 0.034}\n", ": 0.034 is within a tenth of its own error, 0.0334;");
  CHECK(verdict("tolerance: 0.054\n    reason: stated next to the table", 0) == "reproduced");
  CHECK(verdict("tolerance: 0.2\n    reason: stated next to the table", 0) == "reproduced");
  // An error at the edge counts as within.
  CHECK(study_of(curve_text("  - {measure: twice, over: n, published: {2: 1.6}, tolerance: 0.25, "
                            "reason: an edge}\n"),
                 0)["verdict"] == "reproduced");
}

TEST_CASE(
    "study: several expectations, at some settings each, and one that misses makes the study "
    "miss") {
  const std::string all = "  - {measure: rate, range: [1, 1e9], sweep: within}\n";
  const std::string some =
      "  - {measure: rate, at: {n: [2, 3], machine: near}, range: [1, 1e9], sweep: within, "
      "tolerance: 0}\n";
  const Json study = study_of(curve_text(all + some), 0);
  CHECK(study["verdict"] == "reproduced");
  CHECK(study["expected"]["measure"] == "rate");
  REQUIRE(study["expectations"].size() == 2);
  CHECK(study["expectations"][0]["verdict"] == "reproduced");
  const Json& e = study["expectations"][1];
  CHECK(e["at"][0]["settings"] == Json({"2", "3"}));
  CHECK(e["source_kind"] == "artifact");
  // Of the points it is about, and of all.
  CHECK(e["got"]["least"]["value"] == study["points"][2]["measured"][1]["got"]["value"]);
  CHECK(e["span"]["least"]["value"] == study["points"][0]["measured"][1]["got"]["value"]);
  CHECK(e["got"]["least"]["value"] != e["span"]["least"]["value"]);
  CHECK(e["got"]["most"]["value"] != e["span"]["most"]["value"]);
  CHECK(study_of(curve_text(all + some + "  - {measure: twice, value: 3, tolerance: 0.1}\n"),
                 1)["verdict"] == "missed");
  CHECK(study_of(curve_text(all), 0)["verdict"] == "reproduced");
}

constexpr char kFitted[] =
    "fitted:\n"
    "  - constants: [delay, share]\n"
    "    measure: twice\n"
    "    over: n\n"
    "    published: {1: 2.1}\n"
    "  - {constants: [peak], source: a benchmark of the same device}\n";

/// The only error of a study.
void check_failed(const std::string& text, const std::string& says) {
  test::check_failed(test::run_study(text), 1, "s.yaml:" + says);
}

TEST_CASE("study: no expectation is compared with a point that a constant was fitted on") {
  const Json study = study_of(curve_text(kCurve, kFitted), 0);
  REQUIRE(study["fitted"].size() == 2);
  CHECK(study["fitted"][0]["constants"] == Json({"delay", "share"}));
  CHECK(study["fitted"][0]["on"] == Json({"1"}));
  CHECK(study["fitted"][0]["curve"][0]["error"].get<double>() == Approx(2 / 2.1 - 1));
  CHECK(study["fitted"][1]["source"] == "a benchmark of the same device");
  // What is compared counts no fitted point.
  CHECK(study["expectations"][0]["curve"].size() == 3);

  check_failed(
      curve_text("  - {measure: twice, over: n, published: {1: 2, 2: 2}, tolerance: 0.1}\n",
                 kFitted),
      "24:42: expect[0].published: is compared with n 1, machine near, on which delay, share "
      "were fitted; points on which nothing was fitted; list it under 'fitted' only");
  check_failed(
      curve_text("  {measure: twice, value: 2, tolerance: 0.1}\n", kFitted),
      "24:13: expect.measure: is compared with n 1, machine near, on which delay, share were "
      "fitted; points on which nothing was fitted; exclude it by 'at'");
  CHECK(study_of(
            curve_text("  {measure: twice, at: {n: [2, 3]}, value: 2, tolerance: 0.1}\n", kFitted),
            0)["verdict"] == "reproduced");
  // Another measure was not fitted, unless the point was in all it shows.
  const std::string rate = "  {measure: rate, range: [1, 1e9], sweep: within, tolerance: 0}\n";
  CHECK(study_of(curve_text(rate, kFitted), 0)["verdict"] == "reproduced");
  std::string all = kFitted;
  all.replace(all.find("    measure: twice\n"), 19, "");
  check_failed(curve_text(rate, all), "23:13: expect.measure: is compared with n 1");
  // Other settings are another point.
  std::string far = kFitted;
  far.replace(far.find("    over: n\n"), 12, "    at: {machine: far}\n    over: n\n");
  CHECK(study_of(
            curve_text("  {measure: twice, at: {machine: near}, value: 2, tolerance: 0.1}\n", far),
            0)["verdict"] == "reproduced");
}

TEST_CASE("study: an error in a curve or a fit is reported with its place") {
  const auto expect = [](const std::string& text) { return curve_text("  - {" + text + "}\n"); };
  check_failed(expect("measure: twice, over: m, published: {1: 2}, tolerance: 0.1"),
               "18:28: expect[0].over: 'm' is not a parameter of the sweep; one of machine");
  check_failed(expect("measure: twice, over: n, published: {7: 2}, tolerance: 0.1"),
               "18:46: expect[0].published.7: no point of the sweep has n 7");
  check_failed(expect("measure: twice, over: n, published: {1: 0}, tolerance: 0.1"),
               "18:46: expect[0].published.1: is 0; a number that errors can be relative to");
  check_failed(expect("measure: twice, at: {n: 9}, value: 2, tolerance: 0.1"),
               "18:30: expect[0].at.n: no point of the sweep has n 9");
  check_failed(expect("measure: twice, over: n, published: {1: 2}, tolerance: {wors: 0.1}"),
               "18:62: expect[0].tolerance.wors: unknown key; did you mean 'worst'?");
  check_failed(expect("measure: twice, value: 2, tolerance: {worst: 0.1}"),
               "18:43: expect[0].tolerance: several tolerances of one value or range; one number");
  check_failed(expect("measure: twice, value: 2, tolerance: 0.1, source_kind: abstrakt"),
               "18:61: expect[0].source_kind: ");
  check_failed(curve_text(kCurve, "fitted:\n  - {constants: [a], over: n}\n"),
               "18:28: fitted[0].over: needs the other of the two");
  check_failed(curve_text(kCurve, "fitted:\n  - {source: a table}\n"),
               "18:5: fitted[0].constants: is missing; a list of fitted constants");
  check_failed(curve_text(kCurve, "fitted:\n  - {constants: [a]}\n"),
               "18:5: fitted[0].published: is missing; the points on which it was fitted, or "
               "source: of other");
  check_failed(curve_text(kCurve, "fitted:\n  - {constants: [a], source: a table, at: {n: 2}}\n"),
               "18:43: fitted[0].at: names points without published values; over: and published:");
}

TEST_CASE("study: a folder means the files in it, and all of them are on one page") {
  const std::filesystem::path first = test::write_scratch("a.yaml", curve_text(kCurve, kFitted));
  const std::filesystem::path folder = first.parent_path();
  std::string missed = curve_text("  {measure: twice, value: 3, tolerance: 0.1}\n");
  missed.replace(missed.find("curve"), 5, "bad");
  test::write_file(folder / "b.yaml", missed + "assumed: [\"a network | of pipes\"]\n");
  test::write_file(folder / "notes.txt", "no study");
  const Ran ran = test::rehearse({"study", folder.string(), "--format", "markdown"});
  INFO(ran.errors);
  CHECK(ran.code == 1);
  CHECK_THAT(
      ran.out,
      Contains("# Studies\n") &&
          Contains(
              "| [curve](#curve) | twice | 3 values over n | page | mean error 3.34 %, "
              "worst +5.26 % | -4.76 % – +5.26 % | 5.00 % mean, 10.0 % worst | reproduced |\n") &&
          Contains("| [bad](#bad) | twice | 3.00 | artifact | 2.00 | 2.00 | 10.0 % | missed |\n") &&
          Contains(
              "| system | best verdict | reproduced | inside the span | mechanism | identity | "
              "missed |\n") &&
          Contains(
              "| bad | missed | 0 | 0 | 0 | 0 | 1 |\n| curve | reproduced | 1 | 0 | 0 | 0 | 0 "
              "|\n| all expectations |  | 1 | 0 | 0 | 0 | 1 |\n| best of 2 systems |  | 1 | 0 | "
              "0 | 0 | 1 |\n") &&
          Contains("- twice: table 2; two at a time\n") &&
          Contains("- fitted: delay, share on 1 published value of twice (n 1)\n") &&
          Contains("- fitted: peak on a benchmark of the same device\n") &&
          Contains("- assumed: a network | of pipes\n") &&
          Contains("| 3 | 2.10 | 2.00 | -4.76 % |\n"));
  CHECK(ran.out.find("## curve") < ran.out.find("## bad"));
  test::check_failed(test::rehearse({"study", test::scratch_folder().string()}), 1,
                     "holds no study; files that end in .yaml");
}

}  // namespace
}  // namespace rehearse
