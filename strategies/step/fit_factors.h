// Fits the factors of a step's parts to measured steps: `rehearse calibrate job`.
//
// The logarithm of a measured step is that of the predicted one, plus an error that no factor
// explains. A factor is 1 but for the error of predictions without measurements: its prior. The fit
// is the most probable set of factors (MAP). A factor that no row depends on stays at 1 with the
// width of its prior. Rows of regimes with intervals of their own count less, and rows that nothing
// explains, such as stalled runs, count little (Student's t with four degrees of freedom).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "strategies/step/conditions.h"
#include "strategies/step/step.h"

namespace rehearse::step {

/// The error of a step with all factors known, as a 90 % interval: deviations of 0.08 below and 0.12
/// above, since single runs only get slower (docs/decisions/0127-what-one-step-says-of-others.md).
inline constexpr program::Interval kStepError{0.877, 1.218};

/// What plans of a job have in common of an interval of single steps: less the error of each step.
program::Interval common_to_plans(const program::Interval& of_steps);

/// The prior of the fixed time: 20 ms per step are usual, and up to 70 ms were measured.
inline constexpr program::Interval kFixedTime{1 / 3.5, 3.5};

struct MeasuredStep {
  std::string name = {};  ///< label of the job
  Seconds measured;
  Seconds at_peak;  ///< time of the step's FLOPs at the peak of its devices: a lower bound
  /// The interval of steps in its regime, as factors of the step (beyond_factors, stalls).
  program::Interval regime = {};
};

/// The step of a row with factors on its parts, which grows with each of them.
using StepAtFactors =
    std::function<Result<Seconds>(std::size_t row, const ByFactor<double>& factors)>;

struct FactorFit {
  ByFactor<double> factors;
  ByFactor<program::Interval> before,
      after = {};                       ///< 90 % intervals, relative to 1 and to `factors`
  std::vector<Seconds> predicted = {};  ///< by row
  double residual;                      ///< mean |predicted / measured - 1|
  /// By row, its weight: 1 for one that the factors explain; close to 0 for one that they do not.
  std::vector<double> weights = {};
  /// Of logarithms: the covariance of the factors.
  ByFactor<ByFactor<double>> covariance = {};
};

/// `before`: the priors. Fails, naming the row, if a step is faster than the peak of its devices,
/// or if no factors within the bounds (conditions.h) give it. REQUIRES: at least one row; times
/// above zero.
Result<FactorFit> fit_factors(std::span<const MeasuredStep> rows,
                              const ByFactor<program::Interval>& before,
                              const StepAtFactors& step_at);

/// How much a further measured step says: the variance of its logarithm because of the factors, as
/// a multiple of that of the step alone; and the factor that it narrows most.
struct Information {
  double ratio;
  Factor factor;
};
/// `shares`: of the step, in the parts that factors apply to.
Information information_of(const FactorFit& fit, const ByFactor<double>& shares);

// --- Measured steps of other plans correct a predicted step, without predicting it anew: a factor on a
// part of a step counts by the share of that part.

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
