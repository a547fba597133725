#include "profiler/compare/effect.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "profiler/compare/random.h"
#include "profiler/compare/student.h"
#include "sim/base/check.h"

namespace rehearse::compare {
namespace {

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

/// How many steps count as one: (1 + r) / (1 - r) for steps that resemble the one before with the
/// correlation r. It is estimated on both runs together, each around its own mean, and made up for
/// the bias of short samples, which is towards -(1 + 4 r) / n (Kendall 1954).
double steps_per_fact(std::span<const double> a, const Sample& sample_a, std::span<const double> b,
                      const Sample& sample_b) {
  double product = 0, square = 0;
  const auto add = [&](std::span<const double> steps, const Sample& sample) {
    double mean = 0;
    for (const double s : steps) mean += sample.winsorised(s) / static_cast<double>(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double here = sample.winsorised(steps[i]) - mean;
      square += here * here;
      if (i > 0) product += here * (sample.winsorised(steps[i - 1]) - mean);
    }
  };
  add(a, sample_a);
  add(b, sample_b);
  if (square <= 0) return 1;
  const double n = 0.5 * static_cast<double>(a.size() + b.size());
  const double biased = product / square;
  const double r = std::clamp(biased + (1 + 4 * std::max(biased, 0.0)) / n, 0.0, 0.9);
  // Few steps cannot tell; a little is then taken for granted.
  return n < 10 ? kTakenForGranted : (1 + r) / (1 - r);
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

  // The variance of each level; a change in parts of the baseline's level also has that level's
  // error in its scale.
  Random random(options.seed);
  const auto variance = [&](Sample& sample) {
    double sum = 0, squares = 0;
    for (std::size_t k = 0; k < options.resamples; ++k) {
      const double level = (sample.resampled(random) - sample.level()) / effect.scale;
      sum += level;
      squares += level * level;
    }
    const double mean = sum / static_cast<double>(options.resamples);
    return std::max(0.0, squares / static_cast<double>(options.resamples) - mean * mean);
  };
  const double ratio = effect.baseline > 0 ? effect.candidate / effect.scale : 1;
  const double per_fact = steps_per_fact(baseline, before, candidate, after);
  double total = 0, noise = 0;
  effect.freedom = 0;
  for (Sample* sample : {&before, &after}) {
    const std::size_t n = sample == &before ? baseline.size() : candidate.size();
    const double steps = static_cast<double>(n);
    // Resampling n steps sees (n - 1) / n of the variance.
    const double drawn = variance(*sample) * steps / (steps - 1);
    const double floor = kLeastNoise * kLeastNoise / steps * sample->level() / effect.scale *
                         sample->level() / effect.scale;
    const double one = std::max(drawn, floor);
    const double weight = sample == &before ? ratio * ratio : 1;
    const double between = options.between_runs * sample->level() / effect.scale;
    total += weight * (one * per_fact + between * between);
    noise += weight * one * steps / 2;
    effect.freedom +=
        std::max(1.0, static_cast<double>(n - 2 * trimmed(n)) / (n < 10 ? 1 : per_fact) - 1);
  }
  effect.error = std::sqrt(total);
  effect.step_noise = std::sqrt(noise * per_fact);
  return effect;
}

}  // namespace rehearse::compare
