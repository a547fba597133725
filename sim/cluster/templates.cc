#include "sim/cluster/templates.h"

#include <fmt/core.h>

#include "sim/cluster/fabric_template.h"
#include "sim/cluster/node_template.h"

namespace rehearse::cluster {

Result<ClusterBuilder> make_cluster(const ClusterTemplate& t) {
  if (Status ok = check_node(t.node); !ok) return forward(ok);
  if (t.nodes < 1 || std::uint64_t{t.nodes} * t.node.devices > kMostDevices)
    return fail(Diagnostic{.key = "nodes",
                           .problem = "out of range",
                           .expected = fmt::format("1 to {}, for {} devices in all",
                                                   kMostDevices / t.node.devices, kMostDevices)});
  std::uint32_t nics = 0;
  if (t.fabric) {
    const Result<std::uint32_t> needed = check_fabric(*t.fabric, t.nodes, t.node.devices);
    if (!needed) return forward(needed);
    nics = *needed;
  } else if (t.nodes > 1) {
    return fail(Diagnostic{.key = "fabric",
                           .problem = "is missing",
                           .expected = fmt::format("what joins the {} nodes", t.nodes)});
  }
  ClusterBuilder builder;
  const NodeLinks links = add_node_links(builder, t.node);
  Ends ends;
  for (std::uint32_t i = 0; i < t.nodes; ++i) {
    AddedNode node = add_node(builder, t.node, links, i, nics);
    ends.nics.push_back(std::move(node.nics));
    ends.devices.insert(ends.devices.end(), node.devices.begin(), node.devices.end());
  }
  if (t.fabric) add_fabric(builder, *t.fabric, ends);
  return builder;
}

}  // namespace rehearse::cluster
