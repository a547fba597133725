#include "models/comm/slower_links.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/core.h>

#include "models/comm/scope_of_cluster.h"
#include "sim/base/check.h"

namespace rehearse::comm {
namespace {

using cluster::Cluster;
using cluster::LinkType;

/// The kind of the network that a node's devices use, if any leads to another node.
std::optional<NetworkKind> kind_at(const Cluster& cluster, const Scopes& scopes, NodeId node) {
  const std::vector<DeviceId>& here = cluster.nodes()[node.index()].devices;
  for (const cluster::Node& other : cluster.nodes()) {
    if (here.empty() || other.devices.empty() || other.devices.front() == here.front()) continue;
    const std::array<DeviceId, 2> ends = {here.front(), other.devices.front()};
    const Result<ClusterScope> scope = scopes.of(ends);
    if (scope && scope->network) return scope->network->kind;
  }
  return std::nullopt;
}

/// The links on which devices of one node reach each other.
std::set<LinkId> links_within_nodes(const Cluster& cluster) {
  std::set<LinkId> links;
  for (const cluster::Node& node : cluster.nodes())
    for (std::size_t a = 0; a < node.devices.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        for (const HopId hop : cluster.route(node.devices[a], node.devices[b]).hops)
          links.insert(Cluster::link_of(hop));
  return links;
}

/// Calls `change` for a copy of the type of each link that devices use for messages, within a node or
/// between nodes, and gives the links what it made. `change` returns whether it changed the type.
template <class Change>
Cluster with_types(const Cluster& cluster, Change change) {
  const Scopes scopes(cluster);
  const std::set<LinkId> within = links_within_nodes(cluster);
  cluster::ClusterBuilder builder(cluster);
  // By type, and whether within a node.
  std::map<std::pair<std::uint32_t, bool>, std::uint32_t> changed;
  for (std::size_t i = 0; i < cluster.links().size(); ++i) {
    const cluster::Link& link = cluster.links()[i];
    const auto& a = cluster.vertices()[link.a.index()].node;
    const auto& b = cluster.vertices()[link.b.index()].node;
    const auto stores = [&](VertexId v) {
      return cluster.vertices()[v.index()].kind == cluster::VertexKind::kStorage;
    };
    const bool inside = a && a == b;
    if (inside && !within.contains(LinkId(i))) continue;
    if (stores(link.a) || stores(link.b)) continue;
    const auto [known, fresh] = changed.try_emplace({link.type, inside}, link.type);
    if (fresh) {
      LinkType type = cluster.link_types()[link.type];
      if (!change(type, inside)) continue;
      if (const std::optional<NodeId> node = a ? a : b; !inside && !type.network && node)
        type.network = kind_at(cluster, scopes, *node);
      known->second = builder.add(std::move(type));
    }
    builder.set_type(LinkId(i), known->second);
  }
  Result<Cluster> made = std::move(builder).build();
  REHEARSE_CHECK(made, "{}", to_string(made.error()));
  return std::move(*made);
}

}  // namespace

Cluster with_slower_links(const Cluster& cluster, const LinkScales& scales) {
  REHEARSE_CHECK(scales.within > 0 && scales.between > 0);
  return with_types(cluster, [&](LinkType& type, bool inside) {
    const double scale = inside ? scales.within : scales.between;
    if (scale == 1) return false;
    // The part before the comma is the row of the catalog.
    type.name += fmt::format(", {:.3g} times as slow", scale);
    type.rate = std::max(type.rate / scale, cluster::kLeastLinkRate);
    type.latency = std::min(type.latency * scale, Seconds::s(1));
    for (Seconds* time : {&type.message.start_up, &type.message.cost})
      *time = std::min(*time * scale, cluster::kMostMessageTime);
    type.step_scale *= scale;
    return true;
  });
}

Result<Cluster> with_network(const Cluster& cluster, const cluster::PointToPoint& link) {
  if (cluster.nodes().size() < 2 || cluster.nodes()[0].devices.empty() ||
      cluster.nodes()[1].devices.empty())
    return fail("the cluster has no network between nodes with devices", "two nodes or more");
  const cluster::Route route =
      cluster.route(cluster.nodes()[0].devices.front(), cluster.nodes()[1].devices.front());
  std::optional<ByteRate> rate;
  Seconds between = Seconds::s(0), within = Seconds::s(0);
  double hops = 0;  // between nodes
  for (const HopId hop : route.hops) {
    const cluster::Link& on = cluster.links()[Cluster::link_of(hop).index()];
    const auto& a = cluster.vertices()[on.a.index()].node;
    const LinkType& type = cluster.link_types()[on.type];
    const bool inside = a && a == cluster.vertices()[on.b.index()].node;
    (inside ? within : between) += type.latency;
    if (inside) continue;
    ++hops;
    rate = rate ? std::min(*rate, type.rate) : type.rate;
  }
  if (!rate) return fail("the first two nodes have no link between them", "a network");
  if (link.latency < within)
    return fail(fmt::format("a network with a latency of {}: that is less than that of the links "
                            "within both nodes, {}",
                            to_string(link.latency), to_string(within)),
                "the latency from one device to another");
  const Seconds latency = link.latency - within;
  return with_types(cluster, [&, faster = link.rate / *rate](LinkType& type, bool inside) {
    if (inside) return false;
    type.name += ", changed";
    type.rate = std::max(type.rate * faster, cluster::kLeastLinkRate);
    type.latency = between > Seconds::s(0) ? type.latency * (latency / between) : latency / hops;
    return true;
  });
}

}  // namespace rehearse::comm
