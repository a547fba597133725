#include "profiler/compare/effect.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "profiler/compare/random.h"
#include "profiler/compare/student.h"
#include "sim/base/check.h"

namespace rehearse::compare {
namespace {

constexpr std::size_t kFew = 10;
constexpr double kTakenForGranted = 2;

std::size_t trimmed(std::size_t steps) { return steps / 5; }

/// A sample, sorted; values beyond the kept ones are moved to the outermost kept.
class Sample {
 public:
  explicit Sample(std::span<const double> steps) : values_(steps.begin(), steps.end()) {
    std::sort(values_.begin(), values_.end());
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
    for (std::size_t i = 0; i < values_.size(); ++i) sum += values_[random.below(values_.size())];
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
  /// correlation r, made up for the bias of short samples, -(1 + 4 r) / n (Kendall 1954). Where
  /// steps are few they cannot tell; a little is then taken for granted.
  double steps_per_fact() const {
    const double n = steps_ / runs_;
    if (n < kFew) return kTakenForGranted;
    if (square_ <= 0) return 1;
    const double biased = product_ / square_;
    const double r = std::clamp(biased + (1 + 4 * std::max(biased, 0.0)) / n, 0.0, 0.9);
    return (1 + r) / (1 - r);
  }

 private:
  double product_ = 0, square_ = 0, steps_ = 0, runs_ = 0;
};

/// The variance of a level, were its steps independent: that of the mean of the moved values, drawn
/// again and again, made up for what trimming takes out of the spread (Yuen, Biometrika 1974).
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

double freedom_of(std::size_t steps, double per_fact) {
  const auto kept = static_cast<double>(steps - 2 * trimmed(steps));
  return std::max(1.0, kept / (steps < kFew ? 1 : per_fact) - 1);
}

}  // namespace

double Effect::low(double missed) const { return change - student_limit(missed, freedom) * error; }
double Effect::high(double missed) const { return change + student_limit(missed, freedom) * error; }
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
  const bool same =
      std::equal(baseline.begin(), baseline.end(), candidate.begin(), candidate.end());

  Resemblance resemblance;
  resemblance.add(baseline, before);
  resemblance.add(candidate, after);
  const double per_fact = same ? 1 : resemblance.steps_per_fact();
  Random random(options.seed);
  const auto variance = [&](const Sample& sample, std::size_t steps) {
    const double least = kLeastNoise * sample.level();
    const double between = options.between_runs * sample.level();
    if (same) return least * least / static_cast<double>(steps);
    return variance_of_level(sample, steps, random, options.resamples) * per_fact +
           between * between;
  };
  const double of_before = variance(before, baseline.size());
  const double of_after = variance(after, candidate.size());
  // A change in parts of the baseline's level has that level's error in its scale, too.
  const double ratio = effect.baseline > 0 ? effect.candidate / effect.baseline : 1;
  effect.error = std::sqrt(of_before * ratio * ratio + of_after) / effect.scale;
  effect.error_if_none = std::sqrt(of_before + of_after) / effect.scale;
  effect.freedom = freedom_of(baseline.size(), per_fact) + freedom_of(candidate.size(), per_fact);
  const double between = 2 * options.between_runs * options.between_runs;
  const double steps =
      2 / (1 / static_cast<double>(baseline.size()) + 1 / static_cast<double>(candidate.size()));
  effect.step_noise =
      std::sqrt(std::max(0.0, effect.error_if_none * effect.error_if_none - between) * steps / 2);
  return effect;
}

Effect measure_level(std::span<const double> steps, double from, const EffectOptions& options) {
  REHEARSE_CHECK(steps.size() >= 2 && from > 0);
  const Sample sample(steps);
  Resemblance resemblance;
  resemblance.add(steps, sample);
  const double per_fact = resemblance.steps_per_fact(), n = static_cast<double>(steps.size());
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
          .freedom = freedom_of(steps.size(), per_fact),
          .step_noise = std::sqrt(one * n) / from};
}

}  // namespace rehearse::compare
