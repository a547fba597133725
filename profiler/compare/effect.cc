#include "profiler/compare/effect.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/base/statistics.h"

namespace rehearse::compare {
namespace {

constexpr double kTakenForGranted = 2;

std::size_t trimmed(std::size_t steps) { return steps / 5; }

/// A sample, sorted; values beyond the kept ones are moved to the outermost kept.
class Sample {
 public:
  explicit Sample(std::span<const double> steps) : values_(steps.begin(), steps.end()) {
    std::ranges::sort(values_);
    const std::size_t n = values_.size(), cut = trimmed(n);
    low_ = values_[cut];
    high_ = values_[n - 1 - cut];
    for (std::size_t i = cut; i < n - cut; ++i) level_ += values_[i];
    level_ /= static_cast<double>(n - 2 * cut);
    for (double& value : values_) value = winsorised(value);
  }

  double level() const { return level_; }
  double winsorised(double value) const { return std::clamp(value, low_, high_); }

  /// The mean of as many values drawn from these.
  double resampled(Random& random) const {
    double sum = 0;
    for (std::size_t i = 0; i < values_.size(); ++i)
      sum += values_[random.below(static_cast<std::uint32_t>(values_.size()))];
    return sum / static_cast<double>(values_.size());
  }

 private:
  std::vector<double> values_;
  double low_ = 0, high_ = 0, level_ = 0;
};

/// How steps resemble the one before, of all runs together, each around its own mean.
class Resemblance {
 public:
  void add(std::span<const double> steps, const Sample& sample) {
    const double n = static_cast<double>(steps.size());
    double mean = 0;
    for (const double s : steps) mean += sample.winsorised(s) / n;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double here = sample.winsorised(steps[i]) - mean;
      square_ += here * here;
      if (i > 0) product_ += here * (sample.winsorised(steps[i - 1]) - mean);
    }
    steps_ += n;
    ++runs_;
  }

  /// How many steps count as one: (1 + r) / (1 - r) where steps resemble the one before with the
  /// correlation r, made up for the bias of short samples, -(1 + 4 r) / n (Kendall 1954). Few
  /// steps do not determine it; a small value is then assumed.
  double steps_per_fact() const {
    const double n = steps_ / runs_;
    if (n < kFewSteps) return kTakenForGranted;
    if (square_ <= 0) return 1;
    const double biased = product_ / square_;
    const double r = std::clamp(biased + (1 + 4 * std::max(biased, 0.0)) / n, 0.0, 0.9);
    return (1 + r) / (1 - r);
  }

 private:
  double product_ = 0, square_ = 0, steps_ = 0, runs_ = 0;
};

/// The variance of a level, were its steps independent: that of the mean of the moved values, from
/// repeated draws, corrected for the spread that trimming removes (Yuen, Biometrika 1974).
double variance_of_level(const Sample& sample, std::size_t steps, Random& random,
                         std::size_t resamples) {
  const double draws = static_cast<double>(resamples), n = static_cast<double>(steps);
  const double middle = sample.level();
  double sum = 0, squares = 0;
  for (std::size_t k = 0; k < resamples; ++k) {
    const double off = sample.resampled(random) - middle;
    sum += off;
    squares += off * off;
  }
  const double kept = (n - 2 * static_cast<double>(trimmed(steps))) / n;
  // Resampling n steps sees (n - 1) / n of the variance.
  const double drawn =
      std::max(0.0, squares / draws - sum / draws * (sum / draws)) * n / (n - 1) / (kept * kept);
  const double least = kLeastNoise * middle;
  return std::max(drawn, least * least / n);
}

/// How well the variance of a level is known, in degrees of freedom. A few steps count by those
/// that trimming keeps, divided by the number of steps per independent fact. Where there are more
/// steps, the spread and the autocorrelation r of an autoregressive series are both measured. Their
/// relative variances, in units of 1 / steps, are
///   (1 + r^2) / (1 - r^2)  and  2 / (1 - r^2).
/// The result is at most Yuen's: the kept steps less one.
double freedom_of(std::size_t steps, double per_fact) {
  const auto kept = static_cast<double>(steps - 2 * trimmed(steps));
  if (steps < kFewSteps) return (kept - 1) / per_fact;
  const double r = (per_fact - 1) / (per_fact + 1);
  const double both = static_cast<double>(steps) * (1 - r * r) / (3 + r * r);
  return std::max(1.0, std::min(kept - 1, both));
}

/// A part of an error, and how well it is known.
struct Part {
  double variance, freedom;
};

/// Degrees of freedom of a sum of variances (Welch and Satterthwaite): a thousand other steps do
/// not make a run of two steps less uncertain.
double freedom_of(std::initializer_list<Part> parts) {
  double sum = 0, squares = 0;
  for (const Part& part : parts) {
    sum += part.variance;
    squares += part.variance * part.variance / part.freedom;
  }
  return squares > 0 ? sum * sum / squares : 1;
}

/// The probability that the n values of one sample are all above the m of another, if all orders are
/// equally likely: one in (n + m choose n).
double chance_of_apart(std::size_t n, std::size_t m) {
  double chance = 1;
  for (std::size_t i = 1; i <= n; ++i)
    chance *= static_cast<double>(i) / static_cast<double>(m + i);
  return chance;
}

/// Sets by how much the steps of both runs are apart.
void set_apart(std::span<const double> baseline, std::span<const double> candidate,
               Effect& effect) {
  const auto [least_before, most_before] = std::minmax_element(baseline.begin(), baseline.end());
  const auto [least_after, most_after] = std::minmax_element(candidate.begin(), candidate.end());
  const double more = *least_after - *most_before, less = *most_after - *least_before;
  if (more <= 0 && less >= 0) return;
  effect.apart = (more > 0 ? more : less) / effect.scale;
  effect.apart_by_chance = chance_of_apart(baseline.size(), candidate.size());
}

/// The number of steps per independent fact in one run. A few steps do not determine it, so
/// they have at least the usual number.
double steps_per_fact_of(std::size_t steps, double per_fact) {
  return steps < kFewSteps ? std::max(per_fact, kTakenForGranted) : per_fact;
}

}  // namespace

double Effect::low(double missed) const {
  const double student = change - student_limit(missed, freedom) * error;
  return apart > 0 && apart_by_chance <= missed ? std::max(student, apart) : student;
}
double Effect::high(double missed) const {
  const double student = change + student_limit(missed, freedom) * error;
  return apart < 0 && apart_by_chance <= missed ? std::min(student, apart) : student;
}
double Effect::p_value() const {
  if (error_if_none <= 0) return change == 0 ? 1 : 0;
  return 2 * student_above(std::abs(change) / error_if_none, freedom);
}

double level_of(std::span<const double> steps) { return Sample(steps).level(); }

Effect measure_effect(std::span<const double> baseline, std::span<const double> candidate,
                      double scale_if_zero, const EffectOptions& options) {
  REHEARSE_CHECK(baseline.size() >= 2 && candidate.size() >= 2);
  const Sample before(baseline), after(candidate);
  Effect effect;
  effect.baseline = before.level();
  effect.candidate = after.level();
  effect.scale = effect.baseline > 0 ? effect.baseline : scale_if_zero;
  effect.change = (effect.candidate - effect.baseline) / effect.scale;

  // The same steps twice are one run, and no evidence of how runs differ.
  const bool same = std::ranges::equal(baseline, candidate);

  Resemblance resemblance;
  resemblance.add(baseline, before);
  resemblance.add(candidate, after);
  const double all_per_fact = resemblance.steps_per_fact();
  Random random(options.seed);
  const auto part = [&](const Sample& sample, std::size_t steps) -> Part {
    const double least = kLeastNoise * sample.level();
    const double n = static_cast<double>(steps);
    if (same) return {least * least / n, freedom_of(steps, 1)};
    const double per_fact = steps_per_fact_of(steps, all_per_fact);
    return {variance_of_level(sample, steps, random, options.resamples) * per_fact,
            freedom_of(steps, per_fact)};
  };
  const auto between = [&](const Sample& sample, double runs) -> Part {
    const double one = same ? 0 : options.between_runs * sample.level();
    return {one * one / runs, options.between_freedom};
  };
  Part of_before = part(before, baseline.size());
  Part of_after = part(after, candidate.size());
  // Few steps that agree are luck: they are taken to be as noisy as those of the other run.
  const double of_one_before = of_before.variance * static_cast<double>(baseline.size());
  const double of_one_after = of_after.variance * static_cast<double>(candidate.size());
  const double ratio = effect.baseline > 0 ? effect.candidate / effect.baseline : 1;
  if (baseline.size() < kFewSteps && ratio > 0)
    of_before.variance = std::max(
        of_before.variance, of_one_after / (ratio * ratio) / static_cast<double>(baseline.size()));
  if (candidate.size() < kFewSteps)
    of_after.variance = std::max(
        of_after.variance, of_one_before * ratio * ratio / static_cast<double>(candidate.size()));
  Part runs_before = between(before, options.baseline_runs);
  const Part runs_after = between(after, 1);
  const double if_none = of_before.variance + of_after.variance;
  effect.error_if_none =
      std::sqrt(if_none + runs_before.variance + runs_after.variance) / effect.scale;
  // A change in parts of the baseline's level has that level's error in its scale, too.
  of_before.variance *= ratio * ratio;
  runs_before.variance *= ratio * ratio;
  effect.error = std::sqrt(of_before.variance + of_after.variance + runs_before.variance +
                           runs_after.variance) /
                 effect.scale;
  // The variance between runs is one number, shared by both sides.
  effect.freedom = freedom_of(
      {of_before, of_after, {runs_before.variance + runs_after.variance, options.between_freedom}});
  const double steps =
      2 / (1 / static_cast<double>(baseline.size()) + 1 / static_cast<double>(candidate.size()));
  effect.step_noise = std::sqrt(if_none * steps / 2) / effect.scale;
  // Steps of two runs say nothing of how runs differ.
  if (options.between_runs == 0) set_apart(baseline, candidate, effect);
  return effect;
}

Effect measure_level(std::span<const double> steps, double from, const EffectOptions& options) {
  REHEARSE_CHECK(steps.size() >= 2 && from > 0);
  const Sample sample(steps);
  Resemblance resemblance;
  resemblance.add(steps, sample);
  const double per_fact = steps_per_fact_of(steps.size(), resemblance.steps_per_fact());
  const double n = static_cast<double>(steps.size());
  Random random(options.seed);
  const double one = variance_of_level(sample, steps.size(), random, options.resamples) * per_fact;
  const double between = options.between_runs * sample.level();
  const double error = std::sqrt(one + between * between) / from;
  return {.baseline = from,
          .candidate = sample.level(),
          .change = sample.level() / from - 1,
          .scale = from,
          .error = error,
          .error_if_none = error,
          .freedom = freedom_of({{one, freedom_of(steps.size(), per_fact)},
                                 {between * between, options.between_freedom}}),
          .step_noise = std::sqrt(one * n) / from};
}

}  // namespace rehearse::compare
