#include "models/comm/scope_of_cluster.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/cluster/catalog.h"

namespace rehearse::comm {
namespace {

using cluster::Cluster;
using cluster::LinkType;

Fabric fabric_of(const Cluster& cluster, DeviceId a, DeviceId b) {
  const cluster::Route route = cluster.route(a, b);
  const auto over_pcie = [&](HopId hop) {
    const cluster::Link& link = cluster.links()[Cluster::link_of(hop).index()];
    for (const VertexId end : {link.a, link.b}) {
      const cluster::Vertex& vertex = cluster.vertices()[end.index()];
      if (vertex.kind == cluster::VertexKind::kHost ||
          (vertex.kind == cluster::VertexKind::kSwitch &&
           vertex.name.find("pcie") != std::string::npos))
        return true;
    }
    return false;
  };
  if (std::ranges::any_of(route.hops, over_pcie)) return Fabric::kHostStaged;
  if (route.hops.size() > 1) return Fabric::kNvswitch;
  const std::string& model = cluster.devices()[a.index()].model;
  return model.starts_with("v100") || model.starts_with("p100") ? Fabric::kCubeMesh
                                                                : Fabric::kBridgedPairs;
}

/// Whether a link type differs from the catalog's.
bool of_their_own(const LinkType& type) {
  std::string_view name = type.name;
  name = name.substr(0, name.find(','));
  constexpr std::string_view kDouble = "_x2";  // two links of a kind between a pair
  if (name.ends_with(kDouble)) name.remove_suffix(kDouble.size());
  const cluster::LinkSpec* row = cluster::link_named(name);
  return row == nullptr || !type.source.starts_with(row->origin.source);
}

ByteRate nominal_rate(const LinkType& type) {
  const std::string_view row(type.name.data(), std::min(type.name.find(','), type.name.size()));
  const cluster::LinkSpec* spec = cluster::link_named(row);
  if (spec == nullptr || !spec->achieved || !spec->per_direction) return type.rate;
  return type.rate * (*spec->per_direction / *spec->achieved);
}

}  // namespace

Scopes::Scopes(const Cluster& cluster) : cluster_(cluster), nics_(cluster.nodes().size()) {
  for (const LinkType& type : cluster.link_types()) own_.push_back(of_their_own(type) ? 1 : 0);
  const std::span<const cluster::Vertex> vertices = cluster.vertices();
  const std::span<const cluster::Link> links = cluster.links();
  for (std::size_t i = 0; i < links.size(); ++i) {
    const cluster::Vertex &a = vertices[links[i].a.index()], &b = vertices[links[i].b.index()];
    if (a.node == b.node) continue;
    const LinkType& type = cluster.type(LinkId(i));
    for (const cluster::Vertex* end : {&a, &b}) {
      if (!end->node || end->kind != cluster::VertexKind::kNic) continue;
      Nics& nics = nics_[end->node->index()];
      if (!nics.type || type.rate > nics.type->rate) nics.type = &type;
      ++nics.count;
    }
  }
}

/// A link type between two devices of a node that differs from the catalog's.
std::optional<std::string> Scopes::link_of_their_own(std::span<const DeviceId> devices) const {
  for (std::size_t i = 1; i < devices.size(); ++i)
    for (const HopId hop : cluster_.route(devices[i - 1], devices[i]).hops) {
      const std::uint32_t type = cluster_.links()[Cluster::link_of(hop).index()].type;
      if (own_[type]) return cluster_.link_types()[type].name;
    }
  return std::nullopt;
}

NetworkKind Scopes::kind_of(NodeId node, const LinkType& type, Seconds latency) const {
  if (type.network) return *type.network;
  if (latency < cluster::kKernelBypass) return NetworkKind::kRoce;
  const Nics& nics = nics_[node.index()];
  const ByteRate all = nics.type ? nics.type->rate * nics.count : type.rate;
  // A faster network bypasses the kernel.
  return all > ByteRate::gbit_per_s(100) ? NetworkKind::kEfa : NetworkKind::kTcp;
}

Result<ClusterScope> scope_of(const Cluster& cluster, std::span<const DeviceId> ranks) {
  return Scopes(cluster).of(ranks);
}

Result<ClusterScope> Scopes::of(std::span<const DeviceId> ranks) const {
  const Cluster& cluster = cluster_;
  if (ranks.size() < 2)
    return fail(
        fmt::format("a collective on {} has no communication", counted(ranks.size(), "rank")),
        "at least 2 ranks");
  const auto device_of = [&](DeviceId id) -> const cluster::Device& {
    return cluster.devices()[id.index()];
  };
  ClusterScope scope{.device = device_of(ranks.front()).model,
                     .ranks = static_cast<std::uint32_t>(ranks.size()),
                     .nodes = 0};
  std::map<NodeId, std::vector<DeviceId>> of_node;
  for (const DeviceId id : ranks) {
    if (device_of(id).model != scope.device)
      return fail(
          fmt::format("the ranks are on '{}' and on '{}'", scope.device, device_of(id).model),
          "devices of one model");
    of_node[device_of(id).node].push_back(id);
  }
  const std::vector<DeviceId>& first = of_node.begin()->second;
  for (const auto& [node, devices] : of_node)
    if (devices.size() != first.size())
      return fail(fmt::format("{} of the ranks are on node '{}' and {} on '{}'", first.size(),
                              cluster.nodes()[of_node.begin()->first.index()].name, devices.size(),
                              cluster.nodes()[node.index()].name),
                  "the same number of ranks on every node");
  scope.nodes = static_cast<std::uint32_t>(of_node.size());
  if (first.size() > 1) {
    scope.fabric = fabric_of(cluster, first[0], first[1]);
    scope.link_of_their_own = link_of_their_own(first);
    const HopId hop = cluster.route(first[0], first[1]).hops.front();
    scope.local_scale = cluster.type(Cluster::link_of(hop)).step_scale;
  }
  if (scope.nodes == 1) return scope;
  Nics nics = nics_[of_node.begin()->first.index()];
  if (!nics.type) return scope;
  const DeviceId other = std::next(of_node.begin())->second.front();
  const std::size_t on_node = cluster.nodes()[of_node.begin()->first.index()].devices.size();
  const cluster::Route route = cluster.route(first.front(), other);
  nics.count *= static_cast<double>(first.size()) / static_cast<double>(on_node);
  // A device sends through one of them; NICs without a participating rank carry nothing.
  nics.count = std::min(nics.count, static_cast<double>(first.size()));
  const NetworkKind kind = kind_of(of_node.begin()->first, *nics.type, route.path.latency);
  if (!nics.type->network)
    scope.notes.push_back(
        fmt::format("the kind of the network is assumed to be {}, from its latency and the total "
                    "rate of a node's NICs",
                    to_string(kind)));
  scope.network = Network{kind,
                          nominal_rate(*nics.type) * nics.count,
                          route.path.latency,
                          nics.count,
                          route.message_cost,
                          static_cast<double>(first.size()) / static_cast<double>(on_node),
                          nics.type->step_scale};
  return scope;
}

Status suits(const Calibration& calibration, const ClusterScope& scope) {
  if (scope.nodes > 1 && !scope.network)
    return fail("the nodes are not connected by NICs, and calibrations assume NICs",
                "a cluster with NICs");
  if (scope.link_of_their_own)
    return fail(fmt::format("link type '{}' is not the measured one", *scope.link_of_their_own),
                "links of the catalog");
  if (!scope.fabric || calibration.fabric == *scope.fabric) return {};
  return fail(
      fmt::format("the calibration of {} is for devices connected by {}, but the cluster connects "
                  "them by {}",
                  calibration.device, to_string(calibration.fabric), to_string(*scope.fabric)),
      "measure it: nccl-tests, then 'rehearse calibrate nccl LOG -o FILE' and "
      "--calibration FILE");
}

}  // namespace rehearse::comm
