// Several runs of one job at one level, as a single run with the steps of all.
#pragma once

#include <span>

#include "profiler/compare/run.h"

namespace rehearse::compare {

struct Pool {
  Run run;               ///< named, shaped and sized like the newest
  std::size_t runs = 0;  ///< how many it is made of
};

/// Minimum share of common op time between the newest run and a pooled run.
inline constexpr double kSameWork = 0.95;

/// Pools the newest run with earlier ones, back to the first that ran elsewhere or does other
/// work. Every series is shifted to the mean of the runs' levels, with its steps unchanged about
/// its own level. The variation between levels is in EffectOptions::between_runs, not in the steps.
/// REQUIRES: at least one run, oldest first.
Pool pool_runs(std::span<const Run* const> runs);

}  // namespace rehearse::compare
