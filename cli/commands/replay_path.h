// The critical path of a replay, cut into kinds of kernels and of collectives.
#pragma once

#include "cli/commands/replay_job.h"
#include "sim/program/path_parts.h"

namespace rehearse::cli {

/// Covers the whole steps of the rank that ends last. `step` gives the intervals. Edited parts
/// count as extrapolated, parts that the replay fitted as interpolated, and the rest as recorded.
program::PathParts path_parts(const ReplayJob& job, const ReplayRun& run,
                              const Estimate<Seconds>& step);

}  // namespace rehearse::cli
