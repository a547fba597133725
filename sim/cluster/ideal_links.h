// The same cluster with links that cost nothing: what communication over them costs is the
// difference.
#pragma once

#include "sim/cluster/cluster.h"

namespace rehearse::cluster {

enum class LinkPart : std::uint8_t {
  kWithinNodes,  ///< both ends of one node: NVLink, PCIe, sockets
  kAll,          ///< the network, too
};

/// No latency, and a rate at which nothing takes time. Routes are found anew; given routes and
/// changes of the links that were replaced are left out. Never fails for a cluster that stands.
Cluster with_ideal_links(const Cluster& cluster, LinkPart part);

}  // namespace rehearse::cluster
