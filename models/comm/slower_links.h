// The same cluster with other links: slower ones, as measured steps and recorded collectives show
// them, and another network between nodes.
#pragma once

#include "sim/base/result.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/point_to_point.h"

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

/// A device of the first node reaches one of the second at this rate and latency. All links between
/// nodes change by the same factors, so that trunks keep their ratio to the links of devices. Costs
/// of messages and steps stay. Fails if there is one node, or no link between the first two.
Result<cluster::Cluster> with_network(const cluster::Cluster& cluster,
                                      const cluster::PointToPoint& link);

}  // namespace rehearse::comm
