// The cost of a collective on an idle link between ranks.
#pragma once

#include <functional>

#include "sim/base/collective.h"
#include "sim/base/result.h"
#include "sim/cluster/point_to_point.h"

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

}  // namespace rehearse::comm
