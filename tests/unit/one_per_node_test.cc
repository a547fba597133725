// Every device on a node of its own: what is copied, what is no longer shared, what cannot be.
#include "sim/cluster/one_per_node.h"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "sim/cluster/read_cluster.h"

namespace rehearse::cluster {
namespace {

Cluster read(const std::string& cluster) {
  Result<Cluster> made = parse_cluster("cluster: " + cluster + "\n", "c.yaml");
  INFO((made ? "" : to_string(made.error())));
  REQUIRE(made);
  return std::move(*made);
}

/// Links that both ways pass in the same direction.
std::size_t shared(const Cluster& c, int from, int to, int other, int there) {
  const std::vector<HopId> a = c.route(DeviceId(from), DeviceId(to)).hops;
  const std::vector<HopId> b = c.route(DeviceId(other), DeviceId(there)).hops;
  const std::set<HopId> passed(a.begin(), a.end());
  return static_cast<std::size_t>(
      std::count_if(b.begin(), b.end(), [&](HopId hop) { return passed.contains(hop); }));
}

// The worked example of docs/concepts/recommending.md: two nodes of two, a NIC each.
TEST_CASE("devices of a node share its NIC, and on separate nodes they do not") {
  const Cluster together = read(
      "{device: a100_pcie_40, devices_per_node: 2, nodes: 2, "
      "inter_node: {links: 1, rate: 10 GB/s, latency: 5 us}}");
  CHECK(shared(together, 0, 2, 1, 3) > 0);
  CHECK(together.route(DeviceId(0), DeviceId(2)).path.rate.gb_per_s() == Approx(10));
  const Cluster apart = with_one_device_per_node(together).value();
  REQUIRE(apart.nodes().size() == 4);
  for (const Node& node : apart.nodes()) {
    CHECK(node.devices.size() == 1);
    CHECK(node.nics.size() == 1);
  }
  // The same devices in the same order, over the same kind of NIC: 10 GB take a second alone, and
  // two of them at the same time a second each.
  CHECK(apart.devices()[3].model == "a100_pcie_40");
  CHECK(shared(apart, 0, 2, 1, 3) == 0);
  CHECK(apart.route(DeviceId(0), DeviceId(2)).path.rate.gb_per_s() == Approx(10));
  CHECK(apart.route(DeviceId(0), DeviceId(2)).path.latency.us() ==
        Approx(together.route(DeviceId(0), DeviceId(2)).path.latency.us()));
  // Those that were neighbours meet on the network.
  CHECK(together.route(DeviceId(0), DeviceId(1)).path.rate.gb_per_s() > 20);
  CHECK(apart.route(DeviceId(0), DeviceId(1)).path.rate.gb_per_s() == Approx(10));
}

TEST_CASE("one device per node: each has NICs, and NVLink joins none") {
  const Cluster together = read("{instance: p5.48xlarge, count: 1, inter_node: switch}");
  const Cluster apart = with_one_device_per_node(together).value();
  REQUIRE(apart.nodes().size() == 8);
  for (const Node& node : apart.nodes()) CHECK(node.nics.size() == 8);
  CHECK(together.route(DeviceId(0), DeviceId(7)).path.rate.gb_per_s() == Approx(370));
  CHECK(apart.route(DeviceId(0), DeviceId(7)).path.rate.gb_per_s() == Approx(45));
}

TEST_CASE("one device per node: devices of one model are at the same place") {
  // Two of the four GPUs are on the PCIe switch of the NIC; the others reach it between the sockets.
  const Cluster together = read("{instance: a2-highgpu-4g, count: 2}");
  const auto latency = [](const Cluster& c, int from, int to) {
    return c.route(DeviceId(from), DeviceId(to)).path.latency;
  };
  CHECK(latency(together, 2, 6) > latency(together, 0, 4));
  const Cluster apart = with_one_device_per_node(together).value();
  for (int i = 1; i < 8; ++i) CHECK(latency(apart, 0, i) == latency(together, 0, 4));
}

TEST_CASE("one device per node: a cluster of such nodes changes only in names") {
  const Cluster single = read("{instance: p3.2xlarge, count: 3}");
  const Cluster apart = with_one_device_per_node(single).value();
  REQUIRE(apart.nodes().size() == 3);
  CHECK(apart.vertices().size() == single.vertices().size());
  CHECK(apart.links().size() == single.links().size());
  for (std::size_t i = 0; i < apart.links().size(); ++i)
    CHECK(apart.links()[i].type == single.links()[i].type);
}

TEST_CASE("one device per node: changes of links are kept") {
  const Cluster together = read(
      "{device: a100_pcie_40, devices_per_node: 2, nodes: 2, changes: [{link: node0/nic0-"
      "switch, at: 1 ms, share: 0.5}]}");
  const Cluster apart = with_one_device_per_node(together).value();
  std::size_t changed = 0;
  for (const Link& link : apart.links()) changed += !link.changes.empty();
  CHECK(changed == 2);  // the NIC of each of its devices
}

TEST_CASE("one device per node: links that join nothing are reported") {
  const auto refused = [](const std::string& cluster) {
    const Result<Cluster> apart = with_one_device_per_node(read(cluster));
    REQUIRE_FALSE(apart);
    return to_string(apart.error());
  };
  CHECK(refused("{device: a100_sxm4_80, devices_per_node: 8}") ==
        "no network connects nodes of one device each; inter_node: the network between nodes");
  CHECK(refused("{device: a100_sxm4_80, devices_per_node: 4, nodes: 4, inter_node: {kind: torus, "
                "dimensions: [4, 4]}}") ==
        "its nodes are connected by direct links; nodes connected by switches");
}

}  // namespace
}  // namespace rehearse::cluster
