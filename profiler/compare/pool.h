// Several runs of one job at one level, as a single run with the steps of all.
#pragma once

#include <span>

#include "profiler/compare/run.h"

namespace rehearse::compare {

struct Pool {
  Run run;               ///< named, shaped and sized like the newest
  std::size_t runs = 0;  ///< number of runs in it
};

/// Minimum share of common op time between the newest run and a pooled run.
inline constexpr double kSameWork = 0.95;

/// Pools the newest run with earlier ones, back to the first that ran elsewhere or does other work.
/// Every series is shifted so that its level is the mean of the runs' levels; its steps vary about
/// it as before. The variation between levels is in EffectOptions::between_runs, not in the steps.
/// REQUIRES: at least one run, oldest first.
Pool pool_runs(std::span<const Run* const> runs);

}  // namespace rehearse::compare
