// Placement: the messages of a collective on the links of a cluster.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "models/comm/phases.h"
#include "sim/cluster/cluster.h"
#include "sim/graph/graph.h"

namespace rehearse::comm {

/// How the messages of a transfer stand to others on the same links.
struct Standing {
  double weight = 1;
  std::int32_t priority = 0;
  std::optional<FlowGroupId> group = {};
};

/// Adds to a graph what messages need of a cluster: a capacity per hop that some message takes (one
/// for both directions of a half-duplex link), with the link's changes over time.
class Placement {
 public:
  /// REQUIRES: both outlive this object.
  Placement(const cluster::Cluster& cluster, graph::GraphBuilder& builder);

  /// A way for every lane, between the devices of its members, with the start and the rate of its
  /// phase where messages have phases, else with the latency of the links. REQUIRES: one device per
  /// member. Messages between members on one device take no time.
  std::shared_ptr<const std::vector<graph::Way>> ways(const Messages& messages,
                                                      std::span<const DeviceId> devices,
                                                      const Standing& standing = {});

 private:
  graph::Way way(DeviceId from, DeviceId to, const Standing& standing, ByteRate cap);
  CapacityId capacity_of(HopId hop);

  const cluster::Cluster& cluster_;
  graph::GraphBuilder& builder_;
  std::vector<std::optional<CapacityId>> capacity_;  // per hop
  // Ways of plain standing, by both devices.
  std::unordered_map<std::uint64_t, graph::Way> known_;
};

}  // namespace rehearse::comm
