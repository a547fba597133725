// The same cluster with slower links, as measured steps and recorded collectives show them.
#pragma once

#include "sim/cluster/cluster.h"

namespace rehearse::comm {

/// Times of messages ÷ those on the cluster as it is described. Both are above zero.
struct LinkScales {
  double within = 1;   ///< a node
  double between = 1;  ///< nodes

  friend bool operator==(const LinkScales&, const LinkScales&) = default;
};

/// Messages take that many times as long: links have lower rates, higher latencies, and higher
/// costs of messages and steps (Reach::step). Calibrated collectives within a node take that many
/// times as long. NCCL's own constants, the cap of single flows over TCP, and the stated or assumed
/// kind of the network do not change.
cluster::Cluster with_slower_links(const cluster::Cluster& cluster, const LinkScales& scales);

}  // namespace rehearse::comm
