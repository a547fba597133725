// The network between the nodes of a template.
#pragma once

#include <vector>

#include "sim/cluster/templates.h"

namespace rehearse::cluster {

/// The endpoints of the fabric.
struct Ends {
  std::vector<std::vector<VertexId>> nics;  ///< by node; none where the devices are joined
  std::vector<std::uint32_t> nic_types;     ///< by node: the link of a NIC to its switch
  std::vector<DeviceId> devices;
};

/// Counts over the whole cluster.
struct EndCounts {
  std::uint32_t nodes = 0;
  std::uint64_t devices = 0, nics = 0;
};

/// Whether nodes are joined by NICs; otherwise the devices themselves are. Fails if the numbers of
/// the template are inconsistent.
Result<bool> check_fabric(const FabricTemplate&, const EndCounts&);
/// The link between a NIC and its switch: half of the latency between two NICs.
LinkType link_of_nic(LinkType type);
/// REQUIRES: check_fabric succeeded.
void add_fabric(ClusterBuilder&, const FabricTemplate&, const Ends&);

}  // namespace rehearse::cluster
