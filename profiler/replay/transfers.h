// Recorded collectives as ops whose time depends on the network.
#pragma once

#include <vector>

#include "profiler/replay/lower.h"
#include "sim/graph/collective_op.h"

namespace rehearse::replay {

struct Transfers {
  std::vector<graph::CollectiveOp> known;
  std::size_t unknown = 0;  ///< collectives without a recorded kind, size or number of ranks
};

/// The transfers of all ranks. The number of ranks of a collective is that of its group, else that
/// of the job. The op is only the transfer if the wait for other ranks is known, else both.
Transfers find_transfers(const std::vector<Recording>& recordings, const ReplayGraph& replay);

}  // namespace rehearse::replay
