// Builds a layout from a workload, a training and a plan: the list of all transforms, in order.
#pragma once

#include <vector>

#include "models/workload/layout.h"
#include "sim/base/result.h"
#include "strategies/plan.h"
#include "strategies/transform.h"

namespace rehearse::strategies {

/// Fails with one line, and the nearest valid plan if there is one: degrees that do not divide
/// their extents, more stages than layers, a batch that does not divide, incompatible
/// transforms. `workload` is that of one sample.
Result<workload::Layout> lay_out(const workload::Workload& workload, const Training& training,
                                 const Plan& plan);

/// By stage. REQUIRES: check_plan() holds; both outlive the result.
std::vector<RankSetting> settings_of(const Training& training, const Plan& plan);

/// The workload of a rank with that setting and all layers. REQUIRES: check_plan() holds.
Result<workload::Workload> workload_of_rank(const workload::Workload& workload,
                                            const RankSetting& setting);

/// The number of ranks that the plan uses, parameter servers included.
std::uint32_t ranks_of(const Plan& plan);

}  // namespace rehearse::strategies
