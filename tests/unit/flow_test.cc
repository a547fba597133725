// Flows: simulated times against closed forms.
#include "models/flow/flow.h"

#include <cmath>

#include <catch2/catch.hpp>

namespace rehearse::flow {
namespace {

Outcome outcome_of(const Flow& flow) {
  const auto outcome = run(flow);
  INFO((outcome ? "" : to_string(outcome.error())));
  REQUIRE(outcome);
  return *outcome;
}

/// One step, which ends the flow.
Flow flow_of(FlowStep step) {
  step.then = {{1, 1}};
  return {.steps = {std::move(step)}, .runs = 40'000};
}

// Requests 1, 1 + 2, 1 + 2 + 4, … seconds after the start, then every 4 s.
TEST_CASE("flow: what ended is seen at the next request for the status") {
  const Waits poll{.first = 1, .factor = 2, .most = 4};
  for (const auto& [time, seen] :
       {std::pair(0.0, 1.0), std::pair(1.0, 1.0), std::pair(1.1, 3.0), std::pair(3.5, 7.0),
        std::pair(7.5, 11.0), std::pair(90.0, 91.0)})
    CHECK(seen_at(poll, time) == seen);
  CHECK(outcome_of(flow_of({.time = 3.5, .poll = poll})).makespan == 7);
}

// A time that is uniform over whole intervals d ends d / 2 before its request on average. An
// exponential time of mean m is seen after d × (number of requests), which is geometric: d / (1 -
// exp(-d / m)), about m + d / 2.
TEST_CASE("flow: polling adds half an interval on average") {
  const Waits poll{.first = 4};
  const Outcome uniform = outcome_of(flow_of({.time = 10, .law = TimeLaw::kUniform, .poll = poll}));
  CHECK(std::abs(uniform.makespan - (10 + 4 / 2.0)) < 5 * uniform.standard_error);
  const Outcome exponential =
      outcome_of(flow_of({.time = 10, .law = TimeLaw::kExponential, .poll = poll}));
  CHECK(std::abs(exponential.makespan - 4 / (1 - std::exp(-0.4))) < 5 * exponential.standard_error);
  CHECK(4 / (1 - std::exp(-0.4)) == Approx(10 + 2).epsilon(0.02));
}

// With the probability p per try and r retries there are (1 - p^(r + 1)) / (1 - p) tries, and the
// wait before retry k, b f^(k - 1), is taken with the probability p^k.
TEST_CASE("flow: retries are geometric, with their back-off") {
  const double p = 0.4, t = 10, b = 3, f = 1.5;
  const int r = 4;
  double expected = t * (1 - std::pow(p, r + 1)) / (1 - p);
  for (int k = 1; k <= r; ++k) expected += b * std::pow(f, k - 1) * std::pow(p, k);
  const Outcome got = outcome_of(
      flow_of({.time = t, .fails = p, .retries = r, .back_off = Waits{.first = b, .factor = f}}));
  CHECK(std::abs(got.makespan - expected) < 5 * got.standard_error);
  CHECK(got.tries == Approx((1 - std::pow(p, r + 1)) / (1 - p)).epsilon(0.02));
  CHECK(got.completed == Approx(1 - std::pow(p, r + 1)).epsilon(0.01));
}

// make 5 s, check 1 s; a share of 0.25 is made again: 6 / (1 - 0.25), with 0.5 s before each step 7 /
// 0.75.
TEST_CASE("flow: branches, loops and transitions") {
  Flow flow{.steps = {{.time = 5, .then = {{1, 1}}}, {.time = 1, .then = {{0, 0.25}, {2, 0.75}}}},
            .transition = 0.5,
            .runs = 40'000};
  const Outcome got = outcome_of(flow);
  CHECK(std::abs(got.makespan - 7 / 0.75) < 5 * got.standard_error);
  CHECK(got.completed == 1);
  flow.steps[1].then = {{0, 1}};
  const auto endless = run(flow);
  REQUIRE_FALSE(endless);
  CHECK(to_string(endless.error()).find("no end") != std::string::npos);
}

TEST_CASE("flow: time limits of a step and of the flow") {
  Flow flow{
      .steps =
          {{.time = 4, .poll = Waits{.first = 3}, .limit = 5, .then = {{2, 1}}, .otherwise = 1},
           {.time = 2, .then = {{2, 1}}}},
      .runs = 10};
  CHECK(outcome_of(flow).makespan == 5 + 2);  // it is seen after 6 s only
  flow.steps[0].limit = 6;
  CHECK(outcome_of(flow).makespan == 6);
  flow.limit = 5.5;
  CHECK(outcome_of(flow).makespan == 5.5);
  CHECK(outcome_of(flow).completed == 0);
  flow = {.steps = {{.time = 4, .fails = 1, .retries = 1, .then = {{1, 1}}}}};
  CHECK(outcome_of(flow).makespan == 8);
  CHECK(outcome_of(flow).completed == 0);
}

}  // namespace
}  // namespace rehearse::flow
