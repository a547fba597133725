#include "sim/cluster/ideal_links.h"

#include "sim/base/check.h"

namespace rehearse::cluster {
namespace {

/// A terabyte in a microsecond.
constexpr ByteRate kNoTime = ByteRate::bytes_per_s(1e18);

}  // namespace

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
