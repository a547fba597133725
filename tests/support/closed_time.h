// The closed form of a schedule.
#pragma once

#include "models/comm/schedule.h"
#include "sim/cluster/point_to_point.h"

namespace rehearse::test {

/// Exact where each rank has a port of the path's rate in each direction and nothing else uses it
/// (kTree: where each edge of the trees has a quarter of the port).
inline Seconds closed_time(const comm::Schedule& schedule, Bytes size,
                           const cluster::PointToPoint& path) {
  const double count = schedule.local.count + schedule.across.count;
  const double share = schedule.local.share + schedule.across.share;
  return count * path.latency + size * share / path.rate;
}

}  // namespace rehearse::test
