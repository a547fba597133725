// The data of a Cluster, shared by its builder and its readers.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/cluster/routing.h"

namespace rehearse::cluster {

struct Cluster::State {
  std::vector<Node> nodes;
  std::vector<Device> devices;
  std::vector<Vertex> vertices;
  std::vector<Link> links;
  std::vector<LinkType> types;
  std::map<std::pair<VertexId, VertexId>, std::vector<HopId>> given;  ///< routes
  std::unique_ptr<const Router> router;
  std::vector<std::uint32_t> node_kinds;
};

}  // namespace rehearse::cluster
