// Closed forms: what a collective costs on links that nothing else uses.
#pragma once

#include <vector>

#include "sim/base/collective.h"
#include "sim/cluster/point_to_point.h"
#include "sim/graph/collective_op.h"
#include "sim/graph/graph.h"

namespace rehearse::comm {

/// The time of one collective among `ranks` ranks in a ring of equal links, each step a message of
/// latency a and rate b (Hockney's model; ring algorithms as in Patarasuk and Yuan, J. Parallel
/// Distrib. Comput. 69, 2009, and Thakur, Rabenseifner and Gropp, IJHPCA 19, 2005). With n ranks
/// and a size of S bytes:
///
///   all_reduce                    2 (n-1) (a + S / (n b))   S in the buffer of each rank
///   reduce_scatter, all_gather    (n-1) (a + S / (n b))     S over all ranks
///   all_to_all                    (n-1) (a + S / (n b))     S from each rank to all of them
///   broadcast, reduce             (n-1) a + S / b           S in the buffer; pipelined
///   send_recv                     a + S / b                 S in the message
///   barrier                       2 (n-1) a
///
/// One rank alone needs no time. Valid where links are alike and a message's rate does not depend
/// on its size; protocols that switch with size need a calibration.
Seconds ring_time(CollectiveKind kind, std::uint32_t ranks, Bytes size,
                  const cluster::PointToPoint& link);

/// The graph with the durations of its collectives set by `ring_time`.
Result<graph::Graph> price(graph::Graph graph, const std::vector<graph::CollectiveOp>& collectives,
                           const cluster::PointToPoint& link);

}  // namespace rehearse::comm
