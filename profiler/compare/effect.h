// Effect: the change of a quantity between two runs measured step by step, with its error.
//
// The quantity's level is the trimmed mean over steps: a fifth of the steps is left out at either
// end, so that single slow steps (a checkpoint, a stolen core) decide nothing. Its error comes from
// resampling the steps (the bootstrap; Efron 1979), with three corrections that small and unruly
// samples need: the limits are Student's, of as many degrees of freedom as steps were kept; steps
// that resemble the one before count as fewer steps; and no run is taken to repeat to better than
// kLeastNoise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rehearse::compare {

/// Minimum error of a level: clocks of recordings, and the luck of a few equal steps.
inline constexpr double kLeastNoise = 0.001;

/// Fewer steps do not determine the correlation of consecutive steps: they count half.
inline constexpr std::size_t kFewSteps = 10;

struct Effect {
  double baseline = 0, candidate = 0;  ///< levels
  /// candidate - baseline, in parts of `scale`.
  double change = 0;
  double scale = 0;          ///< the baseline's level, or the given value if that is zero
  double error = 0;          ///< standard error of `change`
  double error_if_none = 0;  ///< the same, were there no change
  double freedom = 1;        ///< degrees of freedom of `error`
  /// Standard deviation of a single step, in parts of `scale`, as if steps were independent.
  double step_noise = 0;

  /// The change is between low(p) and high(p), except with probability p on either side.
  double low(double missed) const;
  double high(double missed) const;
  /// The probability of a change as far from zero as this one or farther, were there none.
  double p_value() const;
};

struct EffectOptions {
  std::uint64_t seed = 1;
  /// Standard deviation of a run's level between runs of one and the same job, relative; 0 where
  /// it is not known.
  double between_runs = 0;
  double between_freedom = 1e6;  ///< how well that is known, in degrees of freedom
  double baseline_runs = 1;      ///< how many runs were pooled in the baseline (pool.h)
  std::size_t resamples = 400;   ///< the error is then known to 4 %
};

/// REQUIRES: two steps at least on either side; finite values. `scale_if_zero` (above 0) is used
/// where the baseline's level is zero.
Effect measure_effect(std::span<const double> baseline, std::span<const double> candidate,
                      double scale_if_zero, const EffectOptions& options);

/// The level of one run, as a change from `from` (above 0): from a limit, say.
/// REQUIRES: two steps at least; finite values.
Effect measure_level(std::span<const double> steps, double from, const EffectOptions& options);

/// The level of a sample. REQUIRES: not empty.
double level_of(std::span<const double> steps);

}  // namespace rehearse::compare
