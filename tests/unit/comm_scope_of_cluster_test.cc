#include <catch2/catch.hpp>

#include "models/comm/scope_of_cluster.h"
#include "models/comm/slower_links.h"
#include "models/comm/transfer.h"
#include "models/job/group_network.h"
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

// 200 Gbit/s and 8 us from NIC to NIC, three times as slow, are 66.7 Gbit/s and more than 10 us:
// the kind would be assumed to be another, if the cluster did not keep it.
TEST_CASE("a slower network has the same kind, and nodes stay as they are") {
  for (const char* section :
       {"{device: a100_sxm4_80, devices_per_node: 8, nodes: 2, inter_node: {links: 8, rate: 200 "
        "Gbit/s, latency: 5 us}}",
        "{device: h100_sxm5_80, devices_per_node: 8, nodes: 4}",
        "{device: h100_sxm5_80, devices_per_node: 8, nodes: 2, inter_node: {links: 8, rate: 400 "
        "Gbit/s, latency: 15 us, network: efa}}"}) {
    INFO(section);
    const cluster::Cluster usual = read(section), slower = with_slower_links(usual, {.between = 3});
    const Result<ClusterScope> before = scope_of(usual, first(16)),
                               after = scope_of(slower, first(16));
    REQUIRE(after);
    CHECK(after->network->kind == before->network->kind);
    CHECK(after->network->node_rate / before->network->node_rate == Approx(1 / 3.));
    CHECK(after->network->latency > before->network->latency);
    CHECK(after->network->step_scale == Approx(3));
    CHECK(after->fabric == before->fabric);
    CHECK_FALSE(after->link_of_their_own);
    const auto within = [](const cluster::Cluster& c) { return c.route(DeviceId(0), DeviceId(1)); };
    CHECK(within(slower).path.rate == within(usual).path.rate);
    CHECK(within(slower).hops == within(usual).hops);
    const cluster::Cluster back = with_slower_links(slower, {.between = 1 / 3.});
    CHECK(back.route(DeviceId(0), DeviceId(9)).path.rate.gb_per_s() ==
          Approx(usual.route(DeviceId(0), DeviceId(9)).path.rate.gb_per_s()));
  }
}

TEST_CASE("slower links within a node: calibrated collectives take that many times as long") {
  const cluster::Cluster usual = read("{device: a100_sxm4_80, devices_per_node: 8, nodes: 2}");
  const cluster::Cluster slower = with_slower_links(usual, {.within = 1.5});
  const job::Rules rules{.calibrated = true};
  job::Schedules as_usual(usual, rules), when_slower(slower, rules);
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllToAll})
    for (const Bytes size : {Bytes::kib(8), Bytes::mib(64)}) {
      const auto price = [&](job::Schedules& of, std::uint32_t ranks) {
        const auto schedule = of.of(kind, first(ranks));
        REQUIRE(schedule);
        CHECK(schedule->calibrated);
        return schedule->price(size);
      };
      const Estimate<Seconds> before = price(as_usual, 4), after = price(when_slower, 4);
      CHECK(after.value / before.value == Approx(1.5));
      CHECK(after.high / before.high == Approx(1.5));
      // Between nodes the part within them is slower, too.
      const double ratio = price(when_slower, 16).value / price(as_usual, 16).value;
      CHECK(ratio >= 1 - 1e-9);
      CHECK(ratio < 1.5);
    }
}

TEST_CASE("a network with given rate and latency: its kind follows from the latency") {
  const ClusterScope s = scope(
      "{device: a100_sxm4_80, devices_per_node: 8, nodes: 2, inter_node: {links: 8, rate: 200 "
      "Gbit/s, latency: 5 us}}",
      16);
  CHECK(s.network->kind == NetworkKind::kRoce);
  CHECK(s.network->node_rate.gb_per_s() == Approx(200));
  CHECK(s.notes.size() == 1);
}

TEST_CASE("an unnamed network faster than TCP is assumed to be EFA") {
  const auto kind = [](const char* rate) {
    return scope(fmt::format("{{device: t4, nodes: 2, inter_node: {{rate: {}, latency: 20 us}}}}",
                             rate),
                 2)
        .network->kind;
  };
  CHECK(kind("100 Gbit/s") == NetworkKind::kTcp);
  CHECK(kind("400 Gbit/s") == NetworkKind::kEfa);
}

TEST_CASE("the kind of a network follows from all NICs of a node, however they are counted") {
  const auto on = [](const char* inter_node) {
    return scope(fmt::format("{{device: h100_sxm5_80, devices_per_node: 8, nodes: 2, inter_node: "
                             "{{latency: 15 us, {}}}}}",
                             inter_node),
                 16);
  };
  const ClusterScope few = on("links: 8, rate: 400 Gbit/s"),
                     many = on("links: 32, rate: 100 Gbit/s");
  for (const ClusterScope& s : {few, many}) {
    CHECK(s.network->kind == NetworkKind::kEfa);
    CHECK(s.network->node_rate.gb_per_s() == Approx(400));
    CHECK(s.network->part == 1);
    REQUIRE(s.notes.size() == 1);
    CHECK(s.notes[0].find("assumed to be efa, from its latency and the total rate") !=
          std::string::npos);
  }
  const auto price = [](const ClusterScope& s, CollectiveKind kind) {
    return CollectiveCost::resolve(
               *calibration_for(s.device),
               {.kind = kind, .ranks = s.ranks, .nodes = s.nodes, .network = s.network})
        ->seconds(25e6);
  };
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kAllToAll})
    CHECK(price(many, kind) == Approx(price(few, kind)).epsilon(0.01));
  // Eight of 10 Gbit/s are no more than one of 80.
  CHECK(on("links: 8, rate: 10 Gbit/s").network->kind == NetworkKind::kTcp);
}

TEST_CASE("a stated kind of network is not replaced by an assumption") {
  const auto on = [](const char* node, const char* inter_node, std::uint32_t ranks = 16) {
    return scope(fmt::format("{{{}, inter_node: {{{}}}}}", node, inter_node), ranks);
  };
  constexpr const char* kNode = "device: a100_sxm4_80, devices_per_node: 8, nodes: 2";
  constexpr const char* kGiven = "links: 4, rate: 100 Gbit/s, latency: 5 us, network: ";
  for (std::size_t kind = 0; kind < kNetworkNames.size(); ++kind) {
    const std::string stated = kGiven + std::string(kNetworkNames[kind]);
    const ClusterScope s = on(kNode, stated.c_str());
    CHECK(s.network->kind == static_cast<NetworkKind>(kind));
    CHECK(s.notes.empty());
  }
  CHECK(on(kNode, "network: efa").network->kind == NetworkKind::kEfa);
  // An instance and a link of the catalog state theirs, also with another rate and latency.
  const ClusterScope rented = on("instance: p4d.24xlarge, count: 2", "rate: 5 GB/s, latency: 5 us");
  CHECK(rented.network->kind == NetworkKind::kEfa);
  CHECK(rented.notes.empty());
  const ClusterScope cabled = on(kNode, "link: opa_100, rate: 10 GB/s, latency: 20 us");
  CHECK(cabled.network->kind == NetworkKind::kOmniPath);
  CHECK(cabled.notes.empty());
}

TEST_CASE("a group has its share of the node's NICs") {
  const cluster::Cluster cluster = read("{instance: p5.48xlarge, count: 4}");
  const Result<ClusterScope> column =
      scope_of(cluster, std::vector<DeviceId>{DeviceId(0), DeviceId(1), DeviceId(8), DeviceId(9)});
  REQUIRE(column);
  CHECK(column->network->part == 0.25);
  CHECK(column->network->node_rate.gb_per_s() == Approx(100));
}

TEST_CASE("cases outside a calibration are reported") {
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
