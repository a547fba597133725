// Memory over a step for the report page: a curve per stage, stacked by category.
#pragma once

#include "cli/output/value.h"
#include "sim/cluster/cluster.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

/// Returns the curves of the fullest stages (at most `most_stages`, in the order of the layout):
/// `name`, `device`, `usable_b`, `peak` (index of the fullest moment), `time_s`, `phase` and, by
/// part, `bytes` at each moment. A moment is placed at the time in the run at which the stage had
/// done the computing that precedes the moment in its order. Null if the ranks' prices are no
/// longer available.
Json memory_curves(const step::Spec& spec, const cluster::Cluster& cluster, const step::Step& step,
                   std::size_t most_stages = 4);

}  // namespace rehearse::cli
