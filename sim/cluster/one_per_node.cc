#include "sim/cluster/one_per_node.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::cluster {

namespace {

/// A terabyte in a microsecond.
constexpr ByteRate kNoTime = ByteRate::bytes_per_s(1e18);

class Spreader {
 public:
  explicit Spreader(const Cluster& cluster)
      : cluster_(cluster), copies_(cluster.vertices().size()) {}

  Result<Cluster> spread() {
    std::vector<std::vector<std::size_t>> vertices(cluster_.nodes().size());
    std::vector<std::size_t> fabric;
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      const std::optional<NodeId>& node = cluster_.vertices()[i].node;
      (node ? vertices[node->index()] : fabric).push_back(i);
    }
    for (std::size_t n = 0; n < vertices.size(); ++n) copy_node(cluster_.nodes()[n], vertices[n]);
    for (const std::size_t i : fabric)
      copies_[i].emplace_back(builder_.add(cluster_.vertices()[i]));
    for (const LinkType& type : cluster_.link_types()) builder_.add(type);
    for (const Link& link : cluster_.links()) TRY(copy_link(link));
    Result<Cluster> made = std::move(builder_).build();
    if (!made)
      return fail("no network connects nodes of one device each",
                  "inter_node: the network between nodes");
    return made;
  }

 private:
  /// Copies the node once for each of its devices, without the others; once if it has none. Each is
  /// where the first device of its model was.
  void copy_node(const Node& node, const std::vector<std::size_t>& vertices) {
    for (std::size_t k = 0; k < std::max<std::size_t>(1, node.devices.size()); ++k) {
      const std::string suffix = node.devices.size() > 1 ? fmt::format(" of {}", k) : "";
      const NodeId id = builder_.add_node(node.name + suffix, node.store);
      const auto model = [&](DeviceId at) { return cluster_.devices()[at.index()].model; };
      std::optional<VertexId> place;
      if (!node.devices.empty()) {
        const auto first = std::ranges::find(node.devices, model(node.devices[k]), model);
        place = cluster_.devices()[first->index()].vertex;
      }
      for (const std::size_t i : vertices) {
        Vertex vertex = cluster_.vertices()[i];
        if (vertex.kind != VertexKind::kDevice) {
          vertex.name += suffix;
          vertex.node = id;
          copies_[i].emplace_back(builder_.add(std::move(vertex)));
          continue;
        }
        if (VertexId(i) != place) {
          copies_[i].emplace_back(std::nullopt);
          continue;
        }
        const Device& device = cluster_.devices()[node.devices[k].index()];
        const DeviceId added =
            builder_.add_device(id, cluster_.vertices()[device.vertex.index()].name, device.model);
        builder_.set_forwards(added, vertex.forwards);
        copies_[i].emplace_back(builder_.vertex_of(added));
      }
    }
  }

  /// Copies the link wherever both of its ends are.
  Status copy_link(const Link& link) {
    const std::optional<NodeId>& a = cluster_.vertices()[link.a.index()].node;
    const std::optional<NodeId>& b = cluster_.vertices()[link.b.index()].node;
    if (a && b && *a != *b)
      return fail("its nodes are connected by direct links", "nodes connected by switches");
    const Copies &of_a = copies_[link.a.index()], &of_b = copies_[link.b.index()];
    for (std::size_t k = 0; k < std::max(of_a.size(), of_b.size()); ++k) {
      const std::optional<VertexId>& from = a ? of_a[k] : of_a.front();
      const std::optional<VertexId>& to = b ? of_b[k] : of_b.front();
      if (!from || !to) continue;
      const LinkId id = builder_.connect(*from, *to, link.type);
      if (!link.changes.empty()) builder_.set_changes(id, link.changes);
    }
    return {};
  }

  using Copies = std::vector<std::optional<VertexId>>;
  const Cluster& cluster_;
  ClusterBuilder builder_;
  std::vector<Copies> copies_;  // of each vertex, one for each device of its node
};

}  // namespace

Result<Cluster> with_one_device_per_node(const Cluster& cluster) {
  return Spreader(cluster).spread();
}

Cluster with_ideal_links(const Cluster& cluster, LinkPart part) {
  ClusterBuilder builder(cluster);
  const std::uint32_t ideal = builder.add({.name = "ideal",
                                           .rate = kNoTime,
                                           .latency = Seconds::s(0),
                                           .provenance = Provenance::kRecorded,
                                           .source = "given"});
  for (std::size_t i = 0; i < cluster.links().size(); ++i) {
    const Link& link = cluster.links()[i];
    const auto& a = cluster.vertices()[link.a.index()].node;
    const auto& b = cluster.vertices()[link.b.index()].node;
    if (part != LinkPart::kAll && !(a && a == b)) continue;
    builder.set_type(LinkId(i), ideal);
    builder.set_changes(LinkId(i), {});
  }
  Result<Cluster> made = std::move(builder).build();
  REHEARSE_CHECK(made, "{}", to_string(made.error()));
  return std::move(*made);
}

}  // namespace rehearse::cluster
