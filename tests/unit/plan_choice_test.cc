// How well predictions choose among measured plans, by hand.
#include "cli/validation/plan_choice.h"

#include <catch2/catch.hpp>

#include "cli/validation/suite.h"

namespace rehearse::cli {
namespace {

// Measured 1, 1.2, 1.1; predicted 0.9, 0.8, 1. Pairs: (1, 1.2) against (0.9, 0.8) disagree,
// (1, 1.1) agree, (1.2, 1.1) against (0.8, 1) disagree: tau = (1 - 2) / 3. The second is predicted
// best and takes 20 % longer than the best.
TEST_CASE("tau and regret of one group") {
  const auto choice = choice_of("t", {{"a", 1, 0.9}, {"a", 1.2, 0.8}, {"a", 1.1, 1}});
  REQUIRE(choice);
  CHECK(choice->groups == 1);
  CHECK(choice->plans == 3);
  CHECK(*choice->tau == Approx(-1.0 / 3));
  CHECK(choice->regret == Approx(0.2));
  CHECK(choice->worst_regret == Approx(0.2));
  CHECK(choice->regret_of_three == 0);
  CHECK(choice->median_error == Approx(0.1));  // of 0.1, 0.33 and 0.09
  CHECK(choice->best_in_five == 1);
}

TEST_CASE("the plan predicted best is measured first") {
  CHECK(predicted_best({{"a", 1, 0.9}, {"a", 1.2, 0.8}, {"a", 1.1, 1}}) == 1);
  CHECK(predicted_best({{"a", 1, 1}, {"a", 2, 1}}) == 0);
}

// Group b: six plans in the opposite order of their predictions, 1 s to 6 s: regret 5, of the first
// three (6, 5, 4) 3, and the best is the sixth. All 15 pairs disagree, the 1 of group a agrees.
TEST_CASE("groups count equally in regrets and pairs in tau") {
  std::vector<MeasuredPlan> plans = {{"a", 1, 1}, {"a", 2, 2}, {"c", 1, 9}};
  for (int i = 1; i <= 6; ++i) plans.push_back({"b", double(i), 7.0 - i});
  const auto choice = choice_of("t", plans);
  REQUIRE(choice);
  CHECK(choice->groups == 2);
  CHECK(choice->plans == 8);
  CHECK(*choice->tau == Approx(-14.0 / 16));
  CHECK(choice->regret == Approx(2.5));
  CHECK(choice->worst_regret == Approx(5));
  CHECK(choice->regret_of_three == Approx(1.5));
  CHECK(choice->worst_of_three == Approx(3));
  CHECK(choice->best_in_five == Approx(0.5));
  CHECK_FALSE(choice_of("t", {{"a", 1, 1}, {"b", 1, 1}}));
  // Alike predictions say nothing of an order.
  CHECK_FALSE(choice_of("t", {{"a", 1, 1}, {"a", 2, 1}})->tau);
}

// Widths 0.4 / 1, 0.2 / 2 and 3 / 1: the median is 0.4. The second does not hold its measurement.
TEST_CASE("intervals are summarized by coverage and median relative width") {
  Intervals intervals;
  const auto add = [&](double measured, double low, double value, double high) {
    intervals.add(measured, Estimate<double>{value, low, high, Provenance::kExtrapolated});
  };
  add(1.1, 0.9, 1, 1.3);
  add(2.5, 1.9, 2, 2.1);
  add(3.5, 0.8, 1, 3.8);
  SuiteSummary suite;
  intervals.summarize(suite);
  CHECK(*suite.interval_coverage == Approx(2.0 / 3));
  CHECK(*suite.interval_width == Approx(0.4));
  SuiteSummary none;
  Intervals().summarize(none);
  CHECK_FALSE(none.interval_width);
}

}  // namespace
}  // namespace rehearse::cli
