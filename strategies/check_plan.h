// Checks whether a plan can be laid out, before any transform.
#pragma once

#include "models/workload/workload.h"
#include "sim/base/result.h"
#include "strategies/plan.h"

namespace rehearse::strategies {

/// The first constraint that fails, with the nearest valid value if there is one. `workload`
/// is that of one sample.
Status check_plan(const workload::Workload& workload, const Training& training, const Plan& plan);

/// Per data-parallel rank of the first stage. REQUIRES: check_plan() holds.
std::uint32_t microbatches_of(const Training& training, const Plan& plan);

std::uint32_t stages_of(const Plan& plan);

/// Whether `whole` is one or several of `part`, to 1e-9 of their number.
bool divides(double part, double whole);

}  // namespace rehearse::strategies
