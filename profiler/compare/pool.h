// Several runs of one job at one level, as a single run with the steps of all.
#pragma once

#include <span>

#include "profiler/compare/run.h"

namespace rehearse::compare {

struct Pool {
  Run run;               ///< named, shaped and sized like the newest
  std::size_t runs = 0;  ///< how many it is made of
};

/// What runs must have in common with the newest to be pooled: this share of the time of their ops.
inline constexpr double kSameWork = 0.95;

/// Pools the newest run with those before it, back to the first that ran elsewhere or does other
/// work. Every series stands at the mean of the runs' levels, its steps about that as they were
/// about the level of their run: how much the levels of runs differ is not told by steps, but by
/// EffectOptions::between_runs. REQUIRES: one run at least, oldest first.
Pool pool_runs(std::span<const Run* const> runs);

}  // namespace rehearse::compare
