// Placement: the messages of a collective on the links of a cluster.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/comm/phases.h"
#include "sim/cluster/cluster.h"
#include "sim/graph/graph.h"

namespace rehearse::comm {

/// How the messages of a transfer share links with others.
struct LinkShare {
  double weight = 1;
  std::int32_t priority = 0;
  std::optional<FlowGroupId> group = {};
};

/// Adds the capacities for messages on a cluster to a graph: one per used hop (one
/// for both directions of a half-duplex link), with the link's changes over time.
class Placement {
 public:
  /// By name, rate and occurrence: links that clusters of several jobs have in common.
  using CommonLinks = std::map<std::string, CapacityId>;

  /// `common`: null if no other job uses the links. REQUIRES: all outlive this object.
  Placement(const cluster::Cluster& cluster, graph::GraphBuilder& builder,
            CommonLinks* common = nullptr);

  /// A route for every flow, between the devices of its members, with the start and the rate of its
  /// phase where messages have phases, else with the latency of the links. REQUIRES: one device per
  /// member. Messages between members on one device take no time.
  std::shared_ptr<const std::vector<graph::FlowRoute>> routes(const Messages& messages,
                                                              std::span<const DeviceId> devices,
                                                              const LinkShare& link_share = {});

 private:
  graph::FlowRoute route(DeviceId from, DeviceId to, const LinkShare& link_share, ByteRate cap);
  CapacityId capacity_of(HopId hop);

  const cluster::Cluster& cluster_;
  graph::GraphBuilder& builder_;
  CommonLinks* common_;
  std::map<std::string, std::size_t> seen_;          // of common links: occurrences
  std::vector<std::optional<CapacityId>> capacity_;  // per hop
  // Routes with the default share, by both devices.
  std::unordered_map<std::uint64_t, graph::FlowRoute> known_;
};

}  // namespace rehearse::comm
