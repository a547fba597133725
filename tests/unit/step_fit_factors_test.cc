// Factors on the parts of a step from measured steps.
#include <cmath>

#include <catch2/catch.hpp>

#include "strategies/step/fit_factors.h"

namespace rehearse::step {
namespace {

/// The parts of a step, in seconds. Computing and launches take the longer of both.
struct Parts {
  double computing, launches, network, fixed = 0.02;

  double at(const ByFactor<double>& f) const {
    return std::max(computing * f[0], launches * f[1]) + network * f[2] + fixed * f[3];
  }
};

constexpr ByFactor<program::Interval> kBefore = {
    {{0.86, 1.45}, {0.65, 1.6}, {0.67, 1.5}, kFixedTime}};

/// The fit of steps that take these factors.
FactorFit fit_of(const std::vector<Parts>& jobs, const ByFactor<double>& truth,
                 const std::vector<double>& errors = {}) {
  std::vector<MeasuredStep> rows;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    rows.push_back({.name = "job.yaml",
                    .measured = Seconds::s(jobs[i].at(truth) * (errors.empty() ? 1 : errors[i])),
                    .at_peak = Seconds::s(0.01)});
  const Result<FactorFit> fit = fit_factors(
      rows, kBefore, [&](std::size_t row, const ByFactor<double>& f) -> Result<Seconds> {
        return Seconds::s(jobs[row].at(f));
      });
  REQUIRE(fit);
  return *fit;
}

constexpr Parts kKernels{2, 0.5, 0}, kLaunches{0.5, 2, 0}, kMessages{0.5, 0.3, 1.5};

TEST_CASE("a step narrows the factor of the part that it consists of, and no other") {
  const FactorFit of_kernels = fit_of({kKernels}, {1.2, 1, 1, 1});
  CHECK(of_kernels.factors[0] == Approx(1.16).epsilon(0.01));
  CHECK(of_kernels.after[0].high < 1.2);
  CHECK(of_kernels.factors[1] == 1);
  CHECK(of_kernels.after[1].low == Approx(0.65));
  CHECK(of_kernels.after[1].high == Approx(1.6));
  CHECK(of_kernels.after[2].high == Approx(1.5));

  const FactorFit of_launches = fit_of({kLaunches}, {1, 1.3, 1, 1});
  CHECK(of_launches.factors[0] == 1);
  CHECK(of_launches.factors[1] == Approx(1.26).epsilon(0.01));
  CHECK(of_launches.after[1].high < 1.2);
  CHECK(of_launches.after[0].high == Approx(1.45));
}

// The prior of computing has the deviation ln(1.45) / 1.645 = 0.226, and a step that is slower than
// predicted one of 0.12; near the fit, Student's t with four degrees of freedom counts 5/4 times. Of
// ln(1.2) = 0.182 the factor takes 0.226² / (0.226² + 0.12² · 4/5) = 0.816.
TEST_CASE("worked example: prior and step share the difference by their variances") {
  const FactorFit fit = fit_of({{2, 0.5, 0, 0}}, {1.2, 1, 1, 1});
  CHECK(std::log(fit.factors[0]) == Approx(0.816 * std::log(1.2)).epsilon(0.01));
  const double variance = 1 / (1 / (0.226 * 0.226) + 1.25 / (0.12 * 0.12));
  CHECK(fit.after[0].high == Approx(std::exp(1.645 * std::sqrt(variance))).epsilon(0.01));
}

// A faster step has a deviation of 0.08, and the prior one of ln(0.86) / 1.645 = 0.092 on that side:
// 0.092² / (0.092² + 0.08² · 4/5) = 0.62.
TEST_CASE("a step that is faster than predicted says more than a slower one") {
  const FactorFit fit = fit_of({{2, 0.5, 0, 0}}, {0.9, 1, 1, 1});
  CHECK(std::log(fit.factors[0]) == Approx(0.62 * std::log(0.9)).epsilon(0.03));
}

// The end 1.25 has the deviation 0.136, of which each step's own is 0.12: the rest is √(0.136² −
// 0.12²) = 0.063, and exp(1.645 · 0.063) = 1.11. The own one of the end 0.92 is larger than all of it,
// so that the least remains: exp(−1.645 · 0.02).
TEST_CASE("plans of a job have in common what is not the error of each step") {
  const program::Interval kernels = common_to_plans({0.92, 1.25}),
                          others = common_to_plans({0.86, 1.45});
  CHECK(kernels.high == Approx(1.11).epsilon(0.001));
  CHECK(kernels.low == Approx(0.968).epsilon(0.001));
  CHECK(others.high == Approx(1.37).epsilon(0.001));
  CHECK(others.low == Approx(0.929).epsilon(0.001));
}

TEST_CASE("steps that differ separate the factors") {
  const ByFactor<double> truth = {1.15, 0.8, 1.3, 1};
  const std::vector<Parts> jobs = {kKernels,  kLaunches, kMessages,
                                   {4, 1, 0}, {1, 4, 0}, {1, 0.5, 4}};
  const FactorFit fit = fit_of(jobs, truth);
  for (std::size_t k = 0; k < 3; ++k) CHECK(fit.factors[k] == Approx(truth[k]).epsilon(0.04));
  CHECK(fit.residual < 0.02);
  // Steps at three batches, each measured twice, show what they take once, in addition.
  const FactorFit once =
      fit_of({{0.1, 0, 0}, {0.1, 0, 0}, {0.2, 0, 0}, {0.2, 0, 0}, {0.4, 0, 0}, {0.4, 0, 0}},
             {0.9, 1, 1, 8});
  CHECK(once.factors[3] > 6);
  CHECK(once.factors[3] < 9);
  CHECK(once.factors[0] < 1.01);
  CHECK(once.residual < 0.05);
}

TEST_CASE("a step that nothing explains counts little") {
  const std::vector<Parts> jobs = {kKernels, {3, 0.5, 0}, {4, 1, 0}, {5, 1, 0}};
  const FactorFit fit = fit_of(jobs, {1.1, 1, 1, 1}, {1, 4, 1, 1});
  CHECK(fit.factors[0] == Approx(1.1).epsilon(0.03));
  CHECK(fit.weights[1] < 0.05);
  CHECK(fit.weights[0] > 0.9);
}

TEST_CASE("the next step to measure is one of a part that is not known") {
  const FactorFit fit = fit_of({kKernels}, {1.2, 1, 1, 1});
  const Information again = information_of(fit, {1, 0, 0, 0}),
                    host = information_of(fit, {0, 1, 0, 0}),
                    network = information_of(fit, {0.6, 0, 0.4, 0});
  CHECK(again.ratio < 1);
  CHECK(host.ratio > 5);
  CHECK(host.factor == Factor::kHost);
  CHECK(network.factor == Factor::kNetwork);
}

TEST_CASE("steps that no factors give are refused, each with why") {
  const auto refused = [](double seconds) {
    const std::vector<MeasuredStep> rows = {
        {.name = "job.yaml", .measured = Seconds::s(seconds), .at_peak = Seconds::s(0.3)}};
    const Result<FactorFit> fit =
        fit_factors(rows, kBefore, [](std::size_t, const ByFactor<double>& f) -> Result<Seconds> {
          return Seconds::s(kKernels.at(f));
        });
    REQUIRE_FALSE(fit);
    return to_string(fit.error());
  };
  CHECK(refused(0.2) ==
        "job.yaml: measured 200 ms is implausible: its FLOPs take 300 ms at the peak of its "
        "devices; the batch, plan and devices of the job that was measured");
  CHECK(refused(0.9) ==
        "job.yaml: measured 900 ms is implausible: with the least factors on all its parts "
        "(computing 0.5) it takes 1.00 s; the batch, plan and devices of the job that was "
        "measured");
  CHECK(
      refused(40).find("with the largest factors on all its parts (computing 3) it takes 16.0 s") !=
      std::string::npos);
}

/// The interval of a step is that of its parts, by their shares: ln(1.1) and 0.5 ln(1.6).
TEST_CASE("a step has the uncertainty of its parts") {
  const Known known{.factors = {{{0.9, 1.1}, {0.65, 1.6}, {0.67, 1.5}, {1, 1}}},
                    .step = {0.9, 1.1},
                    .regimes = {}};
  const Estimate<Seconds> step{Seconds::s(2), Seconds::s(1), Seconds::s(9), Provenance::kRecorded};
  const Estimate<Seconds> computing = interval_of(step, {1, 0, 0, 0}, known),
                          half = interval_of(step, {0.5, 0.5, 0, 0}, known);
  CHECK(computing.high.s() == Approx(2 * std::exp(std::sqrt(2) * std::log(1.1))));
  CHECK(half.high.s() ==
        Approx(2 * std::exp(std::hypot(std::log(1.1), 0.5 * std::log(1.1), 0.5 * std::log(1.6)))));
  CHECK(half.low < computing.low);
}

}  // namespace
}  // namespace rehearse::step
