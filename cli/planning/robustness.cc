#include "cli/planning/robustness.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "cli/planning/plan_feed.h"
#include "sim/base/random.h"

namespace rehearse::cli {
namespace {

using strategies::Figure;

constexpr double kNinety = 1.6449;  // standard deviations on either side of a 90 % interval

/// The factor at `z` standard deviations of this interval.
double factor(const program::Interval& interval, double z) {
  const double width = z > 0 ? interval.high - 1 : 1 - interval.low;
  return std::max(0.05, 1 + z / kNinety * width);
}

/// Plans with equal keys have equal errors of their own.
using ErrorKey =
    std::tuple<double, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, int>;
ErrorKey kernels_of(const FoundPlan& p) {
  return {p.training.microbatch,    p.plan.tensor,
          p.plan.context,           p.plan.expert,
          p.plan.sequence_parallel, static_cast<int>(p.training.recompute)};
}
ErrorKey groups_of(const FoundPlan& p) {
  return {p.plan.data,   p.plan.tensor,   p.plan.context,
          p.plan.expert, p.plan.pipeline, static_cast<int>(p.plan.placement)};
}

/// The number of the key of each plan among the distinct keys, and the number of distinct keys.
std::pair<std::vector<std::size_t>, std::size_t> numbered(const std::vector<FoundPlan>& plans,
                                                          ErrorKey (*key)(const FoundPlan&)) {
  std::map<ErrorKey, std::size_t> known;
  std::vector<std::size_t> which;
  which.reserve(plans.size());
  for (const FoundPlan& plan : plans)
    which.push_back(known.emplace(key(plan), known.size()).first->second);
  return {which, known.size()};
}

program::Interval memory_factors(const step::Step& step) {
  const Estimate<Bytes>& peak = memory::fullest(step.memory).peak;
  return {peak.low / peak.value, peak.high / peak.value};
}

}  // namespace

std::vector<double> chances(const std::vector<FoundPlan>& plans, Figure objective,
                            std::uint64_t seed, double common_share) {
  const auto [kernels, kinds] = numbered(plans, kernels_of);
  const auto [groups, networks] = numbered(plans, groups_of);
  const double common = std::sqrt(common_share), own = std::sqrt(1 - common_share);
  Random random(seed);
  std::vector<double> share(plans.size(), 0), of_kernels(kinds), of_groups(networks);
  std::vector<int> wins(plans.size(), 0);
  for (int draw = 0; draw < kDraws; ++draw) {
    const double computing = common * random.normal(), links = common * random.normal();
    for (double& z : of_kernels) z = computing + own * random.normal();
    for (double& z : of_groups) z = links + own * random.normal();
    std::size_t best = 0;
    double least = 0;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const step::Step& step = *plans[i].step;
      const Seconds alone = step.time.value - step.occupancy.input;
      const double exposed = step.communication / alone;
      double off = objective == Figure::kMemory
                       ? factor(memory_factors(step), of_kernels[kernels[i]])
                       : (1 - exposed) * factor(step.computing, of_kernels[kernels[i]]) +
                             exposed * factor(step.links, of_groups[groups[i]]);
      // A plan that waits for samples runs at the pace of the input pipeline. Among such plans, the
      // one that needs less time for itself is the better.
      if (step.occupancy.input > Seconds::s(0) && objective != Figure::kMemory)
        off = std::max(alone * off / step.time.value, 1.0) +
              kOwnTime * (alone * off / step.time.value);
      const double value = of(plans[i].figures, objective) * off;
      if (i == 0 || value < least) {
        least = value;
        best = i;
      }
    }
    ++wins[best];
  }
  // A measurement would not tell these apart.
  const auto alike = [&, &kernel = kernels, &group = groups](std::size_t i, std::size_t j) {
    const double a = of(plans[i].figures, objective), b = of(plans[j].figures, objective);
    return kernel[i] == kernel[j] && group[i] == group[j] && std::abs(a - b) <= kNoise * b;
  };
  for (std::size_t i = 0; i < wins.size(); ++i) {
    std::size_t first = 0;
    while (first < i && !alike(first, i)) ++first;
    share[first] += static_cast<double>(wins[i]) / kDraws;
  }
  return share;
}

std::vector<std::size_t> worth_measuring(const std::vector<FoundPlan>& plans,
                                         const std::vector<double>& chance) {
  constexpr std::size_t kMost = 3;
  constexpr double kLeast = 0.05;
  std::vector<std::size_t> order(plans.size()), chosen;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return chance[a] > chance[b]; });
  for (const std::size_t i : order) {
    if (chosen.size() == kMost || chance[i] < kLeast) break;
    const auto alike = [&](std::size_t other) {
      return kernels_of(plans[i]) == kernels_of(plans[other]) &&
             groups_of(plans[i]) == groups_of(plans[other]);
    };
    if (std::ranges::none_of(chosen, alike)) chosen.push_back(i);
  }
  if (chosen.size() < 2) chosen.clear();
  return chosen;
}

}  // namespace rehearse::cli
