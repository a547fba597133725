// Suites against those of an earlier run.
#include <fstream>

#include <catch2/catch.hpp>

#include "cli/validation/baseline.h"
#include "tests/support/data.h"

namespace rehearse::cli {
namespace {

/// Median, mean and coverage of a suite of 20 rows.
SuiteSummary suite(std::string name, double median, double mean, std::optional<double> coverage) {
  SuiteSummary s;
  s.name = std::move(name);
  s.rows = 20;
  s.median_error = median;
  s.mean_error = mean;
  s.interval_coverage = coverage;
  return s;
}

Drift drift(const SuiteSummary& before, const SuiteSummary& after) {
  const std::vector<SuiteDrift> suites = drift_of({before}, {after});
  REQUIRE(suites.size() == 1);
  return suites.front().drift;
}

TEST_CASE("a suite turns from good to bad by its median error or its intervals alone") {
  const SuiteSummary good = suite("a", 0.1, 0.12, 0.8);
  CHECK(drift(good, good) == Drift::kSame);
  CHECK(drift(good, suite("a", 0.101, 0.12, 0.8)) == Drift::kTurnedBad);
  CHECK(drift(good, suite("a", 0.1, 0.12, 0.79)) == Drift::kTurnedBad);
  CHECK(drift(suite("a", 0.11, 0.12, 0.8), good) == Drift::kTurnedGood);
  CHECK(drift(suite("a", 0.1, 0.12, 0.79), good) == Drift::kTurnedGood);
  // Without intervals the median decides.
  CHECK(drift(suite("a", 0.1, 0.12, {}), suite("a", 0.11, 0.12, {})) == Drift::kTurnedBad);
}

TEST_CASE("a suite that stays good or bad drifts by its mean error, rows and intervals") {
  const SuiteSummary good = suite("a", 0.05, 0.06, 0.9), bad = suite("a", 0.2, 0.25, 0.9);
  CHECK(drift(good, suite("a", 0.05, 0.08, 0.9)) == Drift::kWorse);
  CHECK(drift(good, suite("a", 0.05, 0.04, 0.9)) == Drift::kBetter);
  CHECK(drift(good, suite("a", 0.05, 0.06, 0.95)) == Drift::kChanged);
  CHECK(drift(bad, suite("a", 0.6, 0.7, 0.9)) == Drift::kWorse);
  SuiteSummary more = good;
  more.rows = 21;
  CHECK(drift(good, more) == Drift::kChanged);
}

TEST_CASE("suites are paired by name, and those in one run only are reported") {
  const SuiteSummary a = suite("a", 0.05, 0.06, 0.9), b = suite("b", 0.05, 0.06, 0.9);
  const std::vector<SuiteDrift> suites = drift_of({a}, {b});
  REQUIRE(suites.size() == 2);
  CHECK(suites[0].name == "b");
  CHECK(suites[0].drift == Drift::kNew);
  CHECK(suites[1].name == "a");
  CHECK(suites[1].drift == Drift::kNotMeasured);
  CHECK(drift_words(suites) == "0 of 2 suites turned bad, 2 changed otherwise");
}

TEST_CASE("a file that is not a result of validate is refused as a baseline") {
  const auto refused = [](const std::string& text, const std::string& says) {
    const std::string file = (test::scratch_folder() / "base.json").string();
    std::ofstream(file) << text;
    const auto read = read_baseline(file);
    REQUIRE_FALSE(read);
    CHECK(to_string(read.error()) ==
          file + ": " + says + "; the output of 'rehearse validate --format json'");
  };
  refused("suite,rows\n", "is not JSON");
  refused("{\"command\": \"study\"}", "is not a result of validate");
  refused("[]", "is not a result of validate");
  refused("{\"command\": \"validate\", \"suites\": [{\"name\": 3}]}",
          "suites[0] lacks a name, rows or an error");
  refused(R"({"command": "validate", "suites": [{"name": "a", "rows": -1, "mean_error": 0,
              "median_error": 0, "p90_error": 0, "worst_error": 0, "bias": 0,
              "interval_coverage": 1}]})",
          "suites[0].rows is -1, and not between 0 and 1000000000");
}

}  // namespace
}  // namespace rehearse::cli
