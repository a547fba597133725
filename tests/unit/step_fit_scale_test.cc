// The scale from measured steps.
#include <cmath>

#include <catch2/catch.hpp>

#include "strategies/step/fit_scale.h"

namespace rehearse::step {
namespace {

/// Rows of 1 s that the scale stretches and 0.5 s that it does not.
Result<Seconds> half_as_much_again(std::size_t, double scale, std::optional<Seconds>) {
  return Seconds::s(0.5 + scale);
}

MeasuredStep measured(double seconds) {
  return {.name = "job.yaml", .measured = Seconds::s(seconds), .at_peak = Seconds::s(0.3)};
}

TEST_CASE(
    "one measured step is reproduced, with an interval of 5 % that is wider to the slow side") {
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

TEST_CASE("several measured steps: least squares of logarithms, and their spread") {
  // A step in proportion to the scale: 0.8 and 1.25 are as far below 1 as above it.
  const auto in_proportion = [](std::size_t, double scale,
                                std::optional<Seconds> fixed) -> Result<Seconds> {
    return Seconds::s(scale) + fixed.value_or(Seconds::s(0));
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

/// Computing takes 0.1, 0.2 and 0.4 s; 20 ms once per step are usual.
Result<Seconds> three_batches(std::size_t row, double scale, std::optional<Seconds> fixed) {
  return Seconds::s(0.1 * std::pow(2.0, static_cast<double>(row)) * scale) +
         fixed.value_or(Seconds::ms(20));
}

MeasuredStep measured_at(double seconds) {
  return {.name = "job.yaml", .measured = Seconds::s(seconds), .at_peak = Seconds::s(0.01)};
}

TEST_CASE("steps that differ show the time that does not grow with computing") {
  for (const double scale : {0.6, 1.4})
    for (const double fixed : {0.0, 0.3}) {
      INFO(scale << " " << fixed);
      std::vector<MeasuredStep> rows;
      for (const double computing : {0.1, 0.2, 0.4})
        rows.push_back(measured_at(computing * scale + fixed));
      const Result<ScaleFit> fit = fit_scale(rows, three_batches);
      REQUIRE(fit);
      REQUIRE(fit->fixed);
      CHECK(fit->scale == Approx(scale).epsilon(1e-3));
      CHECK(fit->fixed->s() == Approx(fixed).margin(1e-3));
      CHECK(fit->residual < 1e-3);
    }
  // 1.1 s are more than three times 0.1 s: what does not scale explains it.
  const Result<ScaleFit> slow =
      fit_scale(std::vector{measured_at(1.1), measured_at(1.2), measured_at(1.4)}, three_batches);
  REQUIRE(slow);
  CHECK(slow->scale == Approx(1).epsilon(1e-3));
  CHECK(slow->fixed->s() == Approx(1).epsilon(1e-3));
}

TEST_CASE("the fixed time is unchanged if steps do not show it") {
  // As usual; and 10 % of scatter about it, that no time once per step explains.
  for (const double scatter : {0.0, 0.1}) {
    const Result<ScaleFit> fit =
        fit_scale(std::vector{measured_at(0.12 * (1 + scatter)), measured_at(0.22 * (1 - scatter)),
                              measured_at(0.42 * (1 + scatter))},
                  three_batches);
    REQUIRE(fit);
    CHECK_FALSE(fit->fixed);
    CHECK(fit->scale == Approx(1).epsilon(0.05));
  }
  // Two steps, or three that compute as long.
  const Result<ScaleFit> two =
      fit_scale(std::vector{measured_at(0.14), measured_at(0.26)}, three_batches);
  REQUIRE(two);
  CHECK_FALSE(two->fixed);
  const auto alike = [](std::size_t, double scale,
                        std::optional<Seconds> fixed) -> Result<Seconds> {
    return Seconds::s(scale) + fixed.value_or(Seconds::ms(20));
  };
  const std::vector<MeasuredStep> far(3, measured_at(9));
  const Result<ScaleFit> refused = fit_scale(far, alike);
  REQUIRE_FALSE(refused);
  CHECK(to_string(refused.error()).find("scale 3, the most, gives 3.02 s") != std::string::npos);
}

TEST_CASE("steps that no scale reproduces are refused with the reason") {
  const auto refused = [](std::vector<MeasuredStep> rows) {
    const Result<ScaleFit> fit = fit_scale(rows, half_as_much_again);
    REQUIRE_FALSE(fit);
    return to_string(fit.error());
  };
  CHECK(
      refused({measured(1.5), measured(0.2)}) ==
      "job.yaml: measured 200 ms is implausible: its FLOPs take 300 ms at the peak of its devices; "
      "the batch, plan and devices of the job that was measured");
  CHECK(refused({measured(0.9)}) ==
        "job.yaml: measured 900 ms is implausible: scale 0.5, the least, gives 1.00 s; the batch, "
        "plan "
        "and devices of the job that was measured");
  CHECK(refused({measured(4)}) ==
        "job.yaml: measured 4.00 s is implausible: scale 3, the most, gives 3.50 s; the batch, "
        "plan and "
        "devices of the job that was measured");
}

}  // namespace
}  // namespace rehearse::step
