// The points at which a recording requests a batch, and its wait there.
#pragma once

#include <string_view>
#include <vector>

#include "profiler/replay/lower.h"
#include "sim/graph/timeline.h"

namespace rehearse::replay {

/// The range that PyTorch puts around the loading of a batch, or the waiting for a loading process.
inline constexpr std::string_view kLoadingRange = "enumerate(DataLoader)*";

/// The host work in one loading range, in order of time: never empty.
struct Load {
  HostIndex range;
  std::vector<OpIndex> ops;
};
std::vector<Load> loads_of(const Recording& recording, const RecordedProgram& program);

struct WithBatchRequests {
  RecordedProgram program;           ///< with `batch_requests`
  std::size_t loading_ranges = 0;    ///< how many of the takes are at one
  Seconds replaced = Seconds::s(0);  ///< the mean of their own work, which takes no time any more
};

/// The program with ops that can be made to wait wherever a rank takes a batch: in each loading
/// range, whose own work takes no time, or, of a rank that has none, at the begin of each step.
/// Fails on a rank without either, and on a program that has such ops.
Result<WithBatchRequests> add_batch_requests(const std::vector<Recording>& recordings,
                                             const RecordedProgram& program);

/// Counts the times of a run of the graph from the end of its `begin`, where it has one.
void begin_at_zero(const ReplayGraph& replay, graph::Timeline& timeline);

}  // namespace rehearse::replay
