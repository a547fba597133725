// The lowering that all programs share: streams become servers, pools become capacities, ops and
// their order become ops and edges. models/job/lower.h adds what needs a cluster.
//
// A collective with a duration begins when all of its members that are run have arrived, and lasts
// its own duration on each. Its members are the ops of one group with the same tag. An arrival
// waits for the dependencies of the collective and takes no resource; the collective itself takes
// its stream.
#pragma once

#include "sim/base/result.h"
#include "sim/graph/graph.h"
#include "sim/program/lowered.h"
#include "sim/program/program.h"

namespace rehearse::program {

/// Adds the ops of into.ranks and of all services, and fills the rest of `into` except its graph. Collectives without a
/// duration, sends and receives take no time and wait for no other rank: the caller completes them.
/// Under `one_stream` all communication of a rank is served by one stream as it becomes ready;
/// otherwise the collectives of a group follow each other in their order of issue. Fails on another
/// op without a duration. REQUIRES: all ranks are run, if there are services.
Status add_ops(const Program& program, bool one_stream, Lowered& into,
               graph::GraphBuilder& builder);

/// The graph of a program whose collectives have durations and that sends nothing.
Result<Lowered> lower(const Program& program);

}  // namespace rehearse::program
