#include "cli/output/cluster_groups.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>

#include <fmt/core.h>

namespace rehearse::cli {
namespace {

using cluster::Cluster;

constexpr std::array<std::string_view, 5> kKindNames = {"device", "switch", "nic", "host",
                                                        "storage"};

std::string_view name_in_node(const Cluster& c, VertexId v) {
  const std::string& name = c.vertices()[v.index()].name;
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? std::string_view(name)
                                    : std::string_view(name).substr(slash + 1);
}

std::vector<std::string> labels(const Cluster& c) {
  std::vector<std::string> result;
  for (const cluster::Vertex& v : c.vertices())
    result.emplace_back(kKindNames[static_cast<std::size_t>(v.kind)]);
  for (const cluster::Device& d : c.devices()) result[d.vertex.index()] = d.model;
  return result;
}

/// The links of each vertex to keep, counted by neighbor and type. A cluster may have 100,000
/// devices, and a picture of one node needs few of them.
template <class Keep>
std::vector<LinkCounts> link_counts(const Cluster& c, Keep keep) {
  std::vector<LinkCounts> counts(c.vertices().size());
  for (const cluster::Link& link : c.links())
    for (const auto& [at, to] : {std::pair(link.a, link.b), {link.b, link.a}})
      if (keep(c.vertices()[at.index()])) ++counts[at.index()][{stem_of(c, to), link.type}];
  return counts;
}

template <class Group, class Same>
void add_to(std::vector<Group>& groups, Group candidate, VertexId v, Same same) {
  for (Group& group : groups)
    if (group.stem == candidate.stem && group.what == candidate.what &&
        group.links == candidate.links && same(group)) {
      group.vertices.push_back(v);
      return;
    }
  candidate.vertices = {v};
  groups.push_back(std::move(candidate));
}

}  // namespace

std::string stem_of(const Cluster& c, VertexId vertex) {
  const std::string_view name = name_in_node(c, vertex);
  const std::size_t last = name.find_last_not_of("0123456789");
  return std::string(last == std::string_view::npos ? name : name.substr(0, last + 1));
}

std::vector<NodeGroup> alike_nodes(const Cluster& c) {
  const std::vector<std::string> what = labels(c);
  std::vector<std::vector<std::string>> shape(c.nodes().size());
  const auto vertices = c.vertices();
  const auto note = [&](VertexId v, std::string_view of_it, std::uint32_t type) {
    if (const auto node = vertices[v.index()].node)
      shape[node->index()].push_back(fmt::format("{}-{}:{}", name_in_node(c, v), of_it, type));
  };
  for (std::size_t v = 0; v < vertices.size(); ++v)
    if (const auto node = vertices[v].node)
      shape[node->index()].push_back(fmt::format("{}={}", name_in_node(c, VertexId(v)), what[v]));
  for (const cluster::Link& link : c.links()) {
    const bool inside = vertices[link.a.index()].node == vertices[link.b.index()].node;
    note(link.a, inside ? name_in_node(c, link.b) : "", link.type);
    note(link.b, inside ? name_in_node(c, link.a) : "", link.type);
  }
  for (auto& parts : shape) std::ranges::sort(parts);
  std::vector<NodeGroup> groups;
  std::map<std::vector<std::string>, std::size_t> known;
  for (std::size_t n = 0; n < shape.size(); ++n) {
    const auto [at, is_new] = known.try_emplace(shape[n], groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].nodes.emplace_back(n);
  }
  return groups;
}

std::vector<VertexGroup> vertex_groups(const Cluster& c, NodeId node) {
  const std::vector<std::string> what = labels(c);
  const std::vector<LinkCounts> counts =
      link_counts(c, [&](const cluster::Vertex& v) { return v.node == node; });
  std::vector<VertexGroup> groups;
  for (std::size_t v = 0; v < c.vertices().size(); ++v)
    if (c.vertices()[v].node == node)
      add_to(groups, VertexGroup{stem_of(c, VertexId(v)), what[v], {}, counts[v]}, VertexId(v),
             [](const VertexGroup&) { return true; });
  return groups;
}

std::vector<FabricGroup> fabric_groups(const Cluster& c) {
  const auto vertices = c.vertices();
  std::vector<std::vector<std::uint32_t>> neighbours(vertices.size());
  for (const cluster::Link& link : c.links()) {
    neighbours[link.a.index()].push_back(link.b.index());
    neighbours[link.b.index()].push_back(link.a.index());
  }
  std::vector<std::uint32_t> level(vertices.size(), 0);  // 0: of a node, or not yet known
  std::queue<std::uint32_t> queue;
  for (std::uint32_t v = 0; v < vertices.size(); ++v)
    if (vertices[v].node) queue.push(v);
  while (!queue.empty()) {
    const std::uint32_t v = queue.front();
    queue.pop();
    for (const std::uint32_t n : neighbours[v])
      if (!vertices[n].node && level[n] == 0) {
        level[n] = level[v] + 1;
        queue.push(n);
      }
  }
  const std::vector<std::string> what = labels(c);
  const std::vector<LinkCounts> counts =
      link_counts(c, [](const cluster::Vertex& v) { return !v.node; });
  std::vector<FabricGroup> groups;
  for (std::size_t v = 0; v < vertices.size(); ++v)
    if (!vertices[v].node)
      add_to(groups, FabricGroup{{stem_of(c, VertexId(v)), what[v], {}, counts[v]}, level[v]},
             VertexId(v), [&](const FabricGroup& g) { return g.level == level[v]; });
  std::ranges::stable_sort(groups, std::greater{}, &FabricGroup::level);
  return groups;
}

std::vector<std::size_t> links_by_type(const Cluster& c) {
  std::vector<std::size_t> counts(c.link_types().size(), 0);
  for (const cluster::Link& link : c.links()) ++counts[link.type];
  return counts;
}

}  // namespace rehearse::cli
