// Memory of a recorded layer: parameters, saved activations, output.
#pragma once

#include <string>
#include <vector>

#include "models/workload/lift_layers.h"
#include "models/workload/lift_tags.h"

namespace rehearse::workload::lifting {

/// Fills weights, saved activations and output of the layers; adds uncertainties to `notes`.
/// Parameters are counted by their recorded gradients, otherwise by operands.
void fill_memory(const StepUnits& step, const Layers& of, const OpMaker& maker,
                 const Shares& shares, Workload& workload, std::vector<std::string>& notes);

}  // namespace rehearse::workload::lifting
