// The points at which a recording requests a batch, and its wait there.
#pragma once

#include <string_view>
#include <vector>

#include "profiler/replay/lower.h"
#include "sim/graph/timeline.h"

namespace rehearse::replay {

/// The range that PyTorch puts around loading a batch, or around waiting for a loading process.
inline constexpr std::string_view kLoadingRange = "enumerate(DataLoader)*";

/// The host work in one range that matches a pattern, in order of time; never empty.
struct Load {
  HostIndex range;
  std::vector<OpIndex> ops;
};
std::vector<Load> loads_of(const Recording& recording, const RecordedProgram& program,
                           std::string_view pattern = kLoadingRange);

struct WithBatchRequests {
  RecordedProgram program;           ///< with `batch_requests`
  std::size_t loading_ranges = 0;    ///< how many of the requests are at a loading range
  Seconds replaced = Seconds::s(0);  ///< mean of their own work, which now takes no time
};

/// Adds ops that can be made to wait wherever a rank requests a batch: in each loading range, whose
/// own work then takes no time, or, for a rank that has none, at the beginning of each step. Fails
/// if a rank has neither, and if the program has such ops already.
Result<WithBatchRequests> add_batch_requests(const std::vector<Recording>& recordings,
                                             const RecordedProgram& program);

/// Makes the times of a run relative to the end of the program's `begin`, if it has one.
void begin_at_zero(const ReplayGraph& replay, graph::Timeline& timeline);

}  // namespace rehearse::replay
