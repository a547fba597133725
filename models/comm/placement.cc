#include "models/comm/placement.h"

#include <cmath>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::comm {

using cluster::Cluster;
using cluster::Duplex;
using graph::Way;

Placement::Placement(const Cluster& cluster, graph::GraphBuilder& builder)
    : cluster_(cluster), builder_(builder), capacity_(cluster.hop_count()) {}

CapacityId Placement::capacity_of(HopId hop) {
  const LinkId link = Cluster::link_of(hop);
  const cluster::LinkType& type = cluster_.type(link);
  const bool back = hop.index() % 2 == 1;
  const HopId key(type.duplex == Duplex::kHalf ? 2 * link.index() : hop.index());
  std::optional<CapacityId>& known = capacity_[key.index()];
  if (known) return *known;
  const cluster::Link& l = cluster_.links()[link.index()];
  const auto name = [&](VertexId v) -> const std::string& {
    return cluster_.vertices()[v.index()].name;
  };
  graph::Capacity capacity{
      .name = builder_.intern(
          type.duplex == Duplex::kHalf
              ? fmt::format("{} - {}", name(l.a), name(l.b))
              : fmt::format("{} > {}", name(back ? l.b : l.a), name(back ? l.a : l.b))),
      .rate = type.rate.bytes_per_s()};
  for (const cluster::LinkChange& change : l.changes)
    capacity.changes.push_back({Picoseconds::from(change.at), change.share * capacity.rate});
  known = builder_.add(std::move(capacity));
  return *known;
}

Way Placement::way(DeviceId from, DeviceId to, const Standing& standing, ByteRate cap) {
  if (from == to) return {DemandId(0), Picoseconds(0)};
  const cluster::Route route = cluster_.route(from, to);
  graph::Demand demand{.weight = standing.weight,
                       .rate_cap = cap.bytes_per_s(),
                       .priority = standing.priority,
                       .group = standing.group};
  for (const HopId hop : route.hops) demand.capacities.push_back(capacity_of(hop));
  return {builder_.add(std::move(demand)), Picoseconds::from(route.path.latency)};
}

std::shared_ptr<const std::vector<Way>> Placement::ways(const Messages& messages,
                                                        std::span<const DeviceId> devices,
                                                        const Standing& standing) {
  const graph::Lanes& lanes = *messages.lanes;
  REHEARSE_CHECK(devices.size() == lanes.members(), "{} devices for {} members", devices.size(),
                 lanes.members());
  const bool plain = standing.weight == 1 && standing.priority == 0 && !standing.group &&
                     !messages.phases && !std::isfinite(messages.most.bytes_per_s());
  auto ways = std::make_shared<std::vector<Way>>();
  ways->reserve(lanes.lanes().size());
  for (const graph::Lane& lane : lanes.lanes()) {
    const DeviceId from = devices[lane.from], to = devices[lane.to];
    if (!plain) {
      ways->push_back(way(from, to, standing, messages.cap(ways->size())));
      if (messages.phases)
        ways->back().latency = Picoseconds::from(messages.start(ways->size() - 1));
      continue;
    }
    const std::uint64_t key = (std::uint64_t{from.index()} << 32) | to.index();
    auto known = known_.find(key);
    if (known == known_.end())
      known = known_.emplace(key, way(from, to, standing, kUnlimited)).first;
    ways->push_back(known->second);
  }
  return ways;
}

}  // namespace rehearse::comm
