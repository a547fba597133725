// Rooflines for the report page: the achieved rates of a step's ops relative to the peaks of their
// device.
#pragma once

#include "cli/output/value.h"
#include "sim/cluster/cluster.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

/// Returns `devices`: per kind its `name`, `peak` (FLOP/s of the job's arithmetic), `memory_rate`
/// (B/s) and `ops`. Each op has its name, kind and phase, `time_s`, `flops`, `bytes` and `calls`
/// per rank and step, and `provenance`; the largest share of time comes first. FLOPs count only
/// matrix operations: 0 for others. Null if the ranks' prices are no longer available.
Json roofline_of(const step::Spec& spec, const cluster::Cluster& cluster, const step::Step& step);

}  // namespace rehearse::cli
