// Measured steps of other plans correct a predicted step by the shares of its parts.
#include <cmath>

#include <catch2/catch.hpp>

#include "strategies/step/fit_factors.h"
#include "strategies/step/predict.h"

namespace rehearse::step {
namespace {

/// A step whose only shares are these of computing and launches.
StepParts made_parts(double value, double computing, double host) {
  const Seconds time = Seconds::s(value);
  return {.time = {time, time * 0.5, time * 4, Provenance::kExtrapolated},
          .stall = Seconds::s(0),
          .shares = {computing, host, 0, 0},
          .before = {{{0.8, 1.25}, {0.8, 1.25}, {0.8, 1.25}, kFixedTime}},
          .regime = {.name = "a", .factors = {1, 1}, .source = "rows"}};
}

// All of the first step is computing. The factor takes the share p² / (p² + e²) of the difference of
// logarithms: p = ln(1.25) / 1.645 = 0.136, and e = 0.12 for a step that is slower than predicted,
// divided by the root of 5 / 4.36, the weight of Student's t at a miss of 0.6 errors.
TEST_CASE("a measured step corrects others by the share of the part that it measures") {
  const StepParts first = made_parts(1, 1, 0), half = made_parts(2, 0.5, 0.5),
                  host = made_parts(3, 0, 1);
  const StepParts* const known[] = {&first};
  const Seconds measured[] = {Seconds::s(1.2)};
  const Result<FactorFit> fit = fit_parts(known, measured);
  REQUIRE(fit);
  CHECK(std::log(fit->factors[0]) == Approx(std::log(1.2) * 0.596).epsilon(0.05));
  CHECK(fit->factors[1] == Approx(1));
  CHECK(corrected(first, *fit, known).value.s() == Approx(fit->factors[0]));
  CHECK(corrected(half, *fit, known).value.s() == Approx(2 * std::sqrt(fit->factors[0])));
  CHECK(corrected(host, *fit, known).value.s() == Approx(3));
  // What was measured is known better than what was not.
  const Estimate<Seconds> narrow = corrected(first, *fit, known),
                          wide = corrected(host, *fit, known);
  CHECK(narrow.high / narrow.value < wide.high / wide.value);
}

TEST_CASE("a regime that was not measured keeps its interval, and every regime its stalls") {
  const StepParts first = made_parts(1, 1, 0);
  StepParts other = made_parts(1, 1, 0);
  other.regime = {.name = "b", .factors = {0.5, 3}, .source = "rows"};
  const StepParts* const known[] = {&first};
  const Seconds measured[] = {Seconds::s(1)};
  const FactorFit fit = fit_parts(known, measured).value();
  CHECK(corrected(other, fit, known).high.s() == Approx(3));
  other.regime.name = "a";
  const Estimate<Seconds> seen = corrected(other, fit, known);
  CHECK(seen.high.s() < 1.5);
  other.stall = Seconds::s(2);
  CHECK(corrected(other, fit, known).high.s() == Approx(seen.high.s() + 2));
  // A measured step does not tell whether another run stalls.
  CHECK(seen.low.s() > 0.8);
  CHECK(corrected(other, fit, known).low.s() == Approx(0.5));
  CHECK(unexplained(other).high == Approx(3 + 2));
}

// The stalls of a plan are in the time that a step takes once, and no calibration changes them.
TEST_CASE("the factor of the fixed time does not reach stalls") {
  const Step step{
      .layout = {.microbatches = 1,
                 .samples_per_step = 1,
                 .tokens_per_sample = 1,
                 .model_flops = Flops::flop(1),
                 .applied = {}},
      .job = {},
      .lowered = {},
      .timeline = {},
      .time = {Seconds::s(10), Seconds::s(9), Seconds::s(12), Provenance::kExtrapolated},
      .fixed = Seconds::s(6)};
  Conditions conditions;
  conditions.fixed = Seconds::s(0.5);
  const ByFactor<double> shares = shares_of(step, conditions, true);
  CHECK(shares[0] == Approx(0.4));
  CHECK(shares[3] == Approx(0.05));
}

}  // namespace
}  // namespace rehearse::step
