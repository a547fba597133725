#include "cli/planning/run_budget.h"

#include <algorithm>
#include <cmath>

#include "strategies/check_plan.h"
#include "strategies/lay_out.h"

namespace rehearse::cli {
namespace {

/// At most this share of all plans is run message by message: the best of them, twice as many as
/// are shown (or 100, thorough) in any case, and as many more as this processor time allows.
constexpr double kRunAgain = 0.05;
constexpr std::size_t kRunAnyway = 20, kRunThorough = 100;
constexpr double kSecondsOfRuns = 4;
/// The processor time of the best of them, run with all ranks (step::RunSize).
constexpr Seconds kTimeOfAllRanks = Seconds::s(4);
/// The time of a run in seconds: for each pass of a microbatch through a layer, and for each rank,
/// whose groups are looked up (docs/performance.md).
constexpr double kPerLayerPass = 10e-6, kPerRank = 30e-6;

double seconds_of_run(const workload::Workload& workload, const strategies::Training& training,
                      const strategies::Plan& plan) {
  return kPerLayerPass * workload.layer_count() * strategies::microbatches_of(training, plan) +
         kPerRank * strategies::ranks_of(plan);
}

}  // namespace

std::size_t runs_of(const step::Spec& spec, const strategies::Space& space, bool thorough) {
  constexpr std::uint64_t kSample = 64;
  const std::uint64_t sample = std::min(kSample, space.size());
  double seconds = 0;
  for (std::uint64_t i = 0; i < sample; ++i) {
    const strategies::Candidate c = space.at(i * space.size() / sample);
    seconds += seconds_of_run(spec.workload, c.training, c.plan);
  }
  const double affordable = kSecondsOfRuns * static_cast<double>(sample) / seconds;
  const double best = std::ceil(kRunAgain * static_cast<double>(space.size()));
  return static_cast<std::size_t>(std::min(
      best,
      std::max(static_cast<double>(thorough ? kRunThorough : kRunAnyway), std::floor(affordable))));
}

void keep_runnable(const workload::Workload& workload, bool thorough,
                   std::vector<FoundPlan>& plans) {
  double seconds = 0;
  std::size_t count = 0;
  for (const FoundPlan& plan : plans) {
    seconds += seconds_of_run(workload, plan.training, plan.plan);
    if (++count > (thorough ? kRunThorough : kRunAnyway) && seconds > kSecondsOfRuns) {
      plans.resize(count - 1);
      return;
    }
  }
}

bool keep_affordable(std::size_t least, std::vector<FoundPlan>& plans) {
  Seconds sum = Seconds::s(0);
  std::size_t count = 0;
  while (count < plans.size() && (sum += plans[count].size.by_messages()) <= kTimeOfAllRanks)
    ++count;
  if (count < std::min(plans.size(), least)) return false;
  plans.resize(count);
  return true;
}

}  // namespace rehearse::cli
