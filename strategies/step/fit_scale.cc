#include "strategies/step/fit_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "sim/base/check.h"
#include "sim/base/statistics.h"
#include "strategies/step/regimes.h"

namespace rehearse::step {
namespace {

constexpr double kOneRow = 0.05, kLeastWidth = 0.03, kSlowSide = 1.5;
constexpr double kTolerance = 1e-5;  // of the logarithm of the scale

/// The part of a step that does not scale is fitted from this many rows on, if computing takes this
/// many times as long in the longest step as in the shortest, and if the variance falls this far.
constexpr std::size_t kRowsForFixed = 3;
constexpr double kApart = 1.5, kWorthIt = 0.5;

Status impossible(const MeasuredStep& row, const std::string& why) {
  return fail(Diagnostic{
      .file = row.name,
      .problem = fmt::format("measured {} is implausible: {}", to_string(row.measured), why),
      .expected = "the batch, plan and devices of the job that was measured"});
}

/// No scale within the bounds gives the measured step.
Status out_of_reach(const MeasuredStep& row, const std::string& bound) {
  if (!is_host_bound(row.host_share)) return impossible(row, bound);
  return fail(Diagnostic{
      .file = row.name,
      .problem = fmt::format(
          "measured {} is not a matter of computing: {}, because launches of the host determine "
          "{:.0f} % of the predicted step",
          to_string(row.measured), bound, row.host_share * 100),
      .expected =
          "the host's measured time per Llama block as `sustained: {host_per_layer: TIME}`, "
          "or a step with a larger microbatch"});
}

/// The least of a function with one minimum, by golden section.
template <class Function>  // Result<double>(double)
Result<double> place_of_least(double low, double high, double tolerance, Function&& function) {
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double left = high - golden * (high - low), right = low + golden * (high - low);
  Result<double> at_left = function(left), at_right = function(right);
  while (high - low > tolerance) {
    if (!at_left) return forward(at_left);
    if (!at_right) return forward(at_right);
    if (*at_left < *at_right) {
      high = right;
      right = left;
      at_right = at_left;
      left = high - golden * (high - low);
      at_left = function(left);
    } else {
      low = left;
      left = right;
      at_left = at_right;
      right = low + golden * (high - low);
      at_right = function(right);
    }
  }
  return (low + high) / 2;
}

class Fit {
 public:
  Fit(std::span<const MeasuredStep> rows, const StepAtScale& step_at)
      : rows_(rows), step_at_(step_at) {
    for (const MeasuredStep& row : rows) shortest_ = std::min(shortest_, row.measured);
  }

  Result<ScaleFit> run() {
    if (rows_.size() >= kRowsForFixed) {
      const Result<std::vector<Seconds>> computing = steps(1, Seconds::s(0));
      if (!computing) return forward(computing);
      const auto [least, most] = std::minmax_element(computing->begin(), computing->end());
      fits_fixed_ = *most > *least * kApart;
    }
    if (Status ok = check(); !ok) return forward(ok);
    Result<ScaleFit> scaled = with(false);
    if (!scaled || !fits_fixed_) return scaled;
    Result<ScaleFit> both = with(true);
    if (!both) return both;
    return variance(*both) < kWorthIt * variance(*scaled) ? both : scaled;
  }

 private:
  using Row = std::size_t;

  Status check() const {
    const std::optional<Seconds> none = no_time(fits_fixed_);
    for (Row i = 0; i < rows_.size(); ++i) {
      const MeasuredStep& row = rows_[i];
      REHEARSE_CHECK(row.measured > Seconds::s(0));
      const Result<Seconds> least = step_at_(i, kLeastScale, none);
      if (!least) return forward(least);
      const Result<Seconds> most = step_at_(i, kMostScale, none);
      if (!most) return forward(most);
      if (row.measured < row.at_peak)
        return impossible(row, fmt::format("its FLOPs take {} at the peak of its devices",
                                           to_string(row.at_peak)));
      if (row.measured < *least)
        return out_of_reach(
            row, fmt::format("scale {:g}, the least, gives {}", kLeastScale, to_string(*least)));
      if (!fits_fixed_ && row.measured > *most)
        return out_of_reach(
            row, fmt::format("scale {:g}, the most, gives {}", kMostScale, to_string(*most)));
    }
    return {};
  }

  Result<ScaleFit> with(bool fixed) const {
    const Result<double> log_scale = place_of_least(
        std::log(kLeastScale), std::log(kMostScale), kTolerance, [&](double log) -> Result<double> {
          const auto at = steps(std::exp(log), no_time(fixed));
          if (!at) return forward(at);
          return squares(*at, fixed ? best_time(*at) : Seconds::s(0));
        });
    if (!log_scale) return forward(log_scale);
    ScaleFit fit{.scale = std::exp(*log_scale),
                 .fixed = {},
                 .predicted = {},
                 .residual = 0,
                 .fastest = 1,
                 .slowest = 1};
    if (fixed) {
      const auto at = steps(fit.scale, no_time(true));
      if (!at) return forward(at);
      fit.fixed = best_time(*at);
    }
    Result<std::vector<Seconds>> predicted = steps(fit.scale, fit.fixed);
    if (!predicted) return forward(predicted);
    fit.predicted = std::move(*predicted);
    for (Row i = 0; i < rows_.size(); ++i)
      fit.residual += std::abs(fit.predicted[i] / rows_[i].measured - 1) / count();
    const double width =
        rows_.size() == 1 ? kOneRow : std::max(kLeastWidth, kNormal90 * std::sqrt(variance(fit)));
    fit.fastest = std::max(0.3, 1 - width);
    fit.slowest = std::min(5.0, 1 + kSlowSide * width);
    return fit;
  }

  static std::optional<Seconds> no_time(bool fixed) {
    return fixed ? std::optional(Seconds::s(0)) : std::nullopt;
  }

  Result<std::vector<Seconds>> steps(double scale, std::optional<Seconds> fixed) const {
    std::vector<Seconds> all;
    for (Row i = 0; i < rows_.size(); ++i) {
      const Result<Seconds> step = step_at_(i, scale, fixed);
      if (!step) return forward(step);
      all.push_back(*step);
    }
    return all;
  }

  double squares(const std::vector<Seconds>& steps, Seconds more) const {
    double sum = 0;
    for (Row i = 0; i < rows_.size(); ++i) {
      const double error = std::log((steps[i] + more) / rows_[i].measured);
      sum += error * error;
    }
    return sum;
  }

  /// The time to add to each step. A step grows by the added time, unless sums of gradients end
  /// later than everything else.
  Seconds best_time(const std::vector<Seconds>& steps) const {
    const auto place = place_of_least(
        0, shortest_.s(), kTolerance * shortest_.s(),
        [&](double time) -> Result<double> { return squares(steps, Seconds::s(time)); });
    return Seconds::s(*place);
  }

  double count() const { return static_cast<double>(rows_.size()); }
  /// The variance of logarithms, per degree of freedom. REQUIRES: more rows than constants.
  double variance(const ScaleFit& fit) const {
    return squares(fit.predicted, Seconds::s(0)) / (count() - (fit.fixed ? 2 : 1));
  }

  std::span<const MeasuredStep> rows_;
  const StepAtScale& step_at_;
  Seconds shortest_ = Seconds::s(std::numeric_limits<double>::infinity());
  bool fits_fixed_ = false;
};

}  // namespace

Result<ScaleFit> fit_scale(std::span<const MeasuredStep> rows, const StepAtScale& step_at) {
  REHEARSE_CHECK(!rows.empty());
  return Fit(rows, step_at).run();
}

}  // namespace rehearse::step
