// The forward unit that each backward or recomputed unit belongs to.
#pragma once

#include <vector>

#include "models/workload/lift_units.h"

namespace rehearse::workload::lifting {

/// Sets Unit::forward. A backward operator names its forward operator by the sequence number. Those
/// that do the work of several (a compiled graph, a fused block), and recordings without numbers,
/// are walked in reverse. Units of recomputation are matched with the forward pass in its order.
/// REQUIRES: `units` of the step in order of start, with phases and nodes set.
void pair_backward(const Recording& recording, const replay::Step& step, std::vector<Unit>& units);

}  // namespace rehearse::workload::lifting
