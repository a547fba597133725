// The lowering that all programs share: streams become servers, pools become capacities, ops and
// their order become ops and edges. models/job/lower.h adds what needs a cluster.
//
// A collective with a duration begins when all of its members that are run have arrived, and lasts
// its own duration on each. Its members are the ops of one group with the same tag. An arrival
// waits for the dependencies of the collective and takes no resource; the collective itself takes
// its stream.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "sim/base/result.h"
#include "sim/graph/graph.h"
#include "sim/program/lowered.h"
#include "sim/program/program.h"

namespace rehearse::program {

/// A graph that one or several programs are added to, with the resources that those share.
struct Assembly {
  graph::GraphBuilder builder = {};
  /// By name, and the number of the rank where its device has them.
  std::map<std::pair<std::string, std::uint32_t>, CapacityId> pools = {};
  std::map<std::string, ServerId> servers = {};
  std::map<std::string, CapacityId> links = {};  ///< of clusters, by name, rate and occurrence
};

/// Adds the ops of into.ranks and of all services, and fills the rest of `into` except its graph. Collectives without a
/// duration, sends and receives take no time and wait for no other rank: the caller completes them.
/// Under `one_stream` all communication of a rank is served by one stream as it becomes ready;
/// otherwise the collectives of a group follow each other in their order of issue. Fails on another
/// op without a duration. Orders with ranks that are not run are left out.
Status add_ops(const Program& program, bool one_stream, Lowered& into, Assembly& onto);

/// Adds a program whose collectives have durations and that sends nothing. The result has no graph.
Result<Lowered> add(const Program& program, Assembly& onto);
/// The graph of such a program.
Result<Lowered> lower(const Program& program);

}  // namespace rehearse::program
