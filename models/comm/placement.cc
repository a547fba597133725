#include "models/comm/placement.h"

#include <cmath>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::comm {

using cluster::Cluster, cluster::Duplex, graph::FlowRoute;

Placement::Placement(const Cluster& cluster, graph::GraphBuilder& builder, CommonLinks* common)
    : cluster_(cluster), builder_(builder), common_(common), capacity_(cluster.hop_count()) {}

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
  const std::string ends =
      type.duplex == Duplex::kHalf
          ? fmt::format("{} - {}", name(l.a), name(l.b))
          : fmt::format("{} > {}", name(back ? l.b : l.a), name(back ? l.a : l.b));
  std::string link_name;
  if (common_) {
    link_name = fmt::format("{} {}", ends, type.rate.bytes_per_s());
    link_name += fmt::format(" {}", seen_[link_name]++);
    if (const auto other = common_->find(link_name); other != common_->end())
      return *(known = other->second);
  }
  graph::Capacity capacity{.name = builder_.intern(ends), .rate = type.rate.bytes_per_s()};
  for (const cluster::LinkChange& change : l.changes)
    capacity.changes.push_back({Picoseconds::from(change.at), change.share * capacity.rate});
  known = builder_.add(std::move(capacity));
  if (common_) common_->emplace(std::move(link_name), *known);
  return *known;
}

FlowRoute Placement::route(DeviceId from, DeviceId to, const LinkShare& link_share, ByteRate cap) {
  if (from == to) return {DemandId(0), Picoseconds(0)};
  const cluster::Route route = cluster_.route(from, to);
  graph::Demand demand{.weight = link_share.weight,
                       .rate_cap = cap.bytes_per_s(),
                       .priority = link_share.priority,
                       .group = link_share.group};
  for (const HopId hop : route.hops) demand.capacities.push_back(capacity_of(hop));
  return {builder_.add(std::move(demand)), Picoseconds::from(route.path.latency + route.start_up),
          (std::min(route.path.rate, cap) * route.message_cost).b()};
}

std::shared_ptr<const std::vector<FlowRoute>> Placement::routes(const Messages& messages,
                                                                std::span<const DeviceId> devices,
                                                                const LinkShare& link_share) {
  const graph::MessageFlows& flows = *messages.flows;
  REHEARSE_CHECK(devices.size() == flows.members(), "{} devices for {} members", devices.size(),
                 flows.members());
  const bool plain = link_share.weight == 1 && link_share.priority == 0 && !link_share.group &&
                     !messages.phases && !std::isfinite(messages.most.bytes_per_s());
  auto routes = std::make_shared<std::vector<FlowRoute>>();
  routes->reserve(flows.flows().size());
  for (const graph::MessageFlow& flow : flows.flows()) {
    const DeviceId from = devices[flow.from], to = devices[flow.to];
    if (!plain) {
      routes->push_back(route(from, to, link_share, messages.cap(routes->size())));
      if (messages.phases) {
        routes->back().latency = Picoseconds::from(messages.start(routes->size() - 1));
        routes->back().extra = 0;
      }
      continue;
    }
    const std::uint64_t key = (std::uint64_t{from.index()} << 32) | to.index();
    auto known = known_.find(key);
    if (known == known_.end())
      known = known_.emplace(key, route(from, to, link_share, kUnlimited)).first;
    routes->push_back(known->second);
  }
  return routes;
}

}  // namespace rehearse::comm
