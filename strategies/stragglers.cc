#include "strategies/stragglers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace rehearse::strategies {
namespace {

using program::GradientStep;

/// The mean of the largest of n draws, less the mean of one. Sorts `x`.
double excess_of_largest(std::vector<double>& x, std::uint32_t n) {
  std::ranges::sort(x);
  const double size = static_cast<double>(x.size());
  double largest = 0, below = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double up_to = std::pow(static_cast<double>(i + 1) / size, n);
    largest += x[i] * (up_to - below);
    below = up_to;
  }
  return std::max(0.0, largest - std::accumulate(x.begin(), x.end(), 0.0) / size);
}

std::size_t usual_count(const std::vector<GradientStep>& steps) {
  std::map<std::size_t, std::size_t> counts;
  for (const GradientStep& step : steps) ++counts[step.gradients.size()];
  return std::ranges::max_element(counts,
                                  [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

std::vector<Seconds> lateness(const std::vector<GradientStep>& steps,
                              const graph::Timeline& timeline, std::uint32_t ranks, bool overlap) {
  if (ranks < 2 || steps.empty()) return {};
  const std::size_t count = usual_count(steps);
  std::vector<std::vector<double>> times(count);  // by position, in seconds since together
  for (std::size_t s = 1; s < steps.size(); ++s) {
    const GradientStep &step = steps[s], &before = steps[s - 1];
    if (!step.whole || step.gradients.size() != count || before.gradients.size() != count) continue;
    Picoseconds together = timeline[OpId(before.gradients.back().ready)].end;
    for (std::size_t k = 0; k < count; ++k) {
      const Picoseconds ready = timeline[OpId(step.gradients[k].ready)].end;
      times[k].push_back((ready - together).seconds().s());
      if (!overlap) together = ready;
    }
  }
  std::vector<Seconds> late;
  for (std::vector<double>& x : times) {
    if (x.size() < kStepsToTellVariation) return {};
    late.push_back(Seconds::s(excess_of_largest(x, ranks)));
  }
  return late;
}

}  // namespace rehearse::strategies
