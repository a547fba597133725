// Recompute::kAsNeeded: as many layers are recomputed as the memory of their device demands, stage by
// stage (Lai et al., Merak, TPDS 2023).
#pragma once

#include "sim/cluster/cluster.h"
#include "strategies/plan.h"

namespace rehearse::step {

/// strategies::lay_out(). With kAsNeeded, the first layers of each stage are recomputed as with kFull,
/// and no fewer than the number with which the stage fits its device; all of them if it never does.
/// Stages that name their recomputation keep it. Fails as lay_out() and memory_on() do.
Result<workload::Layout> lay_out_on(const cluster::Cluster& cluster,
                                    const workload::Workload& workload,
                                    const strategies::Training& training,
                                    const strategies::Plan& plan);

}  // namespace rehearse::step
