// One rank of a recording as a workload: the rank's part of the work, before ranks are joined.
#pragma once

#include "models/workload/lift.h"
#include "models/workload/lift_plan.h"

namespace rehearse::workload::lifting {

struct LiftedRank {
  Lifted lifted;                           ///< of this rank alone, without the update
  std::vector<Op> update = {};             ///< operators of the optimizer, in order of launch
  std::vector<std::uint32_t> chunks = {};  ///< by layer: the chunk of the pipeline stage
  RankTraffic traffic = {};
};

/// `number` is an index into Trace::ranks.
Result<LiftedRank> lift_rank(const trace::Trace& trace, std::size_t number,
                             const LiftOptions& options);

}  // namespace rehearse::workload::lifting
