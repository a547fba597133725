// The properties of a cluster for a calibration: device, links, number of nodes, and
// network.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/comm/collective_cost.h"
#include "sim/cluster/cluster.h"

namespace rehearse::comm {

struct ClusterScope {
  std::string device;  ///< model
  /// How the ranks of a node are joined; absent with one rank per node.
  std::optional<Fabric> fabric = {};
  std::uint32_t ranks;
  std::uint32_t nodes;
  std::optional<Network> network = {};  ///< with several nodes, where NICs join them
  double local_scale = 1;               ///< Group::local_scale
  /// A link type within a node that differs from the catalog's.
  std::optional<std::string> link_of_their_own = {};
  /// Properties of the cluster that a calibration ignores, one line each; for people.
  std::vector<std::string> notes = {};
};

/// For ranks on these devices. The kind of a network is that of its link type where it is stated,
/// else Scopes::kind_of assumes it. Its nominal rate is the achieved rate of the catalog's row,
/// scaled back, or the given rate. Fails on devices of several models, on an uneven spread of ranks
/// over nodes, and on fewer than two ranks.
Result<ClusterScope> scope_of(const cluster::Cluster& cluster, std::span<const DeviceId> ranks);

/// The same for many groups of a cluster, whose NICs and link types are looked at once.
class Scopes {
 public:
  /// REQUIRES: the cluster outlives this object.
  explicit Scopes(const cluster::Cluster& cluster);
  Result<ClusterScope> of(std::span<const DeviceId> ranks) const;
  /// The kind of the network that messages leave the node by, over a link of this type: the stated
  /// one; else RoCE below 10 us from device to device, TCP if all NICs of the node together have
  /// at most 100 Gbit/s, and EFA beyond.
  NetworkKind kind_of(NodeId node, const cluster::LinkType& type, Seconds latency) const;

 private:
  /// The widest link type of a NIC of a node, towards the fabric, and how many such NICs there are.
  struct Nics {
    const cluster::LinkType* type = nullptr;
    double count = 0;
  };

  std::optional<std::string> link_of_their_own(std::span<const DeviceId> devices) const;

  const cluster::Cluster& cluster_;
  std::vector<Nics> nics_;  // by node
  std::vector<char> own_;   // by link type: differs from the catalog's
};

/// Succeeds if the calibration was measured on devices joined in the same way, and NICs join the
/// nodes. Otherwise states why its price would mean nothing.
Status suits(const Calibration& calibration, const ClusterScope& scope);

}  // namespace rehearse::comm
