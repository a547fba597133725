// Levels of two runs, the error of their change, and verdicts.
#include <algorithm>
#include <cmath>

#include <catch2/catch.hpp>

#include "profiler/compare/effect.h"
#include "profiler/compare/judge.h"
#include "sim/base/statistics.h"
#include "tests/support/compare_random.h"
#include "tests/validation/studies/gate_accuracy.h"

namespace rehearse::compare {
namespace {

std::vector<double> noisy(Random& random, std::size_t steps, double level, double noise) {
  std::vector<double> values;
  for (std::size_t i = 0; i < steps; ++i) values.push_back(level * (1 + noise * random.normal()));
  return values;
}

TEST_CASE("Student's limits are those of the tables") {
  // Two-sided 99 % and 90 %, and the normal distribution far out.
  CHECK(student_limit(0.005, 4) == Approx(4.6041).epsilon(1e-4));
  CHECK(student_limit(0.005, 30) == Approx(2.7500).epsilon(1e-4));
  CHECK(student_limit(0.05, 1) == Approx(6.3138).epsilon(1e-4));
  CHECK(student_limit(0.005, 1e7) == Approx(2.5758).epsilon(1e-4));
  CHECK(student_limit(0.95, 9) == Approx(-1.8331).epsilon(1e-4));
  CHECK(student_above(0, 7) == Approx(0.5));
  for (const double freedom : {0.7, 3.0, 12.5})
    for (const double above : {0.3, 0.01, 1e-5})
      CHECK(student_above(student_limit(above, freedom), freedom) == Approx(above).epsilon(1e-6));
}

TEST_CASE("a level leaves out a fifth of the steps at either end") {
  CHECK(level_of(std::vector<double>{3, 1, 2}) == Approx(2));  // of three, none
  CHECK(level_of(std::vector<double>{1, 100, 2, 3, 0}) == Approx(2));
  CHECK(level_of(std::vector<double>(50, 7.0)) == Approx(7));
}

TEST_CASE("a rise that no step contradicts needs few steps") {
  const std::vector<double> before = {100, 101, 99, 100, 102},
                            after = {106.5, 106, 107, 106.5, 105.5, 106.5};
  const Effect e = measure_effect(before, after, 1, {});
  // All 6 above all 5: one of (11 choose 5) = 462 orders. The least difference is 105.5 - 102.
  CHECK(e.apart_by_chance == Approx(1.0 / 462));
  CHECK(e.apart == Approx((105.5 - 102) / e.baseline));
  CHECK(judge(e, 0.03) == Verdict::kFail);
  CHECK(e.low(kWrong) >= e.apart);
  Effect by_interval = e;
  by_interval.apart = 0;
  CHECK(by_interval.low(kWrong) < 0);
  CHECK(judge(by_interval, 0.03) == Verdict::kInconclusive);
  // The rise has to exceed the limit in each step.
  CHECK(judge(e, 0.05) == Verdict::kInconclusive);
  // Faster steps are no slowdown, and one step in between is a contradiction.
  CHECK(measure_effect(after, before, 1, {}).apart < 0);
  CHECK(judge(measure_effect(after, before, 1, {}), 0.03) != Verdict::kFail);
  const std::vector<double> mixed = {106.5, 106, 107, 106.5, 101.5, 106.5};
  CHECK(measure_effect(before, mixed, 1, {}).apart == 0);
  // Four above four: one of 70 orders, which is too likely by chance.
  const std::vector<double> four = {100, 103, 98, 101}, above = {106, 108, 105, 110};
  CHECK(measure_effect(four, above, 1, {}).apart > 0.01);
  CHECK(judge(measure_effect(four, above, 1, {}), 0.01) == Verdict::kInconclusive);
}

TEST_CASE("the error of a change is that of repeated synthetic runs") {
  Random random(5);
  double sum = 0, squares = 0, errors = 0;
  constexpr int kPairs = 1000;
  for (int i = 0; i < kPairs; ++i) {
    const auto a = noisy(random, 30, 2, 0.01), b = noisy(random, 30, 2.1, 0.01);
    const Effect e = measure_effect(a, b, 1, {.seed = random.bits(), .resamples = 200});
    sum += e.change;
    squares += e.change * e.change;
    errors += e.error;
  }
  const double mean = sum / kPairs;
  CHECK(mean == Approx(0.05).epsilon(0.01));
  // Steps that look alike by chance make it a little wider.
  CHECK(errors / kPairs == Approx(std::sqrt(squares / kPairs - mean * mean)).epsilon(0.15));
}

TEST_CASE("the same seed gives the same, another nearly so") {
  Random random(9);
  const auto a = noisy(random, 20, 1, 0.01), b = noisy(random, 20, 1.02, 0.01);
  const Effect e = measure_effect(a, b, 1, {.seed = 4});
  CHECK(measure_effect(a, b, 1, {.seed = 4}).error == e.error);
  const Effect other = measure_effect(a, b, 1, {.seed = 5});
  CHECK(other.change == e.change);
  CHECK(other.error != e.error);
  CHECK(other.error == Approx(e.error).epsilon(0.2));
}

TEST_CASE("the verdict does not depend on the order of the runs") {
  Random random(2);
  const auto a = noisy(random, 12, 1, 0.02), b = noisy(random, 15, 1.5, 0.02);
  const Effect up = measure_effect(a, b, 1, {}), down = measure_effect(b, a, 1, {});
  CHECK((1 + up.change) * (1 + down.change) == Approx(1));
  CHECK(is_rise(up));
  CHECK_FALSE(is_rise(down));
  CHECK(down.p_value() < 1e-6);
}

TEST_CASE("equal runs have no change, and equal steps within a run still have an error") {
  Random random(3);
  const auto steps = noisy(random, 40, 1, 0.2);
  const Effect same = measure_effect(steps, steps, 1, {});
  CHECK(same.change == 0);
  CHECK(judge(same, 0.03) == Verdict::kPass);
  // Clocks of whole microseconds: all equal, and yet not surely the same.
  const Effect equal = measure_effect(std::vector(5, 1.0), std::vector(6, 1.0001), 1, {});
  CHECK(equal.error > 0);
  CHECK(equal.p_value() > 0.05);
}

TEST_CASE("an op that the baseline lacks is judged by its share of the step") {
  const Effect e = measure_effect(std::vector(10, 0.0), std::vector(10, 0.002), 0.1, {});
  CHECK(e.change == Approx(0.02));
  CHECK(e.scale == 0.1);
}

TEST_CASE("known variation between runs widens the interval") {
  Random random(6);
  const auto a = noisy(random, 50, 1, 0.002), b = noisy(random, 50, 1.02, 0.002);
  CHECK(judge(measure_effect(a, b, 1, {}), 0.03) == Verdict::kPass);
  const Effect unsure = measure_effect(a, b, 1, {.between_runs = 0.02});
  CHECK(unsure.error == Approx(0.02 * std::sqrt(2)).epsilon(0.05));
  CHECK(judge(unsure, 0.03) == Verdict::kInconclusive);
  CHECK_FALSE(steps_needed(unsure, 0.03, {.between_runs = 0.02}));
}

TEST_CASE("few steps in either run are inconclusive, even with many in the other") {
  Random random(11);
  for (const auto& [before, after] : std::vector<std::pair<std::size_t, std::size_t>>{
           {2, 2}, {2, 20}, {20, 2}, {3, 20}, {5, 20}, {4, 4}}) {
    INFO(before << " and " << after << " steps");
    std::size_t passed = 0, failed = 0, unsure = 0, asked = 0;
    for (int i = 0; i < 1000; ++i) {
      const auto a = noisy(random, before, 1, 0.01), b = noisy(random, after, 1.045, 0.01);
      const auto same = noisy(random, after, 1, 0.01);
      const EffectOptions options{.seed = random.bits(), .resamples = 100};
      const Effect slower = measure_effect(a, b, 1, options);
      passed += judge(slower, 0.03) == Verdict::kPass;
      const Effect none = measure_effect(a, same, 1, options);
      failed += judge(none, 0.03) == Verdict::kFail;
      if (judge(none, 0.03) != Verdict::kInconclusive) continue;
      ++unsure;
      asked += steps_needed(none, 0.03, {}).value_or(0) >= kFewSteps;
    }
    CHECK(passed == 0);
    CHECK(failed == 0);
    CHECK(unsure >= 900);
    CHECK(asked == unsure);
  }
  // Two equal steps are luck, not quiet: what two steps miss is not known.
  const std::vector<double> two = {1, 1.0001}, other = {1.0002, 1.0001};
  CHECK(judge(measure_effect(two, other, 1, {}), 0.03) == Verdict::kInconclusive);
  CHECK(judge(measure_effect(two, noisy(random, 20, 1, 0.001), 1, {}), 0.03) ==
        Verdict::kInconclusive);
  CHECK(judge(measure_level(two, 0.99, {}), 0.03) == Verdict::kInconclusive);
}

TEST_CASE("variation between runs comes from few runs, or is shared by pooled runs") {
  Random random(12);
  const auto a = noisy(random, 50, 1, 0.001), b = noisy(random, 50, 1, 0.001);
  const Effect sure = measure_effect(a, b, 1, {.between_runs = 0.01});
  const Effect few = measure_effect(a, b, 1, {.between_runs = 0.01, .between_freedom = 4});
  CHECK(few.error == sure.error);
  CHECK(few.high(0.005) - few.change ==
        Approx(4.604 / 2.576 * (sure.high(0.005) - sure.change)).epsilon(0.02));
  const Effect pooled = measure_effect(a, b, 1, {.between_runs = 0.01, .baseline_runs = 4});
  CHECK(pooled.error == Approx(0.01 * std::sqrt(1.25)).epsilon(0.02));
}

Effect effect(double change, double error) {
  return {.baseline = 1,
          .candidate = 1 + change,
          .change = change,
          .scale = 1,
          .error = error,
          .error_if_none = error,
          .freedom = 1000};
}

TEST_CASE("a verdict states what the interval excludes") {
  // 99 % of the changes lie within 2.58 errors.
  CHECK(judge(effect(0, 0.005), 0.03) == Verdict::kPass);
  CHECK(judge(effect(0.01, 0.005), 0.03) == Verdict::kPass);
  CHECK(judge(effect(0.03, 0.005), 0.03) == Verdict::kPass);  // the limit itself is allowed
  CHECK(judge(effect(0.031, 0.005), 0.03) == Verdict::kFail);
  CHECK(judge(effect(0.10, 0.005), 0.03) == Verdict::kFail);
  CHECK(judge(effect(-0.10, 0.005), 0.03) == Verdict::kPass);
  CHECK(judge(effect(0, 0.03), 0.03) == Verdict::kInconclusive);
  CHECK(judge(effect(0.05, 0.03), 0.03) == Verdict::kInconclusive);
  // Within the limit, but the interval is wider than the limit and reaches beyond it.
  CHECK(judge(effect(0.0149, 0.0059), 0.03) == Verdict::kInconclusive);
  // Once the interval is no wider than the limit, there is a verdict.
  for (int k = -50; k < 80; ++k) {
    const double change = (k + 0.5) * 1e-3;
    CHECK(judge(effect(change, 0.0149 / 2.5808), 0.03) ==
          (change < 0.03 ? Verdict::kPass : Verdict::kFail));
  }
  CHECK(worse(Verdict::kPass, Verdict::kInconclusive) == Verdict::kInconclusive);
  CHECK(worse(Verdict::kFail, Verdict::kInconclusive) == Verdict::kFail);
}

TEST_CASE("the stated number of steps leads to a verdict") {
  Random random(8);
  std::size_t decided = 0, asked = 0;
  for (int i = 0; i < 60; ++i) {
    const auto a = noisy(random, 12, 1, 0.03), b = noisy(random, 12, 1, 0.03);
    const Effect few = measure_effect(a, b, 1, {});
    if (judge(few, 0.03) != Verdict::kInconclusive) continue;
    const auto needed = steps_needed(few, 0.03, {});
    REQUIRE(needed);
    CHECK(*needed > 12);
    CHECK(*needed < 1000);
    ++asked;
    const auto c = noisy(random, 2 * *needed, 1, 0.03), d = noisy(random, 2 * *needed, 1, 0.03);
    decided += judge(measure_effect(c, d, 1, {}), 0.03) != Verdict::kInconclusive;
  }
  REQUIRE(asked > 20);
  CHECK(decided > asked * 3 / 4);
}

TEST_CASE("of many changes, chance ones are not called real (Holm)") {
  CHECK(significant({0.001, 0.5, 0.004}, 0.01) == std::vector<bool>{true, false, true});
  // 0.004 > 0.01 / 2: the second smallest of three has two left to share with.
  CHECK(significant({0.001, 0.006, 0.5}, 0.01) == std::vector<bool>{true, false, false});
  CHECK(significant({0.004, 0.004, 0.004}, 0.01) == std::vector<bool>(3, false));
  CHECK(significant({}, 0.01).empty());
}

/// n! m! / (n + m)!: of all orders of n and m equal steps, one has each of one run behind the others.
double chance_that_all_are_slower(const cli::FewCase& c) {
  const double n = static_cast<double>(c.baseline), m = static_cast<double>(c.candidate);
  return std::exp(std::lgamma(n + 1) + std::lgamma(m + 1) - std::lgamma(n + m + 1));
}

TEST_CASE("false alarms and detection of the gate, simulated") {
  const cli::GateAccuracy accuracy = cli::measure_gate_accuracy(500, 12345);
  REQUIRE(accuracy.pairs.size() == 14);
  for (const cli::GateCase& c : accuracy.pairs) {
    INFO(c.noise << ", " << c.change << ": " << c.failed << " fail, " << c.passed << " pass of "
                 << c.pairs);
    if (c.change == 0)
      CHECK(c.failed <= 5);  // 1 %
    else
      CHECK(c.passed <= 12);  // of 0.5 to 1 %, with the luck of 500
    // Even where a step resembles the one before closely, most pairs have a verdict.
    CHECK(c.failed + c.passed >= c.pairs * 60 / 100);
    CHECK(c.covered >= c.pairs * 85 / 100);
  }
  CHECK(accuracy.pairs[1].noise == "normal");
  CHECK(accuracy.pairs[1].failed >= 493);  // 99 %, with the luck of 500
  REQUIRE(accuracy.few.size() == 12);
  for (const cli::FewCase& c : accuracy.few) {
    INFO(c.baseline << " and " << c.candidate << " steps, " << c.change);
    if (c.change == 0)
      CHECK(c.failed <= 5);
    else
      CHECK(c.passed <= 5);
    // So few steps decide nothing, unless all of one run are slower, which chance seldom brings about.
    if (std::min(c.baseline, c.candidate) >= 9 || chance_that_all_are_slower(c) <= kWrong) continue;
    CHECK(c.passed == 0);
    CHECK(c.failed <= (c.change == 0 ? 0U : 5U));  // a slowdown this large is rarely found
  }
  REQUIRE(accuracy.stores.size() == 8);
  for (const cli::StoreCase& c : accuracy.stores) {
    INFO(c.runs << " runs, " << c.change);
    if (c.runs == 1) continue;  // what runs differ by is not known
    if (c.change == 0)
      CHECK(c.failed <= 3);
    else
      CHECK(c.passed <= 6);
  }
  // With ten runs most candidates have a verdict, and a slowdown is found.
  CHECK(accuracy.stores[5].failed >= 200);
  REQUIRE(accuracy.ops.size() == 2);
  for (const cli::OpsCase& c : accuracy.ops) CHECK(c.false_alarms <= 3);
  CHECK(accuracy.ops[1].found >= 90);
  REQUIRE(accuracy.histories.size() == 5);
  for (const cli::HistoryCase& c : accuracy.histories) {
    INFO(c.series << ": " << c.failed << " of " << c.count);
    const bool changes = !c.series.starts_with("no change");
    CHECK(c.failed >= (changes ? 97U : 0U));
    CHECK(c.failed <= (changes ? 100U : 2U));
  }
  CHECK(accuracy.histories[2].jumps >= 95);
  CHECK(accuracy.histories[2].drifts <= 5);
  CHECK(accuracy.histories[3].drifts >= 95);
  CHECK(accuracy.histories[3].jumps <= 5);
}

}  // namespace
}  // namespace rehearse::compare
