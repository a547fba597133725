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

/// The kind of a node's network links: by their name; else RoCE below 10 us from device to
/// device, TCP up to 100 Gbit/s per link, and the cloud's equivalent beyond.
NetworkKind network_kind(const cluster::LinkType& type, Seconds latency);

struct ClusterScope {
  std::string device;  ///< model
  /// How the ranks of a node are joined; absent with one rank per node.
  std::optional<Fabric> fabric;
  std::uint32_t ranks;
  std::uint32_t nodes;
  std::optional<Network> network;  ///< with several nodes, where NICs join them
  /// A link type within a node that differs from the catalog's.
  std::optional<std::string> link_of_their_own = {};
  /// Properties of the cluster that a calibration ignores, one line each; for people.
  std::vector<std::string> notes = {};
};

/// For ranks on these devices. The kind of a network follows from the name of its link type (ib_…,
/// roce_…, efa…, tcp…), or from a given rate and latency (network_kind). Its nominal rate is the
/// achieved rate of the catalog's row, scaled back, or the given rate. Fails on devices of several
/// models, on an uneven spread of ranks over nodes, and on fewer than two ranks.
Result<ClusterScope> scope_of(const cluster::Cluster& cluster, std::span<const DeviceId> ranks);

/// The same for many groups of a cluster, whose NICs and link types are looked at once.
class Scopes {
 public:
  /// REQUIRES: the cluster outlives this object.
  explicit Scopes(const cluster::Cluster& cluster);
  Result<ClusterScope> of(std::span<const DeviceId> ranks) const;

 private:
  /// The widest link type of a NIC of a node, towards the fabric, and how many such NICs there are.
  struct Nics {
    const cluster::LinkType* type = nullptr;
    double count = 0;
  };

  std::optional<std::string> link_of_their_own(std::span<const DeviceId> devices) const;
  static Network network_of(const Nics& nics, Seconds latency, std::vector<std::string>& notes);

  const cluster::Cluster& cluster_;
  std::vector<Nics> nics_;  // by node
  std::vector<char> own_;   // by link type: differs from the catalog's
};

/// Succeeds if the calibration was measured on devices joined in the same way, and NICs join the
/// nodes. Otherwise states why its price would mean nothing.
Status suits(const Calibration& calibration, const ClusterScope& scope);

}  // namespace rehearse::comm
