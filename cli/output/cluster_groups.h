// Groups of identical nodes and of identical fabric vertices of a cluster, each shown once with its
// count.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"

namespace rehearse::cli {

/// Nodes with equal vertices (kind, model, name within the node) and equal links between them.
struct NodeGroup {
  std::vector<NodeId> nodes;  ///< in order
};
std::vector<NodeGroup> alike_nodes(const cluster::Cluster&);

/// "gpu" for "node3/gpu12".
std::string stem_of(const cluster::Cluster&, VertexId vertex);

/// The number of links of a type from a vertex to neighbours of one stem.
using LinkCounts = std::map<std::pair<std::string, std::uint32_t>, std::uint32_t>;

/// Vertices with the same stem, kind and set of links.
struct VertexGroup {
  std::string stem;
  std::string what;  ///< "switch", "h100_sxm5_80"
  std::vector<VertexId> vertices;
  LinkCounts links;  ///< of each
};
std::vector<VertexGroup> vertex_groups(const cluster::Cluster&, NodeId node);
/// A vertex group of the fabric, with its distance from the nodes in links. Lists begin with the
/// most distant group.
struct FabricGroup : VertexGroup {
  std::uint32_t level;  ///< 1: linked with nodes
};
std::vector<FabricGroup> fabric_groups(const cluster::Cluster&);

/// The number of links of each type.
std::vector<std::size_t> links_by_type(const cluster::Cluster&);

/// A self-contained SVG drawing: nodes as boxes below the fabric's switches, links coloured by type,
/// and a legend with rate, latency and source. Of many identical nodes or switches, it draws a few with their count.
std::string cluster_svg(const cluster::Cluster&, const std::string& title);

}  // namespace rehearse::cli
