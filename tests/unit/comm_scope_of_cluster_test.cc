#include <catch2/catch.hpp>

#include "models/comm/scope_of_cluster.h"
#include "models/comm/transfer.h"
#include "sim/cluster/read_cluster.h"

namespace rehearse::comm {
namespace {

cluster::Cluster read(const std::string& section) {
  Result<cluster::Cluster> cluster = cluster::parse_cluster("cluster: " + section + "\n", "c.yaml");
  INFO((cluster ? "" : to_string(cluster.error())));
  REQUIRE(cluster);
  return std::move(*cluster);
}

std::vector<DeviceId> first(std::uint32_t count) {
  std::vector<DeviceId> devices;
  for (std::uint32_t i = 0; i < count; ++i) devices.emplace_back(i);
  return devices;
}

ClusterScope scope(const std::string& section, std::uint32_t ranks) {
  const Result<ClusterScope> found = scope_of(read(section), first(ranks));
  INFO((found ? "" : to_string(found.error())));
  REQUIRE(found);
  return *found;
}

TEST_CASE("nodes of NVSwitch over InfiniBand") {
  const ClusterScope s = scope("{device: h100_sxm5_80, devices_per_node: 8, nodes: 4}", 32);
  CHECK(s.device == "h100_sxm5_80");
  CHECK(s.fabric == Fabric::kNvswitch);
  CHECK(s.nodes == 4);
  REQUIRE(s.network);
  CHECK(s.network->kind == NetworkKind::kInfiniband);
  // Eight NICs that achieve 47 of 50 GB/s.
  CHECK(s.network->node_rate.gb_per_s() == Approx(400));
  // PCIe switch, PCIe, NIC to NIC, and back: half a microsecond each.
  CHECK(s.network->latency.us() == Approx(3));
  CHECK(suits(calibration_for("h100_sxm5_80")->calibration, s));
}

TEST_CASE("how devices of a node are joined") {
  CHECK(scope("{device: v100_sxm2_16, devices_per_node: 8}", 8).fabric == Fabric::kCubeMesh);
  CHECK(scope("{device: l40s, devices_per_node: 4}", 4).fabric == Fabric::kHostStaged);
  CHECK(scope("{device: h100_pcie_80, devices_per_node: 2, intra_node: nvlink_pairs}", 2).fabric ==
        Fabric::kBridgedPairs);
  const ClusterScope one = scope("{device: t4, nodes: 4, inter_node: ethernet}", 4);
  CHECK_FALSE(one.fabric);
  CHECK(one.network->kind == NetworkKind::kTcp);
}

TEST_CASE("a network whose rate and latency are given: its kind is told from the latency") {
  const ClusterScope s = scope(
      "{device: a100_sxm4_80, devices_per_node: 8, nodes: 2, inter_node: {links: 8, rate: 200 "
      "Gbit/s, latency: 5 us}}",
      16);
  CHECK(s.network->kind == NetworkKind::kRoce);
  CHECK(s.network->node_rate.gb_per_s() == Approx(200));
  CHECK(s.notes.size() == 1);
}

TEST_CASE("an unnamed network beyond what the kernel's TCP carries is a cloud's own") {
  const auto kind = [](const char* rate) {
    return scope(fmt::format("{{device: t4, nodes: 2, inter_node: {{rate: {}, latency: 20 us}}}}",
                             rate),
                 2)
        .network->kind;
  };
  CHECK(kind("100 Gbit/s") == NetworkKind::kTcp);
  CHECK(kind("400 Gbit/s") == NetworkKind::kEfa);
}

TEST_CASE("what a calibration does not apply to is said") {
  const auto message = [](const Status& status) { return to_string(status.error()); };
  const Calibration h100 = calibration_for("h100_sxm5_80")->calibration;
  const ClusterScope pcie =
      scope("{device: h100_sxm5_80, devices_per_node: 4, intra_node: pcie}", 4);
  CHECK(message(suits(h100, pcie))
            .find("connected by nvswitch, but the cluster connects them by host_staged") !=
        std::string::npos);
  const ClusterScope torus = scope(
      "{device: h100_sxm5_80, nodes: 16, inter_node: {kind: torus, dimensions: [4, 4], rate: 50 "
      "GB/s, latency: 1 us}}",
      16);
  CHECK_FALSE(torus.network);
  CHECK(message(suits(h100, torus)).find("not connected by NICs") != std::string::npos);

  const auto error = [](const Result<ClusterScope>& found) { return to_string(found.error()); };
  const cluster::Cluster two = read("{device: h100_sxm5_80, devices_per_node: 8, nodes: 2}");
  CHECK(
      error(scope_of(two, first(12))).find("8 of the ranks are on node 'node0' and 4 on 'node1'") ==
      0);
  CHECK(error(scope_of(two, first(1))).find("a collective on 1 rank has no communication") == 0);
}

}  // namespace
}  // namespace rehearse::comm
