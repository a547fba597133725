// Recorded collectives as ops whose time another network would change.
#pragma once

#include <vector>

#include "profiler/replay/lower.h"
#include "sim/graph/collective_op.h"

namespace rehearse::replay {

struct Transfers {
  std::vector<graph::CollectiveOp> known;
  std::size_t unknown = 0;  ///< collectives of which kind, bytes or number of ranks is not recorded
};

/// Of all ranks. The number of ranks of a collective is its group's, else that of the job.
/// The op is the transfer alone where the wait for other ranks is known, else both.
Transfers find_transfers(const std::vector<Recording>& recordings, const ReplayGraph& replay);

}  // namespace rehearse::replay
