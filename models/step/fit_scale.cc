#include "models/step/fit_scale.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::step {
namespace {

constexpr double kOneRow = 0.05, kLeastWidth = 0.03, kSlowSide = 1.5;
constexpr double kTolerance = 1e-5;  // of the logarithm of the scale

Status check_row(const MeasuredStep& row, Seconds least, Seconds most) {
  REHEARSE_CHECK(row.measured > Seconds::s(0));
  const auto impossible = [&](std::string why) -> Status {
    return fail(Diagnostic{
        .file = row.name,
        .problem = fmt::format("measured {} is far off: {}", to_string(row.measured), why),
        .expected = "the batch, plan and devices of the job that was measured"});
  };
  if (row.measured < row.at_peak)
    return impossible(
        fmt::format("its FLOPs take {} at the peak of its devices", to_string(row.at_peak)));
  if (row.measured < least)
    return impossible(
        fmt::format("scale {:g}, the least, gives {}", kLeastScale, to_string(least)));
  if (row.measured > most)
    return impossible(fmt::format("scale {:g}, the most, gives {}", kMostScale, to_string(most)));
  return {};
}

}  // namespace

Result<ScaleFit> fit_scale(std::span<const MeasuredStep> rows, const StepAtScale& step_at) {
  REHEARSE_CHECK(!rows.empty());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Result<Seconds> least = step_at(i, kLeastScale);
    if (!least) return forward(least);
    const Result<Seconds> most = step_at(i, kMostScale);
    if (!most) return forward(most);
    if (Status ok = check_row(rows[i], *least, *most); !ok) return forward(ok);
  }

  std::vector<Seconds> predicted;
  const auto squares = [&](double log_scale) -> Result<double> {
    predicted.clear();
    double sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Result<Seconds> step = step_at(i, std::exp(log_scale));
      if (!step) return forward(step);
      predicted.push_back(*step);
      const double error = std::log(*step / rows[i].measured);
      sum += error * error;
    }
    return sum;
  };
  // Golden section: each squared error falls towards the row's own scale and grows behind it.
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double low = std::log(kLeastScale), high = std::log(kMostScale);
  double left = high - golden * (high - low), right = low + golden * (high - low);
  Result<double> at_left = squares(left), at_right = squares(right);
  while (high - low > kTolerance) {
    if (!at_left) return forward(at_left);
    if (!at_right) return forward(at_right);
    if (*at_left < *at_right) {
      high = right;
      right = left;
      at_right = at_left;
      left = high - golden * (high - low);
      at_left = squares(left);
    } else {
      low = left;
      left = right;
      at_left = at_right;
      right = low + golden * (high - low);
      at_right = squares(right);
    }
  }
  const double best = (low + high) / 2;
  const Result<double> sum = squares(best);
  if (!sum) return forward(sum);

  const auto count = static_cast<double>(rows.size());
  double residual = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    residual += std::abs(predicted[i] / rows[i].measured - 1) / count;
  const double width =
      count == 1 ? kOneRow : std::max(kLeastWidth, 1.645 * std::sqrt(*sum / (count - 1)));
  return ScaleFit{.scale = std::exp(best),
                  .predicted = std::move(predicted),
                  .residual = residual,
                  .fastest = std::max(0.3, 1 - width),
                  .slowest = std::min(5.0, 1 + kSlowSide * width)};
}

}  // namespace rehearse::step
