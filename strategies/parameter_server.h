// A parameter server instead of all-reduce (Li et al., OSDI 2014).
#pragma once

#include "strategies/layout_transform.h"

namespace rehearse::strategies {

/// Workers push the gradients of every layer and fetch its new parameters. Servers hold the
/// optimizer's states, each for an equal share of every layer, and update. With overlap, a layer is
/// pushed as soon as its gradient is ready, and fetched after that. Servers add up the pushes of
/// all workers, or update for each push if workers do not wait for each other.
///
/// With backup workers (Chen et al., 2016) the same number of gradients is discarded: samples and
/// model FLOPs of a step do not count them.
Result<workload::Layout> parameter_server(workload::Layout layout, const JobSetting& setting);

}  // namespace rehearse::strategies
