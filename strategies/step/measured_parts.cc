#include "strategies/step/measured_parts.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "strategies/step/predict.h"

namespace rehearse::step {
namespace {

Seconds with_factors(const StepParts& parts, const ByFactor<double>& factors) {
  double log = 0;
  for (std::size_t k = 0; k < kFactors; ++k) log += parts.shares[k] * std::log(factors[k]);
  return parts.time.value * std::exp(log);
}

}  // namespace

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
