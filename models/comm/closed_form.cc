#include "models/comm/closed_form.h"

#include "models/comm/schedule.h"

namespace rehearse::comm {

Seconds ring_time(CollectiveKind kind, std::uint32_t ranks, Bytes size,
                  const cluster::PointToPoint& link) {
  if (ranks <= 1) return Seconds::s(0);
  const Steps steps = ring_steps(kind, ranks);
  return steps.count * link.latency + size * steps.share / link.rate;
}

CollectiveTime on_link(const cluster::PointToPoint& link) {
  return [link](CollectiveKind kind, std::uint32_t ranks, Bytes size) -> Result<Seconds> {
    return ring_time(kind, ranks, size, link);
  };
}

}  // namespace rehearse::comm
