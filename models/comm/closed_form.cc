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

Result<graph::Graph> price(graph::Graph graph, const std::vector<graph::CollectiveOp>& collectives,
                           const CollectiveTime& time_of) {
  graph::GraphBuilder builder(std::move(graph));
  for (const graph::CollectiveOp& c : collectives) {
    const Result<Seconds> time = time_of(c.kind, c.ranks, c.size);
    if (!time) return forward(time);
    constexpr double kLongest = 86400;  // a collective of more than a day is wrong input
    if (!(time->s() < kLongest)) return fail("a collective would last " + to_string(*time));
    builder.set_duration(c.op, Picoseconds::from(*time));
  }
  return std::move(builder).build();
}

}  // namespace rehearse::comm
