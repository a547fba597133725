// Each kind of node and of fabric: how many devices and links, and hand-chosen routes.
//
// Link types of these tests: PCIe 12 GB/s, 1 us; sockets 10 GB/s, 0.5 us; NVLink 100 GB/s, 2 us;
// network 20 GB/s, 4 us. Over a switch a link has half of the latency (templates.h).
#include <array>
#include <set>

#include <catch2/catch.hpp>

#include "sim/cluster/templates.h"
#include "tests/support/cluster_ways.h"
#include "tests/support/static_fat_tree.h"

namespace rehearse::cluster {
namespace {

using test::built;
using test::link_type;
using test::way;

NodeTemplate node_of(NodeKind kind, std::uint32_t devices) {
  return {.kind = kind,
          .device = "gpu",
          .devices = devices,
          .link = link_type("nvlink", 100, 2),
          .pcie = link_type("pcie", 12, 1),
          .sockets = link_type("sockets", 10, 0.5)};
}

FabricTemplate fabric_of(FabricKind kind, std::uint32_t links) {
  return {.kind = kind, .link = link_type("net", 20, 4), .links = links};
}

Cluster one_node(NodeTemplate node) { return built(make_cluster({.groups = {{std::move(node)}}})); }

Cluster cluster_of(NodeTemplate node, std::uint32_t nodes, FabricTemplate fabric) {
  return built(make_cluster({.groups = {{std::move(node), nodes}}, .fabric = std::move(fabric)}));
}

void check_path(const Cluster& c, std::uint32_t from, std::uint32_t to, double latency_us,
                double gb_per_s) {
  const PointToPoint path = c.route(DeviceId(from), DeviceId(to)).path;
  CHECK(path.latency.us() == Approx(latency_us));
  CHECK(path.rate.gb_per_s() == Approx(gb_per_s));
}

std::string error_of(const ClusterTemplate& t) {
  const Result<ClusterBuilder> made = make_cluster(t);
  REQUIRE_FALSE(made);
  return to_string(made.error());
}

TEST_CASE("a single GPU is connected to a root complex and a host") {
  const Cluster c = one_node(node_of(NodeKind::kNvswitch, 1));
  CHECK(c.devices().size() == 1);
  CHECK(c.links().size() == 2);
  const auto to_host = c.route_to(DeviceId(0), VertexId(1));
  REQUIRE(to_host);
  CHECK(way(c, 0, *to_host) == "node0/gpu0 node0/pcie0 node0/cpu0");
  CHECK(to_host->path.latency.us() == Approx(1));  // the whole latency of PCIe
}

TEST_CASE("a PCIe box: four devices per switch, two sockets") {
  // Links: 8 devices + 2 switches to hosts + 1 between sockets.
  const Cluster c = one_node(node_of(NodeKind::kPcie, 8));
  CHECK(c.devices().size() == 8);
  CHECK(c.links().size() == 11);
  CHECK(way(c, 0, 3) == "node0/gpu0 node0/pcie0 node0/gpu3");
  check_path(c, 0, 3, 1, 12);  // 2 x 0.5
  CHECK(way(c, 0, 4) == "node0/gpu0 node0/pcie0 node0/cpu0 node0/cpu1 node0/pcie1 node0/gpu4");
  check_path(c, 0, 4, 2.5, 10);  // 4 x 0.5 + 0.5
}

TEST_CASE("NVLink pairs: a bridge within the pair, PCIe between pairs") {
  const Cluster c = one_node(node_of(NodeKind::kNvlinkPairs, 4));
  CHECK(c.links().size() == 4 + 4 + 2);
  CHECK(way(c, 2, 3) == "node0/gpu2 node0/gpu3");
  check_path(c, 2, 3, 2, 100);
  CHECK(way(c, 1, 2) == "node0/gpu1 node0/pcie1 node0/cpu0 node0/pcie2 node0/gpu2");
  CHECK(error_of({.groups = {{node_of(NodeKind::kNvlinkPairs, 3)}}})
            .find("pairs of an odd number of devices") != std::string::npos);
}

TEST_CASE("a DGX-1 with V100 has the published matrix of NVLinks") {
  // nvidia-smi topo -m of a DGX-1V: NV1 and NV2; six links per GPU.
  constexpr std::array<std::string_view, 8> kMatrix = {"01122000", "10210200", "12020010",
                                                       "21200001", "20000112", "02001021",
                                                       "00101202", "00012120"};
  NodeTemplate node = node_of(NodeKind::kHybridCubeMesh, 8);
  node.link = link_type("one", 22.5, 1.8);
  node.double_link = link_type("two", 45, 1.8);
  const Cluster c = one_node(node);
  std::array<std::array<int, 8>, 8> links{};
  for (const Link& link : c.links()) {
    const std::string& name = c.link_types()[link.type].name;
    if (name != "one" && name != "two") continue;
    // Devices are the first vertices of the node.
    const int count = name == "two" ? 2 : 1;
    links[link.a.index()][link.b.index()] += count;
    links[link.b.index()][link.a.index()] += count;
  }
  for (std::size_t a = 0; a < 8; ++a) {
    int sum = 0;
    for (std::size_t b = 0; b < 8; ++b) {
      CHECK(links[a][b] == kMatrix[a][b] - '0');
      sum += links[a][b];
    }
    CHECK(sum == 6);
  }
  check_path(c, 0, 3, 1.8, 45);
  check_path(c, 0, 1, 1.8, 22.5);
  // Without a link: over PCIe and the sockets, since devices do not forward.
  CHECK(way(c, 0, 7) == "node0/gpu0 node0/pcie0 node0/cpu0 node0/cpu1 node0/pcie3 node0/gpu7");
  node.forward = true;
  // Two double links: 0-4-7, against 0-3-7 with a single one.
  CHECK(way(one_node(node), 0, 7) == "node0/gpu0 node0/gpu4 node0/gpu7");
  node.double_link.reset();  // P100: the same pairs, one link each
  CHECK(one_node(node).links().size() == 16 + 8 + 4 + 1);
}

TEST_CASE("an NVSwitch node: one link up and one down per device") {
  const Cluster c = one_node(node_of(NodeKind::kNvswitch, 8));
  CHECK(c.links().size() == 8 + 8 + 4 + 1);
  CHECK(way(c, 0, 7) == "node0/gpu0 node0/nvswitch node0/gpu7");
  check_path(c, 0, 7, 2, 100);
  // Messages into device 7 share its one link down from every sender.
  CHECK(c.route(DeviceId(0), DeviceId(7)).hops.back() ==
        c.route(DeviceId(3), DeviceId(7)).hops.back());
}

TEST_CASE("a rack of 72 devices is one node: trays of four with a host each") {
  const Cluster c =
      cluster_of(node_of(NodeKind::kNvswitch, 72), 2, fabric_of(FabricKind::kSwitch, 72));
  CHECK(c.devices().size() == 144);
  CHECK(way(c, 0, 71) == "node0/gpu0 node0/nvswitch node0/gpu71");
  std::size_t hosts = 0;
  for (const Vertex& v : c.vertices()) hosts += v.kind == VertexKind::kHost;
  CHECK(hosts == 36);
}

TEST_CASE("a mesh joins all devices directly") {
  const Cluster c = one_node(node_of(NodeKind::kMesh, 8));
  CHECK(c.links().size() == 28 + 8 + 4 + 1);
  for (std::uint32_t b = 1; b < 8; ++b) CHECK(c.route(DeviceId(0), DeviceId(b)).hops.size() == 1);
}

TEST_CASE("one switch: each device uses its nearest NIC") {
  const Cluster c =
      cluster_of(node_of(NodeKind::kNvswitch, 8), 4, fabric_of(FabricKind::kSwitch, 8));
  CHECK(c.devices().size() == 32);
  CHECK(c.links().size() == 4 * (8 + 8 + 4 + 1 + 8) + 32);
  CHECK(way(c, 3, 8 + 6) ==
        "node0/gpu3 node0/pcie1 node0/nic3 switch node1/nic6 node1/pcie3 node1/gpu6");
  check_path(c, 3, 8 + 6, 4 * 0.5 + 2 * 2, 12);
  std::set<HopId> first;  // onto the switch: 8 devices over 8 NICs
  for (std::uint32_t i = 0; i < 8; ++i) first.insert(c.route(DeviceId(i), DeviceId(8)).hops[2]);
  CHECK(first.size() == 8);
}

TEST_CASE("rails without a spine: through devices if they forward, else through the host") {
  NodeTemplate node = node_of(NodeKind::kNvswitch, 4);
  node.forward = true;
  const Cluster pxn = cluster_of(node, 2, fabric_of(FabricKind::kRails, 4));
  CHECK(way(pxn, 1, 4 + 1) ==
        "node0/gpu1 node0/pcie0 node0/nic1 rail1 node1/nic1 node1/pcie0 node1/gpu1");
  // To the rail of the destination first.
  CHECK(way(pxn, 0, 4 + 3) ==
        "node0/gpu0 node0/nvswitch node0/gpu3 node0/pcie1 node0/nic3 rail3 "
        "node1/nic3 node1/pcie1 node1/gpu3");
  node.forward = false;
  const Cluster plain = cluster_of(node, 2, fabric_of(FabricKind::kRails, 4));
  CHECK(way(plain, 0, 4 + 3) ==
        "node0/gpu0 node0/pcie0 node0/cpu0 node0/cpu1 node0/pcie1 node0/nic3 rail3 node1/nic3 "
        "node1/pcie1 node1/gpu3");
}

TEST_CASE("rails with spines: each has the links of all of them") {
  FabricTemplate fabric = fabric_of(FabricKind::kRails, 4);
  fabric.spines = 2;
  fabric.oversubscription = 2;
  const Cluster c = cluster_of(node_of(NodeKind::kNvswitch, 4), 16, fabric);
  CHECK(c.links().size() == 16 * (4 + 4 + 2 + 1 + 4 + 4) + 4);
  // From rail 0 to rail 3 over the spines: 16 nodes / 2 = 8 links of 20 GB/s each.
  const Route route = c.route(DeviceId(0), DeviceId(7));
  CHECK(way(c, 0, 7).find("node0/nic0 rail0 spine rail3") != std::string::npos);
  CHECK(c.type(Cluster::link_of(route.hops[3])).rate.gb_per_s() == Approx(160));
}

/// Links between switches of the fabric.
std::size_t trunks(const Cluster& c) {
  std::size_t count = 0;
  for (const Link& link : c.links())
    count += !c.vertices()[link.a.index()].node && !c.vertices()[link.b.index()].node;
  return count;
}

std::size_t fabric_hops(const Cluster& c, std::uint32_t a, std::uint32_t b) {
  std::size_t count = 0;
  for (const HopId hop : c.route(DeviceId(a), DeviceId(b)).hops) {
    const Link& link = c.links()[Cluster::link_of(hop).index()];
    count += !c.vertices()[link.a.index()].node && !c.vertices()[link.b.index()].node;
  }
  return count;
}

/// The links between switches, each as many links as its rate is that of a NIC's link.
double trunk_links(const Cluster& c) {
  double links = 0;
  for (const Link& link : c.links())
    if (!c.vertices()[link.a.index()].node && !c.vertices()[link.b.index()].node)
      links += c.link_types()[link.type].rate.gb_per_s() / 20;
  return links;
}

TEST_CASE("a fat tree of two levels: oversubscription is the loss of bisection") {
  // Switches of 12 ports. 1:1: 6 down, 6 up; 48 NICs on 8 leaves, 48 links up.
  // 2:1: 8 down, 4 up; 6 leaves, 24 links up.
  FabricTemplate fabric = fabric_of(FabricKind::kFatTree, 4);
  fabric.radix = 12;
  const Cluster full = cluster_of(node_of(NodeKind::kNvswitch, 4), 12, fabric);
  CHECK(trunks(full) == 8);
  CHECK(trunk_links(full) == Approx(48));
  fabric.oversubscription = 2;
  const Cluster half = cluster_of(node_of(NodeKind::kNvswitch, 4), 12, fabric);
  CHECK(trunks(half) == 6);
  CHECK(trunk_links(half) == Approx(24));
  CHECK(fabric_hops(half, 0, 1) == 0);
  CHECK(fabric_hops(half, 0, 4) == 0);  // nodes 0 and 1 are on one leaf of 8
  CHECK(fabric_hops(half, 0, 8) == 2);
  CHECK(way(half, 0, 8) ==
        "node0/gpu0 node0/pcie0 node0/nic0 leaf0 spine leaf1 node2/nic0 node2/pcie0 node2/gpu0");
}

TEST_CASE("a fat tree of three levels: blocks of leaves, then all blocks") {
  // Switches of 4 ports: leaves of 2 links down and up, blocks of 2 leaves, 4 blocks.
  FabricTemplate fabric = fabric_of(FabricKind::kFatTree, 1);
  fabric.radix = 4;
  fabric.levels = 3;
  const Cluster c = cluster_of(node_of(NodeKind::kPcie, 1), 16, fabric);
  CHECK(trunks(c) == 8 + 4);
  CHECK(trunk_links(c) == Approx(8 * 2 + 4 * 4));
  CHECK(way(c, 0, 15).find("leaf0 middle0 spine middle3 leaf7") != std::string::npos);
  CHECK(fabric_hops(c, 0, 3) == 2);
}

TEST_CASE("a fat tree with static routing has no shared link under a shift permutation") {
  // D-mod-k routing is free of conflicts for shifts (Zahavi, 2010). Trees that are not full have
  // several links between a spine and the switch below it, up and down.
  for (const test::StaticFatTree& tree :
       {test::StaticFatTree{.nodes = 32, .levels = 2, .down = 4, .up = 4},
        {16, 2, 4, 4},
        {8, 2, 4, 4},
        {64, 2, 32, 32},
        {16, 3, 2, 2},
        {128, 3, 4, 4},
        {64, 3, 4, 4},
        {32, 3, 4, 4}}) {
    const Cluster c = tree.build();
    for (std::uint32_t shift = 1; shift < tree.nodes; ++shift) {
      INFO(tree.nodes << " nodes, leaves of " << tree.down << ", levels " << tree.levels
                      << ", shift " << shift);
      std::set<HopId> used;
      std::size_t hops = 0;
      for (std::uint32_t i = 0; i < tree.nodes; ++i)
        for (const HopId hop : c.route(DeviceId(i), DeviceId((i + shift) % tree.nodes)).hops) {
          used.insert(hop);
          ++hops;
        }
      CHECK(used.size() == hops);
    }
  }
}

TEST_CASE("a fat tree without room is an error") {
  FabricTemplate fabric = fabric_of(FabricKind::kFatTree, 8);
  fabric.radix = 8;
  CHECK(error_of({.groups = {{node_of(NodeKind::kNvswitch, 8), 5}}, .fabric = fabric}) ==
        "levels: the tree has ports for 32 of 40 NICs; more levels, or switches of a larger radix");
}

TEST_CASE("a dragonfly needs at most three hops between routers") {
  FabricTemplate fabric = fabric_of(FabricKind::kDragonfly, 1);
  fabric.groups = 9;
  fabric.routers = 4;
  const Cluster c = cluster_of(node_of(NodeKind::kPcie, 1), 72, fabric);
  CHECK(trunks(c) == 9 * 6 + 36);
  std::size_t most = 0;
  for (std::uint32_t a = 0; a < 72; ++a)
    for (std::uint32_t b = 0; b < 72; ++b) most = std::max(most, fabric_hops(c, a, b));
  CHECK(most == 3);
}

TEST_CASE("on a torus of devices the distance is Manhattan's, first dimension first") {
  FabricTemplate fabric = fabric_of(FabricKind::kTorus, 1);
  fabric.dimensions = {4, 3, 2};
  const Cluster c = cluster_of(node_of(NodeKind::kPcie, 1), 24, fabric);
  // Wires: 4 and 3 close their rings, 2 has one wire per pair.
  std::size_t wires = 0;
  for (const Link& link : c.links())
    wires += c.vertices()[link.a.index()].kind == VertexKind::kDevice &&
             c.vertices()[link.b.index()].kind == VertexKind::kDevice;
  CHECK(wires == 24 + 24 + 12);
  const auto around = [](int a, int b, int size) {
    const int d = std::abs(a - b);
    return std::min(d, size - d);
  };
  for (int a = 0; a < 24; ++a)
    for (int b = 0; b < 24; ++b) {
      const int expected =
          around(a % 4, b % 4, 4) + around(a / 4 % 3, b / 4 % 3, 3) + around(a / 12, b / 12, 2);
      CHECK(c.route(DeviceId(a), DeviceId(b)).hops.size() == static_cast<std::size_t>(expected));
    }
  // 0 is (0, 0, 0), 17 is (1, 1, 1): x, then y, then z.
  CHECK(way(c, 0, 17) == "node0/gpu0 node1/gpu0 node5/gpu0 node17/gpu0");
  check_path(c, 0, 17, 12, 20);
}

TEST_CASE("a torus of nodes joins their switches") {
  FabricTemplate fabric = fabric_of(FabricKind::kTorus, 2);
  fabric.dimensions = {3, 3};
  const Cluster c = cluster_of(node_of(NodeKind::kNvswitch, 4), 9, fabric);
  CHECK(trunks(c) == 18);
  CHECK(fabric_hops(c, 0, 4 * 4) == 2);
  fabric.dimensions = {3, 2};
  CHECK(error_of({.groups = {{node_of(NodeKind::kNvswitch, 4), 9}}, .fabric = fabric}) ==
        "dimensions: the torus has 6 places; a product of 9 nodes or 36 devices");
}

TEST_CASE("regions are joined by WAN links") {
  FabricTemplate fabric = fabric_of(FabricKind::kWan, 1);
  fabric.wan = link_type("wan", 0.5, 30000);
  const Cluster c = cluster_of(node_of(NodeKind::kPcie, 1), 4, fabric);
  CHECK(way(c, 0, 1) ==
        "node0/gpu0 node0/pcie0 node0/nic0 region0 node1/nic0 node1/pcie0 "
        "node1/gpu0");
  check_path(c, 0, 1, 2 + 4, 12);
  check_path(c, 0, 2, 2 + 4 + 30000, 0.5);
}

TEST_CASE("numbers out of range are named") {
  CHECK(error_of({.groups = {{node_of(NodeKind::kPcie, 0)}}}) == "devices: out of range; 1 to 576");
  CHECK(error_of({.groups = {{node_of(NodeKind::kHybridCubeMesh, 9)}}})
            .find("a hybrid cube mesh has 8 devices at most") != std::string::npos);
  CHECK(error_of({.groups = {{node_of(NodeKind::kPcie, 8), 2}}}) ==
        "fabric: is missing; the network between the 2 nodes");
  CHECK(error_of({.groups = {{node_of(NodeKind::kPcie, 8), 100'000}}})
            .find("nodes: out of range; 1 to 16384") == 0);
  FabricTemplate dragonfly = fabric_of(FabricKind::kDragonfly, 1);
  dragonfly.groups = 4;
  dragonfly.routers = 4;
  CHECK(error_of({.groups = {{node_of(NodeKind::kPcie, 1), 8}}, .fabric = dragonfly}) ==
        "groups: 16 routers for 8 NICs; at least one NIC per router");
}

TEST_CASE("4096 devices: rails of 512 nodes") {
  const Cluster c =
      cluster_of(node_of(NodeKind::kNvswitch, 8), 512, fabric_of(FabricKind::kRails, 8));
  CHECK(c.devices().size() == 4096);
  CHECK(c.route(DeviceId(5), DeviceId(4093)).hops.size() == 6);
}

}  // namespace
}  // namespace rehearse::cluster
