// The recorded update of parameters, by layer.
#pragma once

#include <vector>

#include "models/workload/lift_rank.h"

namespace rehearse::workload::lifting {

/// By layer: the parameters that a rank updated under the plan, before ranks are joined. With ZeRO
/// it updates its share of those that other ranks hold too, and of all experts.
std::vector<double> updated_parameters(const Workload& rank, const RecordedPlan& plan);

/// Adds the rank's update to its layers, as one operation of each. Calls of one operator are assumed
/// to cover the updated parameters in the order of the layers, each as large a part as its bytes are
/// of all such calls. Where bytes are not recorded, every call covers all parameters, and the
/// update moves 12 bytes for each: it reads a weight and its gradient, and writes a weight.
void divide_update(LiftedRank& rank, const RecordedPlan& plan);

}  // namespace rehearse::workload::lifting
