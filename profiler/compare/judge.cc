#include "profiler/compare/judge.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/statistics.h"

namespace rehearse::compare {

std::string_view to_string(Verdict verdict) {
  constexpr std::string_view kNames[] = {"pass", "fail", "inconclusive"};
  return kNames[static_cast<int>(verdict)];
}

Verdict worse(Verdict a, Verdict b) {
  if (a == Verdict::kFail || b == Verdict::kFail) return Verdict::kFail;
  return a == Verdict::kInconclusive ? a : b;
}

bool is_rise(const Effect& effect, double wrong) {
  return effect.change > 0 && effect.p_value() < 2 * wrong;
}

bool in_each_step(const Effect& effect, double least, double wrong) {
  return std::abs(effect.apart) > least && effect.apart_by_chance <= wrong;
}

Verdict judge(const Effect& effect, double limit, double wrong) {
  if (effect.apart > 0 && in_each_step(effect, limit, wrong)) return Verdict::kFail;
  if (effect.high(wrong) < limit) return Verdict::kPass;
  if (is_rise(effect, wrong) && effect.change > limit) return Verdict::kFail;
  const bool precise = effect.high(wrong) - effect.change <= limit / 2;
  return precise && effect.change <= limit ? Verdict::kPass : Verdict::kInconclusive;
}

std::optional<std::size_t> steps_needed(const Effect& effect, double limit,
                                        const EffectOptions& options, double wrong) {
  const double runs = options.between_runs * options.between_runs * (1 + 1 / options.baseline_runs);
  const double most_freedom = runs > 0 ? options.between_freedom : 1e6;
  const auto width = [&](double steps) {
    // As many on either side, independent. The freedom of the less known of the two noises asks
    // for too many steps rather than for too few.
    const double error = std::sqrt(2 * effect.step_noise * effect.step_noise / steps + runs);
    return student_limit(wrong, std::min(most_freedom, 2 * steps / 3)) * error;
  };
  constexpr std::size_t kMost = 1 << 20;
  if (width(kMost) > limit / 2) return std::nullopt;
  // Below that, steps count half, and none is surely enough.
  std::size_t low = kFewSteps, high = kMost;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (width(static_cast<double>(middle)) <= limit / 2)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

std::vector<bool> significant(const std::vector<double>& p_values, double wrong) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<bool> result(p_values.size(), false);
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (p_values[order[k]] > wrong / static_cast<double>(order.size() - k)) break;
    result[order[k]] = true;
  }
  return result;
}

}  // namespace rehearse::compare
