#include "cli/study/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace rehearse::cli {
namespace {

/// The rounding that an error at the edge of its tolerance may have.
constexpr double kRounding = 1e-12;
/// How near to its error a tolerance is that looks chosen for it.
constexpr double kNear = 1.1;

/// A difference relative to a published number.
double relative(double difference, double published) {
  if (difference == 0) return 0;
  if (published == 0) return std::copysign(std::numeric_limits<double>::infinity(), difference);
  return difference / std::abs(published);
}

double larger(double a, double b) { return std::abs(a) > std::abs(b) ? a : b; }

}  // namespace

Errors errors_of(std::span<const CurvePoint> points) {
  Errors errors;
  for (const CurvePoint& point : points) {
    errors.mean += std::abs(point.error) / static_cast<double>(points.size());
    errors.worst = larger(point.error, errors.worst);
  }
  return errors;
}

Errors errors_of(const Expectation& e, double least, double most) {
  double below = relative(least - e.low, e.low), above = relative(most - e.high, e.high);
  if (e.comparison != Comparison::kSpans)  // within the range nothing is an error
    below = std::min(below, 0.0), above = std::max(above, 0.0);
  const double worst = larger(below, above);
  return {std::abs(worst), worst};
}

StudyVerdict judge(const Expectation& e, const Errors& errors, bool is_inside) {
  const bool is_covered = e.comparison == Comparison::kCovers;
  const bool worst = !e.tolerance || std::abs(errors.worst) <= *e.tolerance + kRounding;
  const bool mean = !e.mean_tolerance || errors.mean <= *e.mean_tolerance + kRounding;
  const bool holds = is_covered ? is_inside : worst && mean;
  if (holds && e.kind == ClaimKind::kMechanism) return StudyVerdict::kMechanism;
  if (holds && e.kind == ClaimKind::kIdentity) return StudyVerdict::kIdentity;
  if (e.kind != ClaimKind::kPrediction) return StudyVerdict::kMissed;
  if (holds && !is_covered) return StudyVerdict::kReproduced;
  return is_inside ? StudyVerdict::kInside : StudyVerdict::kMissed;
}

std::optional<ChosenTolerance> chosen_tolerance(const Expectation& e, const Errors& errors) {
  if (!e.reason.empty()) return std::nullopt;
  for (const auto& [tolerance, error] :
       {std::pair(e.tolerance, std::abs(errors.worst)), std::pair(e.mean_tolerance, errors.mean)})
    if (tolerance && *tolerance != kUsualTolerance && error > 0 && *tolerance <= kNear * error)
      return ChosenTolerance{*tolerance, error};
  return std::nullopt;
}

StudyVerdict worst_or_best(std::span<const StudyVerdict> verdicts) {
  const auto [best, worst] = std::minmax_element(verdicts.begin(), verdicts.end());
  return *worst == StudyVerdict::kMissed ? *worst : *best;
}

}  // namespace rehearse::cli
