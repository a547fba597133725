// One node of a template.
#pragma once

#include "sim/cluster/templates.h"

namespace rehearse::cluster {

/// The link types of a node, added to a cluster once.
struct NodeLinks {
  std::uint32_t pcie, sockets;
  std::optional<std::uint32_t> link = {}, double_link = {};
};

struct AddedNode {
  std::vector<DeviceId> devices;
  std::vector<VertexId> nics;
};

Status check_node(const NodeTemplate&);
NodeLinks add_node_links(ClusterBuilder&, const NodeTemplate&);
/// "node3" with "node3/gpu0", "node3/nic0", "node3/pcie0", "node3/cpu0", "node3/nvswitch".
AddedNode add_node(ClusterBuilder&, const NodeTemplate&, const NodeLinks&, std::uint32_t number,
                   std::uint32_t nics);

}  // namespace rehearse::cluster
