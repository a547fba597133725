// What joins the nodes of a template.
#pragma once

#include <vector>

#include "sim/cluster/templates.h"

namespace rehearse::cluster {

/// What the fabric is to join.
struct Ends {
  std::vector<std::vector<VertexId>> nics;  ///< by node
  std::vector<DeviceId> devices;
};

/// How many NICs each node needs: none where the devices themselves are joined. Fails where the
/// numbers of the template do not fit that many nodes and devices.
Result<std::uint32_t> check_fabric(const FabricTemplate&, std::uint32_t nodes,
                                   std::uint32_t devices_per_node);
/// REQUIRES: check_fabric succeeded.
void add_fabric(ClusterBuilder&, const FabricTemplate&, const Ends&);

}  // namespace rehearse::cluster
