// The scale from measured steps.
#include <catch2/catch.hpp>

#include "models/step/fit_scale.h"

namespace rehearse::step {
namespace {

/// Rows of 1 s that the scale stretches and 0.5 s that it does not.
Result<Seconds> half_as_much_again(std::size_t, double scale) { return Seconds::s(0.5 + scale); }

MeasuredStep measured(double seconds) {
  return {.name = "job.yaml", .measured = Seconds::s(seconds), .at_peak = Seconds::s(0.3)};
}

TEST_CASE("one measured step is met, with 5 % to either side and more to the slow one") {
  for (const double seconds : {1.01, 1.5, 1.94, 3.4}) {
    const std::vector<MeasuredStep> rows = {measured(seconds)};
    const Result<ScaleFit> fit = fit_scale(rows, half_as_much_again);
    REQUIRE(fit);
    CHECK(fit->scale == Approx(seconds - 0.5).epsilon(1e-4));
    CHECK(fit->predicted[0].s() == Approx(seconds).epsilon(1e-4));
    CHECK(fit->residual < 1e-4);
    CHECK(fit->fastest == Approx(0.95));
    CHECK(fit->slowest == Approx(1.075));
  }
}

TEST_CASE("several measured steps: the least squares of logarithms, and their spread") {
  // A step in proportion to the scale: 0.8 and 1.25 are as far below 1 as above it.
  const auto in_proportion = [](std::size_t, double scale) -> Result<Seconds> {
    return Seconds::s(scale);
  };
  const std::vector<MeasuredStep> rows = {measured(0.8), measured(1.25)};
  const Result<ScaleFit> fit = fit_scale(rows, in_proportion);
  REQUIRE(fit);
  CHECK(fit->scale == Approx(1).epsilon(1e-4));
  CHECK(fit->residual == Approx((0.25 + 0.2) / 2).epsilon(1e-3));
  // Standard deviation ln(1.25) · √2.
  CHECK(fit->fastest == Approx(1 - 1.645 * std::log(1.25) * std::sqrt(2)).epsilon(1e-3));
  CHECK(fit->slowest == Approx(1 + 1.5 * (1 - fit->fastest)).epsilon(1e-6));
  // Rows that agree are no better known than 3 %.
  const std::vector<MeasuredStep> same = {measured(1.2), measured(1.2), measured(1.2)};
  CHECK(fit_scale(same, in_proportion)->fastest == Approx(0.97));
}

TEST_CASE("steps that no scale gives are refused, each with why") {
  const auto refused = [](std::vector<MeasuredStep> rows) {
    const Result<ScaleFit> fit = fit_scale(rows, half_as_much_again);
    REQUIRE_FALSE(fit);
    return to_string(fit.error());
  };
  CHECK(refused({measured(1.5), measured(0.2)}) ==
        "job.yaml: measured 200 ms is far off: its FLOPs take 300 ms at the peak of its devices; "
        "the batch, plan and devices of the job that was measured");
  CHECK(refused({measured(0.9)}) ==
        "job.yaml: measured 900 ms is far off: scale 0.5, the least, gives 1.00 s; the batch, plan "
        "and devices of the job that was measured");
  CHECK(
      refused({measured(4)}) ==
      "job.yaml: measured 4.00 s is far off: scale 3, the most, gives 3.50 s; the batch, plan and "
      "devices of the job that was measured");
}

}  // namespace
}  // namespace rehearse::step
