#include "strategies/step/fit_factors.h"

#include <algorithm>
#include <cmath>

#include <Eigen/LU>
#include <fmt/core.h>

#include "sim/base/check.h"
#include "sim/base/statistics.h"
#include "strategies/step/predict.h"

namespace rehearse::step {

namespace {

Seconds with_factors(const StepParts& parts, const ByFactor<double>& factors) {
  double log = 0;
  for (std::size_t k = 0; k < kFactors; ++k) log += parts.shares[k] * std::log(factors[k]);
  return parts.time.value * std::exp(log);
}

using Vector = ByFactor<double>;
using Matrix = ByFactor<Vector>;

/// Student's t: rows further from the fit than twice their error count less than half.
constexpr double kFreedom = 4;
/// Logarithms: of finite differences, and of a step of the search that ends it.
constexpr double kDifference = 0.05, kTolerance = 1e-3;
constexpr int kMostSteps = 12, kMostHalvings = 4;
/// A part that was given has an error, too.
constexpr double kLeastDeviation = 0.02;

constexpr program::Interval kBounds[] = {
    {kLeastScale, kMostScale}, {kLeastPart, kMostPart}, {kLeastPart, kMostPart}, {kLeastPart, 500}};

/// The standard deviation of logarithms below or above the middle of a 90 % interval.
double deviation(double end) {
  return std::max(kLeastDeviation, std::abs(std::log(end)) / kNormal90);
}

double deviation(const program::Interval& around) {
  return std::log(around.high / around.low) / (2 * kNormal90);
}

/// The end of an interval without the error of a step, whose own end is `step`.
double without(double end, double step) {
  const double rest =
      std::sqrt(std::max(0.0, std::pow(deviation(end), 2) - std::pow(deviation(step), 2)));
  return std::exp(std::copysign(kNormal90 * std::max(kLeastDeviation, rest), std::log(step)));
}

Vector exp_of(const Vector& logs) {
  Vector factors;
  std::transform(logs.begin(), logs.end(), factors.begin(), [](double x) { return std::exp(x); });
  return factors;
}

/// REQUIRES: symmetric and positive definite.
Matrix inverse(const Matrix& m) {
  using Square = Eigen::Matrix<double, kFactors, kFactors>;
  Matrix out;
  Eigen::Map<Square>(out[0].data()) = Eigen::Map<const Square>(m[0].data()).inverse();
  return out;
}

Status impossible(const MeasuredStep& row, const std::string& why) {
  return fail_in(row.name,
                 fmt::format("measured {} is implausible: {}", to_string(row.measured), why),
                 "the batch, plan and devices of the job that was measured");
}

class Fit {
 public:
  Fit(std::span<const MeasuredStep> rows, const ByFactor<program::Interval>& before,
      const StepAtFactors& step_at)
      : rows_(rows), before_(before), step_at_(step_at) {
    for (const MeasuredStep& row : rows)
      errors_.push_back({std::hypot(deviation(kStepError.low), deviation(row.regime)),
                         std::hypot(deviation(kStepError.high), deviation(row.regime))});
  }

  Result<FactorFit> run() {
    TRY(check());
    Vector at = {};
    std::vector<Seconds> steps = TRY(steps_at(at));
    for (int i = 0; i < kMostSteps; ++i) {
      TRY(find_slopes(at, steps));
      const Vector better = newton(at, steps);
      double share = 1, moved = 0;
      Vector next = at;
      for (int half = 0; half <= kMostHalvings; ++half, share /= 2) {
        moved = 0;
        for (std::size_t k = 0; k < kFactors; ++k) {
          next[k] = std::clamp(at[k] + share * (better[k] - at[k]), std::log(kBounds[k].low),
                               std::log(kBounds[k].high));
          moved = std::max(moved, std::abs(next[k] - at[k]));
        }
        std::vector<Seconds> there = TRY(steps_at(next));
        const bool lower = cost(next, there) <= cost(at, steps);
        if (lower || half == kMostHalvings) {
          if (!lower) moved = 0;
          if (lower) at = next;
          if (lower) steps = std::move(there);
          break;
        }
      }
      if (moved < kTolerance) break;
    }
    TRY(find_slopes(at, steps));
    return fit_at(at, std::move(steps));
  }

 private:
  Status check() const {
    Vector least, most;
    for (std::size_t k = 0; k < kFactors; ++k) {
      least[k] = kBounds[k].low;
      most[k] = kBounds[k].high;
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const MeasuredStep& row = rows_[i];
      REHEARSE_CHECK(row.measured > Seconds::s(0));
      if (row.measured < row.at_peak)
        return impossible(row, fmt::format("its FLOPs take {} at the peak of its devices",
                                           to_string(row.at_peak)));
      for (const bool low : {true, false}) {
        const Seconds end = TRY(step_at_(i, low ? least : most));
        if (low ? row.measured < end : row.measured > end)
          return impossible(
              row, fmt::format("with the {} factors on all its parts (computing {:g}) it takes {}",
                               low ? "least" : "largest", low ? kLeastScale : kMostScale,
                               to_string(end)));
      }
    }
    return {};
  }

  Result<std::vector<Seconds>> steps_at(const Vector& logs) const {
    std::vector<Seconds> steps;
    for (std::size_t i = 0; i < rows_.size(); ++i) steps.push_back(TRY(step_at_(i, exp_of(logs))));
    return steps;
  }

  /// The change of each step's logarithm with those of the factors, by finite differences.
  Status find_slopes(const Vector& at, const std::vector<Seconds>& steps) {
    slopes_.assign(rows_.size(), {});
    for (std::size_t k = 0; k < kFactors; ++k) {
      Vector moved = at;
      moved[k] += kDifference;
      const std::vector<Seconds> then = TRY(steps_at(moved));
      for (std::size_t i = 0; i < rows_.size(); ++i)
        slopes_[i][k] = std::log(then[i] / steps[i]) / kDifference;
    }
    return {};
  }

  /// The row's error on the side of the fit where it is.
  double error(std::size_t row, Seconds step) const {
    return rows_[row].measured < step ? errors_[row].below : errors_[row].above;
  }
  /// In units of the row's error.
  double miss(std::size_t row, Seconds step) const {
    return std::log(rows_[row].measured / step) / error(row, step);
  }
  /// What the row tells of its logarithm.
  double precision(std::size_t row, Seconds step) const {
    return weight(row, step) / std::pow(error(row, step), 2);
  }
  double weight(std::size_t row, Seconds step) const {
    const double m = miss(row, step);
    return (kFreedom + 1) / (kFreedom + m * m);
  }
  double prior(std::size_t k, double log) const {
    return deviation(log < 0 ? before_[k].low : before_[k].high);
  }

  double cost(const Vector& at, const std::vector<Seconds>& steps) const {
    double sum = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double m = miss(i, steps[i]);
      sum += (kFreedom + 1) / 2 * std::log1p(m * m / kFreedom);
    }
    for (std::size_t k = 0; k < kFactors; ++k) sum += std::pow(at[k] / prior(k, at[k]), 2) / 2;
    return sum;
  }

  /// What rows and priors know, for these deviations of the priors.
  Matrix information(const std::vector<Seconds>& steps, const Vector& deviations) const {
    Matrix m = {};
    for (std::size_t k = 0; k < kFactors; ++k) m[k][k] = 1 / (deviations[k] * deviations[k]);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double w = precision(i, steps[i]);
      for (std::size_t k = 0; k < kFactors; ++k)
        for (std::size_t j = 0; j < kFactors; ++j) m[k][j] += w * slopes_[i][k] * slopes_[i][j];
    }
    return m;
  }

  /// The least of the cost where steps change as `slopes_` say. A prior of two sides is that of the
  /// side that the rows pull to.
  Vector newton(const Vector& at, const std::vector<Seconds>& steps) const {
    Vector pull = {};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      double off = std::log(rows_[i].measured / steps[i]);
      for (std::size_t k = 0; k < kFactors; ++k) off += slopes_[i][k] * at[k];
      for (std::size_t k = 0; k < kFactors; ++k)
        pull[k] += precision(i, steps[i]) * slopes_[i][k] * off;
    }
    Vector deviations;
    for (std::size_t k = 0; k < kFactors; ++k)
      deviations[k] = prior(k, at[k] != 0 ? at[k] : pull[k]);
    const Matrix known = inverse(information(steps, deviations));
    Vector there = {};
    for (std::size_t k = 0; k < kFactors; ++k)
      for (std::size_t j = 0; j < kFactors; ++j) there[k] += known[k][j] * pull[j];
    return there;
  }

  FactorFit fit_at(const Vector& at, std::vector<Seconds> steps) const {
    FactorFit fit{.factors = exp_of(at), .before = before_, .residual = 0};
    Vector below, above;
    for (std::size_t k = 0; k < kFactors; ++k) {
      below[k] = deviation(before_[k].low);
      above[k] = deviation(before_[k].high);
    }
    const Matrix low = inverse(information(steps, below));
    fit.covariance = inverse(information(steps, above));
    for (std::size_t k = 0; k < kFactors; ++k)
      fit.after[k] = {std::exp(-kNormal90 * std::sqrt(low[k][k])),
                      std::exp(kNormal90 * std::sqrt(fit.covariance[k][k]))};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      fit.weights.push_back(weight(i, steps[i]) * kFreedom / (kFreedom + 1));
      fit.residual +=
          std::abs(steps[i] / rows_[i].measured - 1) / static_cast<double>(rows_.size());
    }
    fit.predicted = std::move(steps);
    return fit;
  }

  std::span<const MeasuredStep> rows_;
  const ByFactor<program::Interval>& before_;
  const StepAtFactors& step_at_;
  struct Sides {
    double below, above;
  };
  std::vector<Sides> errors_;   // by row, of logarithms
  std::vector<Vector> slopes_;  // by row
};

}  // namespace

program::Interval common_to_plans(const program::Interval& of_steps) {
  return {without(of_steps.low, kStepError.low), without(of_steps.high, kStepError.high)};
}

Result<FactorFit> fit_factors(std::span<const MeasuredStep> rows,
                              const ByFactor<program::Interval>& before,
                              const StepAtFactors& step_at) {
  REHEARSE_CHECK(!rows.empty());
  return Fit(rows, before, step_at).run();
}

Information information_of(const FactorFit& fit, const ByFactor<double>& shares) {
  ByFactor<double> of_factor = {};
  double variance = 0;
  for (std::size_t k = 0; k < kFactors; ++k) {
    for (std::size_t j = 0; j < kFactors; ++j) of_factor[k] += fit.covariance[k][j] * shares[j];
    variance += of_factor[k] * shares[k];
  }
  const double alone = std::pow(deviation(kStepError), 2);
  std::size_t most = 0;
  double narrowed = -1;
  for (std::size_t k = 0; k < kFactors; ++k) {
    const double share = of_factor[k] * of_factor[k] / fit.covariance[k][k] / (alone + variance);
    if (share <= narrowed) continue;
    narrowed = share;
    most = k;
  }
  return {variance / alone, static_cast<Factor>(most)};
}

StepParts parts_of(const Step& step, const Spec& spec, const cluster::Cluster& cluster) {
  const Situation situation =
      situation_of(step.layout, cluster, spec.training.microbatch, spec.plan.zero > 0);
  const host::Implementation& host = spec.conditions.host;
  const double network = 1 + situation.network_width;
  return {.time = step.time,
          .stall = step.stall,
          .shares = shares_of(step, spec.conditions, situation.nodes > 1),
          .before = {{common_to_plans(step.computing),
                      {host.fastest, host.slowest},
                      {1 / network, network},
                      kFixedTime}},
          .regime = step.regime};
}

program::Interval unexplained(const StepParts& parts) {
  program::Interval interval = beyond_factors(parts.regime);
  interval.high += parts.stall / parts.time.value;
  return interval;
}

Result<FactorFit> fit_parts(std::span<const StepParts* const> parts,
                            std::span<const Seconds> measured) {
  REHEARSE_CHECK(!parts.empty() && parts.size() == measured.size());
  std::vector<MeasuredStep> rows;
  for (std::size_t i = 0; i < parts.size(); ++i)
    rows.push_back(
        {.measured = measured[i], .at_peak = Seconds::s(0), .regime = unexplained(*parts[i])});
  return fit_factors(rows, parts.front()->before,
                     [&](std::size_t i, const ByFactor<double>& factors) -> Result<Seconds> {
                       return with_factors(*parts[i], factors);
                     });
}

Estimate<Seconds> corrected(const StepParts& parts, const FactorFit& fit,
                            std::span<const StepParts* const> measured) {
  const Seconds value = with_factors(parts, fit.factors);
  const bool seen = std::any_of(measured.begin(), measured.end(), [&](const StepParts* other) {
    return other->regime.name == parts.regime.name;
  });
  Estimate<Seconds> step = interval_of({value, value, value, parts.time.provenance}, parts.shares,
                                       {fit.after, kStepError, {}});
  if (!seen) step = widened(step, beyond_factors(parts.regime));
  step.high += parts.stall;
  // Measured steps do not make any step less certain, and do not tell which runs stall.
  const Estimate<Seconds>& alone = parts.time;
  const double low = alone.low / alone.value, high = alone.high / alone.value;
  step.low = parts.stall > Seconds::s(0) ? value * low : std::max(step.low, value * low);
  step.high = std::min(step.high, value * high);
  return step;
}

}  // namespace rehearse::step
