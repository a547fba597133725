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
constexpr double kTakenForGranted = 1.5;

std::size_t trimmed(std::size_t steps) { return steps / 5; }

/// A sample, sorted.
class Sample {
 public:
  explicit Sample(std::span<const double> steps) : sorted_(steps.begin(), steps.end()) {
    std::sort(sorted_.begin(), sorted_.end());
    counts_.resize(sorted_.size());
  }

  double level() const {
    const std::size_t cut = trimmed(sorted_.size());
    double sum = 0;
    for (std::size_t i = cut; i < sorted_.size() - cut; ++i) sum += sorted_[i];
    return sum / static_cast<double>(sorted_.size() - 2 * cut);
  }

  /// The level of as many steps drawn from these.
  double resampled(Random& random) {
    const std::size_t n = sorted_.size(), cut = trimmed(n), kept = n - 2 * cut;
    std::fill(counts_.begin(), counts_.end(), 0);
    for (std::size_t i = 0; i < n; ++i) ++counts_[random.below(n)];
    double sum = 0;
    std::size_t skip = cut, left = kept;
    for (std::size_t i = 0; i < n && left > 0; ++i) {
      std::size_t count = counts_[i];
      const std::size_t skipped = std::min(skip, count);
      skip -= skipped;
      count = std::min(count - skipped, left);
      left -= count;
      sum += sorted_[i] * static_cast<double>(count);
    }
    return sum / static_cast<double>(kept);
  }

  /// Values beyond the kept ones are moved to the outermost kept.
  double winsorised(double value) const {
    const std::size_t cut = trimmed(sorted_.size());
    return std::clamp(value, sorted_[cut], sorted_[sorted_.size() - 1 - cut]);
  }

 private:
  std::vector<double> sorted_;
  std::vector<std::size_t> counts_;
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

/// The variance of a level, were its steps independent.
double variance_of_level(Sample& sample, std::size_t steps, Random& random, std::size_t resamples) {
  const double level = sample.level(), draws = static_cast<double>(resamples);
  double sum = 0, squares = 0;
  for (std::size_t k = 0; k < resamples; ++k) {
    const double off = sample.resampled(random) - level;
    sum += off;
    squares += off * off;
  }
  const double n = static_cast<double>(steps);
  // Resampling n steps sees (n - 1) / n of the variance.
  const double drawn = std::max(0.0, squares / draws - sum / draws * (sum / draws)) * n / (n - 1);
  return std::max(drawn, kLeastNoise * level * kLeastNoise * level / n);
}

double freedom_of(std::size_t steps, double per_fact) {
  const auto kept = static_cast<double>(steps - 2 * trimmed(steps));
  return std::max(1.0, kept / (steps < kFew ? 1 : per_fact) - 1);
}

}  // namespace

double Effect::low(double missed) const { return change - student_limit(missed, freedom) * error; }
double Effect::high(double missed) const { return change + student_limit(missed, freedom) * error; }
double Effect::p_value() const {
  if (error <= 0) return change == 0 ? 1 : 0;
  return 2 * student_above(std::abs(change) / error, freedom);
}

double level_of(std::span<const double> steps) { return Sample(steps).level(); }

Effect measure_effect(std::span<const double> baseline, std::span<const double> candidate,
                      double scale_if_zero, const EffectOptions& options) {
  REHEARSE_CHECK(baseline.size() >= 2 && candidate.size() >= 2);
  Sample before(baseline), after(candidate);
  Effect effect;
  effect.baseline = before.level();
  effect.candidate = after.level();
  effect.scale = effect.baseline > 0 ? effect.baseline : scale_if_zero;
  effect.change = (effect.candidate - effect.baseline) / effect.scale;

  Resemblance resemblance;
  resemblance.add(baseline, before);
  resemblance.add(candidate, after);
  const double per_fact = resemblance.steps_per_fact();
  Random random(options.seed);
  // A change in parts of the baseline's level has that level's error in its scale, too.
  const double ratio = effect.baseline > 0 ? effect.candidate / effect.baseline : 1;
  double total = 0, noise = 0;
  effect.freedom = 0;
  const auto add = [&](Sample& sample, std::size_t steps, double weight) {
    const double one = variance_of_level(sample, steps, random, options.resamples);
    const double between = options.between_runs * sample.level();
    total += weight * (one * per_fact + between * between);
    noise += weight * one * static_cast<double>(steps) / 2;
    effect.freedom += freedom_of(steps, per_fact);
  };
  add(before, baseline.size(), ratio * ratio);
  add(after, candidate.size(), 1);
  effect.error = std::sqrt(total) / effect.scale;
  effect.step_noise = std::sqrt(noise * per_fact) / effect.scale;
  return effect;
}

Effect measure_level(std::span<const double> steps, double from, const EffectOptions& options) {
  REHEARSE_CHECK(steps.size() >= 2 && from > 0);
  Sample sample(steps);
  Resemblance resemblance;
  resemblance.add(steps, sample);
  const double per_fact = resemblance.steps_per_fact();
  Random random(options.seed);
  const double one = variance_of_level(sample, steps.size(), random, options.resamples);
  const double between = options.between_runs * sample.level();
  return {.baseline = from,
          .candidate = sample.level(),
          .change = sample.level() / from - 1,
          .scale = from,
          .error = std::sqrt(one * per_fact + between * between) / from,
          .freedom = freedom_of(steps.size(), per_fact),
          .step_noise = std::sqrt(one * static_cast<double>(steps.size()) * per_fact) / from};
}

}  // namespace rehearse::compare
