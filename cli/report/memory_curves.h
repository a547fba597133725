// Memory over a step for the report page: a curve per stage, stacked by category.
#pragma once

#include "cli/output/value.h"
#include "sim/cluster/cluster.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

/// Curves of the fullest stages (at most `most_stages`, in the order of the layout): `name`,
/// `device`, `usable_b`, `peak` (index of the fullest moment), `time_s`, `phase` and, by part,
/// `bytes` of each moment. A moment stands where in the run the stage had done as much computing as
/// its order has before it. Null where the ranks' prices cannot be had again.
Json memory_curves(const step::Spec& spec, const cluster::Cluster& cluster, const step::Step& step,
                   std::size_t most_stages = 4);

}  // namespace rehearse::cli
