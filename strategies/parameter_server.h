// A parameter server in the place of all-reduce (Li et al., OSDI 2014).
#pragma once

#include "strategies/layout_transform.h"

namespace rehearse::strategies {

/// Workers push the gradients of every layer and fetch its new parameters; servers keep the
/// optimizer's states, each of an equal share of every layer, and update. Overlapped, a layer is
/// pushed as soon as its gradient is there, and fetched behind that. Servers add up the pushes of
/// all workers, or, where these do not wait for each other, update for each.
///
/// With backup workers (Chen et al., 2016) the gradients of as many are thrown away: samples and
/// model FLOPs of a step count without them.
Result<workload::Layout> parameter_server(workload::Layout layout, const JobSetting& setting);

}  // namespace rehearse::strategies
