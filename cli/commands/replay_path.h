// The critical path of a replay, cut into kinds of kernels and of collectives.
#pragma once

#include "cli/commands/replay_job.h"
#include "sim/program/path_parts.h"

namespace rehearse::cli {

/// Over the whole steps of the rank that ends last. `step` gives the intervals. What an edit
/// changed is extrapolated, what the replay fitted is interpolated, the rest recorded.
program::PathParts path_parts(const ReplayJob& job, const ReplayRun& run,
                              const Estimate<Seconds>& step);

}  // namespace rehearse::cli
