// Measured steps of other plans correct a predicted step, without predicting it anew: a factor on a
// part of a step counts by the share of that part.
#pragma once

#include <span>

#include "strategies/step/fit_factors.h"
#include "strategies/step/step.h"

namespace rehearse::step {

/// A predicted step, as far as factors on its parts change it.
struct StepParts {
  Estimate<Seconds> time;
  Seconds stall = Seconds::s(0);
  ByFactor<double> shares = {};             ///< of the time, in the parts that factors apply to
  ByFactor<program::Interval> before = {};  ///< priors of the factors
  Regime regime = {};
};

/// `step`: of this job on this cluster.
StepParts parts_of(const Step& step, const Spec& spec, const cluster::Cluster& cluster);

/// The interval of steps of its regime that no factor explains, stalls included.
program::Interval unexplained(const StepParts& parts);

/// The factors that measured steps of some plans of a job give. Fails as fit_factors() does.
/// REQUIRES: as many times as parts, and at least one; times above zero.
Result<FactorFit> fit_parts(std::span<const StepParts* const> parts,
                            std::span<const Seconds> measured);

/// The step of another plan after a fit to those with `measured` parts.
Estimate<Seconds> corrected(const StepParts& parts, const FactorFit& fit,
                            std::span<const StepParts* const> measured);

}  // namespace rehearse::step
