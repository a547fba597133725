// The plan of a recorded job, from the collectives of its ranks.
#pragma once

#include <set>
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

/// The messages of one rank's step whose size follows that of a pass.
struct ActivationMessages {
  std::set<GpuIndex> ops;     ///< of activations and their gradients
  std::uint32_t context = 1;  ///< ranks that divide the tokens of a sample
};

/// Messages of tensor and pipeline ranks, and those next to attention and experts. Others hold
/// weights, their gradients, or less than 4 KiB. Empty where ranks exchange nothing in the forward
/// pass. Fails, with the reason, where the collectives do not tell what they are for.
Result<ActivationMessages> activation_messages(const Recording& recording, const StepUnits& step,
                                               const OpMaker& maker);

}  // namespace rehearse::workload::lifting
