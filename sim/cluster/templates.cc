#include "sim/cluster/templates.h"

#include <fmt/core.h>

#include "sim/cluster/fabric_template.h"
#include "sim/cluster/node_template.h"

namespace rehearse::cluster {

NodeNics striped(NodeNics nics, std::uint32_t devices) {
  if (nics.count <= devices || nics.count % devices != 0) return nics;
  const std::uint32_t together = nics.count / devices;
  nics.link.rate = nics.link.rate * together;
  nics.link.half_rate_size = nics.link.half_rate_size * together;  // each NIC carries a part
  nics.link.name += fmt::format(", {} together", together);
  nics.count = devices;
  return nics;
}

Result<ClusterBuilder> make_cluster(const ClusterTemplate& t) {
  EndCounts counts;
  for (const NodeGroup& group : t.groups) {
    if (Status ok = check_node(group.node); !ok) return forward(ok);
    const std::uint64_t most = (kMostDevices - counts.devices) / group.node.devices;
    if (group.nodes < 1 || group.nodes > most)
      return fail(Diagnostic{
          .key = "nodes",
          .problem = "out of range",
          .expected = fmt::format("{}{} devices in all",
                                  most > 0 ? fmt::format("1 to {}, for ", most) : "at most ",
                                  kMostDevices)});
    counts.nodes += group.nodes;
    counts.devices += std::uint64_t{group.nodes} * group.node.devices;
    if (t.fabric)
      counts.nics +=
          std::uint64_t{group.nodes} * (group.nics ? group.nics->count : t.fabric->links);
  }
  bool by_nics = false;
  if (t.fabric) {
    const Result<bool> needed = check_fabric(*t.fabric, counts);
    if (!needed) return forward(needed);
    by_nics = *needed;
  } else if (counts.nodes > 1) {
    return fail(
        Diagnostic{.key = "fabric",
                   .problem = "is missing",
                   .expected = fmt::format("the network between the {} nodes", counts.nodes)});
  }
  ClusterBuilder builder;
  Ends ends;
  std::uint32_t number = 0;
  for (const NodeGroup& group : t.groups) {
    const NodeLinks links = add_node_links(builder, group.node);
    const std::uint32_t nics = !by_nics ? 0 : group.nics ? group.nics->count : t.fabric->links;
    for (std::uint32_t i = 0; i < group.nodes; ++i) {
      AddedNode node = add_node(builder, group.node, links, number++, nics);
      ends.nics.push_back(std::move(node.nics));
      ends.devices.insert(ends.devices.end(), node.devices.begin(), node.devices.end());
    }
    if (!by_nics) continue;
    const LinkType& link = group.nics ? group.nics->link : t.fabric->link;
    ends.nic_types.insert(ends.nic_types.end(), group.nodes, builder.add_once(link_of_nic(link)));
  }
  if (t.fabric) add_fabric(builder, *t.fabric, ends);
  return builder;
}

}  // namespace rehearse::cluster
