// Clusters of known shapes: kinds of nodes times a kind of fabric.
//
// Latencies of link types are end to end. If a path of that kind crosses a switch (device –
// NVSwitch – device, device – PCIe switch – host, NIC – switch – NIC), each of its two links has
// half of it. A link between switches has kSwitchHop.
//
// A single switch, and each switch of rails or regions, has as many ports as it needs and never
// blocks. Use a fat tree for a network that blocks. The links of a fat tree from a switch to the level
// above, and of a rail to the spines, are one trunk of their total rate: adaptive routing spreads the
// packets of every message over all of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/cluster/cluster.h"

namespace rehearse::cluster {

/// A message through one more InfiniBand switch (0.1 to 0.3 us).
inline constexpr Seconds kSwitchHop = Seconds::us(0.13);

enum class NodeKind : std::uint8_t {
  kPcie,            ///< nothing but PCIe
  kNvlinkPairs,     ///< devices 2 i and 2 i + 1 joined by a bridge
  kHybridCubeMesh,  ///< DGX-1: up to 8; of a V100 some pairs have two links
  kNvswitch,        ///< each device one link up and down
  kMesh,            ///< each device linked with each other
};
inline constexpr std::array<std::string_view, 5> kNodeKindNames = {
    "pcie", "nvlink_pairs", "hybrid_cube_mesh", "nvswitch", "mesh"};

/// Devices are on PCIe switches (of one device each in nodes of up to 3 and of two pairs, else of 4
/// in PCIe-only nodes and of 2 elsewhere), and these on the hosts: one socket for up to 3
/// devices and for two pairs, two joined for up to 16, one per four devices and not joined for more (a rack of
/// trays). NICs are on the PCIe switches in turn.
struct NodeTemplate {
  NodeKind kind;
  std::string device;  ///< model
  std::uint32_t devices;
  std::optional<LinkType> link;  ///< between devices; absent for kPcie
  /// For pairs with two links (kHybridCubeMesh of V100).
  std::optional<LinkType> double_link = std::nullopt;
  LinkType pcie;
  LinkType sockets;
  bool forward = false;  ///< devices forward messages (NCCL's PXN and NVB)
  HostStore store = {};
};

enum class FabricKind : std::uint8_t { kSwitch, kRails, kFatTree, kDragonfly, kTorus, kWan };
inline constexpr std::array<std::string_view, 6> kFabricKindNames = {
    "switch", "rails", "fat_tree", "dragonfly", "torus", "wan"};

struct FabricTemplate {
  FabricKind kind;
  LinkType link;            ///< between a NIC and a switch, and between switches
  std::uint32_t links = 1;  ///< NICs per node, unless its group states them
  /// Rails: spine switches. If there are any, every rail has a link to them for each node.
  std::uint32_t spines = 0;
  /// Fat tree: levels of switches, and ports of each.
  std::uint32_t levels = 2;
  std::uint32_t radix = 64;
  /// Rails with spines, and the lowest level of a fat tree: links down per link up.
  double oversubscription = 1;
  /// Dragonfly: the number of groups of routers. Routers of a group are fully connected, and one
  /// link joins every two groups.
  std::uint32_t groups = 0;
  std::uint32_t routers = 0;
  /// Torus: of all devices, which then forward, or of the nodes' switches.
  std::vector<std::uint32_t> dimensions = {};
  /// WAN: regions with equal numbers of nodes, each around a switch; every two are joined by a
  /// `wan` link.
  std::uint32_t regions = 2;
  std::optional<LinkType> wan = std::nullopt;
};

struct NodeNics {
  LinkType link;
  std::uint32_t count;
};

/// If a node has a multiple of NICs per device, those of a device count as one with their total
/// rate (32 of 100 Gbit/s on 8 devices: 8 of 400), because messages of a device are striped over
/// them, as in aws-ofi-nccl.
NodeNics striped(NodeNics nics, std::uint32_t devices);

/// Nodes that are alike.
struct NodeGroup {
  NodeTemplate node;
  std::uint32_t nodes = 1;
  std::optional<NodeNics> nics = std::nullopt;  ///< per node; absent: those of the fabric
};

struct ClusterTemplate {
  std::vector<NodeGroup> groups;  ///< in the order in which their nodes are numbered
  std::optional<FabricTemplate> fabric = std::nullopt;
};

inline constexpr std::uint32_t kMostDevicesPerNode = 576;
inline constexpr std::uint32_t kMostDevices = 131'072;

/// The cluster, to which routes and changes may be added. Fails if the numbers are inconsistent,
/// such as a fat tree with too few ports; the diagnostic's key is the member's name.
Result<ClusterBuilder> make_cluster(const ClusterTemplate&);

}  // namespace rehearse::cluster
