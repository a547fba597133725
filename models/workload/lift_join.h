// The inverse of strategies/tensor_parallel, shard_parameters and pipeline for recorded work.
#pragma once

#include <string>
#include <vector>

#include "models/workload/lift_rank.h"

namespace rehearse::workload::lifting {

/// The workload of the whole model from those of ranks that divided it. Ops that were divided get
/// the extents of the whole and keep those of their recorded time. Adds caveats to `notes`. Fails if
/// stages have different samples or numbers of microbatches. REQUIRES: `found` is the plan of
/// `ranks`.
Result<Workload> join_ranks(const std::vector<LiftedRank>& ranks, const FoundPlan& found,
                            std::vector<std::string>& notes);

}  // namespace rehearse::workload::lifting
