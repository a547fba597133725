// Parameters that change during a run, estimates of them, and controllers.
#include <algorithm>
#include <cmath>

#include <catch2/catch.hpp>

#include "models/control/controller.h"

namespace rehearse::control {
namespace {

/// The first choice waits for a link of this rate, the second sends less and has work of its own.
Result<double> price(std::size_t choice, double level) {
  return choice == 0 ? 12 / level : 4 + 2 / level;
}

Outcome outcome_of(const Controller& controller) {
  const auto outcome = run(controller, price);
  INFO((outcome ? "" : to_string(outcome.error())));
  REQUIRE(outcome);
  return *outcome;
}

Controller on(Context context, std::uint32_t windows) {
  return {.context = std::move(context), .windows = windows, .choices = 2};
}

// Levels 10, 10, 1, 1. The first choice costs 1.2 and 12, the second 4.2 and 6.
TEST_CASE("controller: one window late, at the price of its observations") {
  Controller c = on(Recorded{{10, 10, 1, 1}}, 4);
  const Outcome late = outcome_of(c);
  CHECK(late.chosen == Approx(1.2 + 1.2 + 12 + 6));
  CHECK(late.known == Approx(1.2 + 1.2 + 6 + 6));
  CHECK(late.fixed == Approx(4.2 + 4.2 + 6 + 6));
  // Estimates 10, 10 and 1 for the levels 10, 1 and 1.
  CHECK(late.error == Approx(std::log(10) / std::sqrt(3.0)));
  c.cost = 0.5;
  CHECK(outcome_of(c).chosen == Approx(20.4 + 4 * 0.5));
  c.every = 3;  // windows 0 and 3
  CHECK(outcome_of(c).chosen == Approx(1.2 + 1.2 + 12 + 12 + 2 * 0.5));
  c = on(Recorded{{10, 10, 1, 1}}, 4);
  c.delay = 2;
  CHECK(outcome_of(c).chosen == Approx(1.2 + 1.2 + 12 + 12));
  c = on(Recorded{{10, 10, 1, 1}}, 4);
  c.classes = {{0, 1}, {5, 0}};
  CHECK(outcome_of(c).chosen == Approx(late.chosen));
}

TEST_CASE("controller: a price that hides the level is refused") {
  const auto outcome = run(on(Recorded{{10, 1}}, 4), [](std::size_t, double) { return 3.0; });
  REQUIRE_FALSE(outcome);
  CHECK(to_string(outcome.error()).find("both ends") != std::string::npos);
}

// States 1, 1, 2, 2 cost 1 and 5 under the first choice, 4 and 2 under the second. A window late: 1 + 1
// + 5 + 2. Each alone: 12 and 12.
TEST_CASE("controller: a state is observed itself, and wrongly as often as it says") {
  const PriceOf of_states = [](std::size_t choice, double state) -> Result<double> {
    return choice == 0 ? (state == 1 ? 1.0 : 5.0) : (state == 1 ? 4.0 : 2.0);
  };
  Controller c = on(Recorded{{1, 1, 2, 2}}, 4);
  c.states = 2;
  const auto late = run(c, of_states);
  REQUIRE(late);
  CHECK(late->chosen == 1 + 1 + 5 + 2);
  CHECK(late->known == 1 + 1 + 2 + 2);
  CHECK(late->fixed == 12);
  CHECK(late->error == Approx(1 / 3.0));
  c = on(States{0, 5}, 20'000);
  c.states = 5;
  c.noise = 0.2;
  const auto noisy = run(c, of_states);
  REQUIRE(noisy);
  CHECK(noisy->error == Approx(0.2).epsilon(0.05));
  // Wrong states 2 to 5 all have the choice of 2.
  CHECK(noisy->chosen / 20'000 == Approx(0.8 * 1 + 0.2 * 4).epsilon(0.05));
  const auto levels = levels_of(States{0.1, 3}, 30'000, 7);
  std::size_t changes = 0, first = 0;
  for (std::size_t w = 1; w < levels.size(); ++w) {
    changes += levels[w] != levels[w - 1];
    first += levels[w] == 1;
  }
  CHECK(changes == Approx(3000).epsilon(0.05));
  CHECK(first == Approx(10'000).epsilon(0.1));
}

TEST_CASE("estimates: a mean of windows, a fading mean, and a belief that knows of changes") {
  const auto after = [](const EstimateRule& rule, const std::vector<double>& observed) {
    Estimator estimator(rule);
    for (const double each : observed) estimator.observe(each);
    return estimator.estimate();
  };
  const std::vector<double> jump = {0, 0, 0, 0, 4};
  CHECK(after({}, jump) == 4);
  CHECK(after({.kind = EstimateKind::kWindow, .windows = 2}, jump) == 2);
  CHECK(after({.kind = EstimateKind::kExponential, .share = 0.25}, jump) == 1);
  // 4 is forty deviations away from 0: a new segment, whose mean shrinks by 1 / (1 + 0.1² / 2²).
  const EstimateRule belief{
      .kind = EstimateKind::kBelief, .hazard = 0.01, .noise = 0.1, .spread = 2};
  CHECK(after(belief, jump) == Approx(4 / (1 + 0.01 / 4)));
  // Without changes it is the mean of all, shrunk alike.
  EstimateRule constant = belief;
  constant.hazard = 0;
  CHECK(after(constant, {1, 2, 3}) == Approx(2 / (1 + 0.01 / 4 / 3)));
}

// Levels from 1 to 100, on segments of 50 windows on average; observations err by 30 %.
TEST_CASE("on segments the belief errs less than every window and every fading mean") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Controller c = on(Segments{0.02, 1, 100}, 5000);
    c.seed = seed;
    c.noise = 0.3;
    c.choices = 1;
    const auto error = [&](const EstimateRule& rule) {
      c.estimate = rule;
      return outcome_of(c).error;
    };
    const double belief = error({.kind = EstimateKind::kBelief,
                                 .hazard = 0.02,
                                 .noise = 0.3,
                                 .mean = std::log(10),
                                 .spread = std::log(100) / std::sqrt(12)});
    for (const std::uint32_t windows : {1, 2, 3, 4, 6, 8, 12, 16, 32})
      CHECK(belief < error({.kind = EstimateKind::kWindow, .windows = windows}));
    for (const double share : {0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9})
      CHECK(belief < error({.kind = EstimateKind::kExponential, .share = share}));
  }
}

TEST_CASE("contexts stay in their range, and change as often as they say") {
  const auto levels = levels_of(Segments{0.1, 2, 50}, 100'000, 7);
  std::size_t changes = 0;
  for (std::size_t w = 1; w < levels.size(); ++w) changes += levels[w] != levels[w - 1];
  CHECK(changes == Approx(10'000).epsilon(0.05));
  for (const Context& context : {Context(Segments{0.1, 2, 50}), Context(Walk{0.3, 2, 50})}) {
    const auto all = levels_of(context, 10'000, 7);
    CHECK(*std::min_element(all.begin(), all.end()) >= 2 * (1 - 1e-12));
    CHECK(*std::max_element(all.begin(), all.end()) <= 50 * (1 + 1e-12));
  }
  const auto walk = levels_of(Walk{0.01, 1e-6, 1e6}, 2, 3);
  CHECK(std::abs(std::log(walk[1] / walk[0])) < 0.1);
}

}  // namespace
}  // namespace rehearse::control
