#include "tests/support/cluster_ways.h"

#include <catch2/catch.hpp>

namespace rehearse::test {

using namespace cluster;

Cluster built(Result<ClusterBuilder> builder) {
  INFO((builder ? "" : to_string(builder.error())));
  REQUIRE(builder);
  Result<Cluster> made = std::move(*builder).build();
  INFO((made ? "" : to_string(made.error())));
  REQUIRE(made);
  return *made;
}

std::string way(const Cluster& cluster, std::uint32_t from, const Route& route) {
  VertexId at = cluster.devices()[from].vertex;
  std::string text = cluster.vertices()[at.index()].name;
  for (const HopId hop : route.hops) {
    const Link& link = cluster.links()[Cluster::link_of(hop).index()];
    const bool forth = hop.index() % 2 == 0;
    REQUIRE((forth ? link.a : link.b) == at);
    at = forth ? link.b : link.a;
    text += " " + cluster.vertices()[at.index()].name;
  }
  return text;
}

std::string way(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
  return way(cluster, from, cluster.route(DeviceId(from), DeviceId(to)));
}

LinkType link_type(std::string name, double gb_per_s, double latency_us) {
  return {.name = std::move(name),
          .rate = ByteRate::gb_per_s(gb_per_s),
          .latency = Seconds::us(latency_us),
          .source = "test"};
}

}  // namespace rehearse::test
