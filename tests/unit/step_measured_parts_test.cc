// Measured steps of other plans correct a predicted step by the shares of its parts.
#include <cmath>

#include <catch2/catch.hpp>

#include "strategies/step/measured_parts.h"

namespace rehearse::step {
namespace {

/// A step whose only shares are these of computing and launches.
StepParts made_parts(double value, double computing, double host) {
  const Seconds time = Seconds::s(value);
  return {.time = {time, time * 0.5, time * 2, Provenance::kExtrapolated},
          .stall = Seconds::s(0),
          .shares = {computing, host, 0, 0},
          .before = {{{0.8, 1.25}, {0.8, 1.25}, {0.8, 1.25}, kFixedTime}},
          .regime = {.name = "a", .factors = {1, 1}, .source = "rows"}};
}

// All of the first step is computing. With priors and errors that are nearly symmetric, the factor
// takes the share p² / (p² + e²) of the difference, of logarithms: p = ln(1.25) / 1.645 = 0.136,
// e = 0.08, and the weight of Student's t at a miss of 0.7 errors is close to one.
TEST_CASE("a measured step corrects others by the share of the part that it measures") {
  const StepParts first = made_parts(1, 1, 0), half = made_parts(2, 0.5, 0.5),
                  host = made_parts(3, 0, 1);
  const StepParts* const known[] = {&first};
  const Seconds measured[] = {Seconds::s(1.2)};
  const Result<FactorFit> fit = fit_parts(known, measured);
  REQUIRE(fit);
  CHECK(std::log(fit->factors[0]) == Approx(std::log(1.2) * 0.75).epsilon(0.05));
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
  CHECK(unexplained(other).high == Approx(3 + 2));
}

}  // namespace
}  // namespace rehearse::step
