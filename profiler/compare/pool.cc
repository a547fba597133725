#include "profiler/compare/pool.h"

#include "profiler/compare/effect.h"
#include "profiler/compare/match.h"
#include "sim/base/check.h"

namespace rehearse::compare {
namespace {

using Series = std::vector<double>;

/// The series of several runs, one after another, each moved to the mean of their levels. A run
/// without a series (null) repeats the steps of the last run, as many as it has.
Series joined(const std::vector<const Series*>& parts, const std::vector<std::size_t>& steps) {
  double mean = 0, count = 0;
  for (const Series* part : parts)
    if (part) {
      mean += level_of(*part);
      ++count;
    }
  mean /= count;
  Series all;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Series& part = parts[p] ? *parts[p] : *parts.back();
    const double move = mean - level_of(part);
    for (std::size_t s = 0; s < steps[p]; ++s) all.push_back(part[s % part.size()] + move);
  }
  return all;
}

}  // namespace

Pool pool_runs(std::span<const Run* const> runs) {
  REHEARSE_CHECK(!runs.empty());
  const Run& newest = *runs.back();
  // From the newest back, then turned: the oldest first.
  std::vector<const Run*> used = {&newest};
  std::vector<std::vector<const OpSlot*>> slots(1);  ///< of each run, by slot of the newest
  for (const OpSlot& slot : newest.slots) slots[0].push_back(&slot);
  for (std::size_t back = runs.size() - 1; back-- > 0;) {
    const Run& run = *runs[back];
    if (run.devices != newest.devices || run.ranks != newest.ranks) break;
    const Matches matches = match_ops(newest, run);
    if (matches.matched_share < kSameWork) break;
    used.push_back(&run);
    auto& of_run = slots.emplace_back(newest.slots.size(), nullptr);
    for (const SlotPair& pair : matches.pairs) of_run[pair.baseline] = &run.slots[pair.candidate];
  }
  std::vector<std::size_t> steps;
  for (auto run = used.rbegin(); run != used.rend(); ++run) steps.push_back((*run)->steps());

  Pool pool{.run = newest, .runs = used.size()};
  const auto pooled = [&](const auto& series_of) {
    std::vector<const Series*> parts;
    for (std::size_t r = used.size(); r-- > 0;) parts.push_back(series_of(r));
    return joined(parts, steps);
  };
  for (Series Run::*series : {&Run::step_time, &Run::compute, &Run::exposed_communication,
                              &Run::copies, &Run::launch_gaps, &Run::energy}) {
    if ((newest.*series).empty()) continue;
    pool.run.*series = pooled([&](std::size_t r) -> const Series* {
      const Series& of_run = used[r]->*series;
      return of_run.empty() ? nullptr : &of_run;
    });
  }
  for (std::size_t i = 0; i < newest.slots.size(); ++i)
    pool.run.slots[i].times =
        pooled([&](std::size_t r) { return slots[r][i] ? &slots[r][i]->times : nullptr; });
  pool.run.windows.clear();
  return pool;
}

}  // namespace rehearse::compare
