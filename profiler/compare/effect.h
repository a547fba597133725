// Effect: the change of a quantity between two runs measured step by step, with its error.
//
// The quantity's level is the trimmed mean over steps: the fastest and the slowest fifth are left
// out, so that single slow steps (a checkpoint, a stolen core) have no effect. Its error comes from
// resampling the steps (the bootstrap; Efron 1979), with three corrections for small and correlated
// samples: limits of Student's distribution; fewer effective steps if a step resembles the previous
// one; and a minimum noise, kLeastNoise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rehearse::compare {

/// Minimum error of a level: clocks of recordings, and the luck of a few equal steps.
inline constexpr double kLeastNoise = 0.001;

/// With fewer steps than this, the correlation of consecutive steps cannot be estimated: each step
/// counts as half.
inline constexpr std::size_t kFewSteps = 10;

struct Effect {
  double baseline = 0, candidate = 0;  ///< levels
  /// candidate - baseline, as a share of `scale`.
  double change = 0;
  double scale = 0;          ///< the baseline's level, or the given value if that is zero
  double error = 0;          ///< standard error of `change`
  double error_if_none = 0;  ///< standard error of `change` if there were no change
  double freedom = 1;        ///< degrees of freedom of `error`
  /// Standard deviation of a single step, as a share of `scale`, as if steps were independent.
  double step_noise = 0;
  /// If every step of the candidate took longer than every step of the baseline, the least of these
  /// differences, as a share of `scale`; if every one took less, the same below zero; else 0.
  double apart = 0;
  /// The probability of such a result if the steps of both runs were alike (Mann and Whitney 1947).
  double apart_by_chance = 1;

  /// The change is between low(p) and high(p), with probability p of lying beyond either end. The
  /// interval also ends where steps that are apart end it.
  double low(double missed) const;
  double high(double missed) const;
  /// The probability of a change at least as far from zero as this one, if there were none.
  double p_value() const;
};

struct EffectOptions {
  std::uint64_t seed = 1;
  /// Standard deviation of the level between runs of the same job, relative; 0 if unknown.
  double between_runs = 0;
  double between_freedom = 1e6;  ///< degrees of freedom of `between_runs`
  double baseline_runs = 1;      ///< number of runs pooled in the baseline (pool.h)
  std::size_t resamples = 400;   ///< the error is then known to 4 %
};

/// REQUIRES: at least two steps on either side; finite values. `scale_if_zero` (above 0) is used if
/// the baseline's level is zero.
Effect measure_effect(std::span<const double> baseline, std::span<const double> candidate,
                      double scale_if_zero, const EffectOptions& options);

/// The level of one run, as a change from `from` (above 0), for example from a limit. REQUIRES: at
/// least two steps; finite values.
Effect measure_level(std::span<const double> steps, double from, const EffectOptions& options);

/// The level of a sample. REQUIRES: it is not empty.
double level_of(std::span<const double> steps);

}  // namespace rehearse::compare
