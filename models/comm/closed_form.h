// The cost of a collective on an idle link between ranks, and the prices of the collectives of a
// graph.
#pragma once

#include <functional>
#include <vector>

#include "sim/base/collective.h"
#include "sim/cluster/point_to_point.h"
#include "sim/graph/collective_op.h"
#include "sim/graph/graph.h"

namespace rehearse::comm {

/// The time of one collective among `ranks` ranks in a ring of equal links: its steps (ring_steps
/// of schedule.h), each a message of latency a and rate b (Hockney's model; ring algorithms as in
/// Patarasuk and Yuan, J. Parallel Distrib. Comput. 69, 2009, and Thakur, Rabenseifner and Gropp,
/// IJHPCA 19, 2005). One rank alone needs no time. Valid where links are alike and a message's rate
/// does not depend on its size; protocols that switch with size need a calibration.
Seconds ring_time(CollectiveKind kind, std::uint32_t ranks, Bytes size,
                  const cluster::PointToPoint& link);

/// The time of a collective of a kind, by number of ranks.
using CollectiveTime = std::function<Result<Seconds>(CollectiveKind, std::uint32_t, Bytes)>;

/// ring_time() of that link.
CollectiveTime on_link(const cluster::PointToPoint& link);

/// The graph with the durations of its collectives set. Fails where a time cannot be had.
Result<graph::Graph> price(graph::Graph graph, const std::vector<graph::CollectiveOp>& collectives,
                           const CollectiveTime& time_of);

}  // namespace rehearse::comm
