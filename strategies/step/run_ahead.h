// How far the hosts of a stage's ranks are ahead of their devices (docs/concepts/memory.md).
#pragma once

#include "models/memory/memory.h"
#include "sim/cluster/cluster.h"

namespace rehearse::step {

/// kNone where most runs of the regime stall, as hosts then wait at every exchange; kWarmUp on a
/// stage of a pipeline whose blocks take the host longer than the device; otherwise kAll.
/// REQUIRES: the cluster has a device for each rank.
memory::RunAhead run_ahead(const workload::Layout& layout, const workload::Stage& stage,
                           const cluster::Cluster& cluster, const cluster::Gpu& gpu);

}  // namespace rehearse::step
