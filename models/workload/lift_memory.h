// What a recorded layer holds: parameters, what forward leaves for backward, what it passes on.
#pragma once

#include <string>
#include <vector>

#include "models/workload/lift_layers.h"
#include "models/workload/lift_tags.h"

namespace rehearse::workload::lifting {

/// Fills weights, kept and output of the layers; says what is uncertain in `notes`. Parameters are
/// counted by the gradients that backward gave them where these were recorded, else by operands.
void fill_memory(const StepUnits& step, const Layers& of, const OpMaker& maker,
                 const Shares& shares, Workload& workload, std::vector<std::string>& notes);

}  // namespace rehearse::workload::lifting
