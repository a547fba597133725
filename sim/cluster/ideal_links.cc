#include "sim/cluster/ideal_links.h"

#include "sim/base/check.h"

namespace rehearse::cluster {
namespace {

/// A terabyte in a microsecond.
constexpr ByteRate kNoTime = ByteRate::bytes_per_s(1e18);

}  // namespace

Cluster with_ideal_links(const Cluster& cluster, LinkPart part) {
  ClusterBuilder builder;
  for (const Node& node : cluster.nodes()) builder.add_node(node.name);
  std::size_t next = 0;
  for (const Vertex& vertex : cluster.vertices()) {
    if (vertex.kind != VertexKind::kDevice) {
      builder.add(vertex);
      continue;
    }
    const DeviceId id =
        builder.add_device(*vertex.node, vertex.name, cluster.devices()[next++].model);
    builder.set_forwards(id, vertex.forwards);
  }
  for (const LinkType& type : cluster.link_types()) builder.add(type);
  const std::uint32_t ideal = builder.add({.name = "ideal",
                                           .rate = kNoTime,
                                           .latency = Seconds::s(0),
                                           .provenance = Provenance::kRecorded,
                                           .source = "given"});
  for (const Link& link : cluster.links()) {
    const auto& a = cluster.vertices()[link.a.index()].node;
    const auto& b = cluster.vertices()[link.b.index()].node;
    const bool replaced = part == LinkPart::kAll || (a && a == b);
    const LinkId id = builder.connect(link.a, link.b, replaced ? ideal : link.type);
    if (!replaced && !link.changes.empty()) builder.set_changes(id, link.changes);
  }
  Result<Cluster> made = std::move(builder).build();
  REHEARSE_CHECK(made, "{}", to_string(made.error()));
  return std::move(*made);
}

}  // namespace rehearse::cluster
