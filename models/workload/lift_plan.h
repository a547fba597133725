// The plan of a recorded job, from the collectives of its ranks.
#pragma once

#include <vector>

#include "models/workload/lift_traffic.h"

namespace rehearse::workload::lifting {

struct FoundPlan {
  RecordedPlan plan;
  std::vector<std::uint32_t> stage_of;  ///< by given rank
};

/// Fails, with the reason, if the collectives do not determine the plan or contradict each other,
/// and if no rank of a stage is given.
Result<FoundPlan> find_plan(const std::vector<RankTraffic>& ranks);

}  // namespace rehearse::workload::lifting
