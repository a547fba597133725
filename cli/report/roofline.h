// Rooflines for the report page: the achieved rates of a step's ops relative to the peaks of their
// device.
#pragma once

#include "cli/output/value.h"
#include "sim/cluster/cluster.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

/// `devices`: per kind its `name`, `peak` (FLOP/s of the job's arithmetic), `memory_rate` (B/s) and
/// `ops`: by name, kind and phase, the largest share of time first, `time_s` of a rank and step,
/// `flops`, `bytes` and `calls` of it, and `provenance`. FLOPs are those of matrix operations: 0
/// for others. Null where the ranks' prices cannot be had again.
Json roofline_of(const step::Spec& spec, const cluster::Cluster& cluster, const step::Step& step);

}  // namespace rehearse::cli
