// The same cluster with links of zero cost. The difference is the cost of communication over these
// links.
#pragma once

#include "sim/cluster/cluster.h"

namespace rehearse::cluster {

enum class LinkPart : std::uint8_t {
  kWithinNodes,  ///< both ends of one node: NVLink, PCIe, sockets
  kAll,          ///< the network, too
};

/// No latency, and an infinite rate. Routes are computed again, except for given ones; changes of
/// the replaced links are dropped. Never fails for a valid cluster.
Cluster with_ideal_links(const Cluster& cluster, LinkPart part);

}  // namespace rehearse::cluster
