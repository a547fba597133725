#include "models/comm/closed_form.h"

namespace rehearse::comm {

Seconds ring_time(CollectiveKind kind, std::uint32_t ranks, Bytes size,
                  const cluster::PointToPoint& link) {
  if (ranks <= 1) return Seconds::s(0);
  const double n = ranks;
  const Seconds part = link.latency + size / n / link.rate;  // one step of a ring over n parts
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (n - 1) * part;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
      return (n - 1) * part;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
      return (n - 1) * link.latency + size / link.rate;
    case CollectiveKind::kSendRecv:
      return link.latency + size / link.rate;
    case CollectiveKind::kBarrier:
      return 2 * (n - 1) * link.latency;
  }
  return Seconds::s(0);
}

Result<graph::Graph> price(graph::Graph graph, const std::vector<graph::CollectiveOp>& collectives,
                           const cluster::PointToPoint& link) {
  graph::GraphBuilder builder(std::move(graph));
  for (const graph::CollectiveOp& c : collectives) {
    const Seconds time = ring_time(c.kind, c.ranks, c.size, link);
    constexpr double kLongest = 86400;  // a collective of more than a day is wrong input
    if (!(time.s() < kLongest)) return fail("a collective would last " + to_string(time));
    builder.set_duration(c.op, Picoseconds::from(time));
  }
  return std::move(builder).build();
}

}  // namespace rehearse::comm
