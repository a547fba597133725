// Clusters derived from another one.
#pragma once

#include "sim/cluster/cluster.h"

namespace rehearse::cluster {

/// Every device, in the same order, with a copy of everything on its node except the other devices:
/// hosts, PCIe switches, NICs, and their links, including those into the fabric. Devices of one model
/// all are where the first one was, so that their nodes are equal. The fabric is the same, with more
/// endpoints. Routes are recomputed; given routes are left out. Fails with one line
/// if nodes are joined by their own links instead of a fabric (a torus of devices), or by nothing.
Result<Cluster> with_one_device_per_node(const Cluster& cluster);

enum class LinkPart : std::uint8_t {
  kWithinNodes,  ///< both ends of one node: NVLink, PCIe, sockets
  kAll,          ///< the network, too
};

/// No latency, and an infinite rate. Routes are computed again, except for given ones; changes of
/// the replaced links are dropped. Never fails for a valid cluster.
Cluster with_ideal_links(const Cluster& cluster, LinkPart part);

}  // namespace rehearse::cluster
