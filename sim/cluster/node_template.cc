#include "sim/cluster/node_template.h"

#include <fmt/core.h>

#include "sim/cluster/v100_cube.h"

namespace rehearse::cluster {
namespace {

constexpr std::uint32_t kMostInMesh = 32;

struct Sockets {
  std::uint32_t hosts;
  bool joined;
  std::uint32_t devices_per_pcie_switch;
};

Sockets sockets_of(const NodeTemplate& node) {
  // Two bridged pairs of A100 and of H100 exchange at 0.75 of the nominal rate of PCIe (23.6 and
  // 47.5 GB/s), which no link between two sockets of their time carries.
  const bool two_pairs = node.kind == NodeKind::kNvlinkPairs && node.devices == 4;
  if (node.devices < 4 || two_pairs) return {1, false, 1};
  const std::uint32_t share = node.kind == NodeKind::kPcie ? 4 : 2;
  if (node.devices <= 16) return {2, true, node.devices == 4 ? 2 : share};
  return {(node.devices + 3) / 4, false, 2};
}

LinkType halved(LinkType type) {
  type.latency = type.latency / 2;
  return type;
}

}  // namespace

Status check_node(const NodeTemplate& node) {
  const auto bad = [](std::string problem, std::string expected) {
    return fail(Diagnostic{
        .key = "devices", .problem = std::move(problem), .expected = std::move(expected)});
  };
  if (node.devices < 1 || node.devices > kMostDevicesPerNode)
    return bad("out of range", fmt::format("1 to {}", kMostDevicesPerNode));
  if (node.kind == NodeKind::kHybridCubeMesh && node.devices > kV100Cube.size())
    return bad("a hybrid cube mesh has 8 devices at most", "1 to 8, or another kind");
  if (node.kind == NodeKind::kNvlinkPairs && node.devices % 2 == 1)
    return bad("pairs of an odd number of devices", "an even number");
  if (node.kind == NodeKind::kMesh && node.devices > kMostInMesh)
    return bad(fmt::format("a mesh has {} devices at most", kMostInMesh), "fewer, or another kind");
  return {};
}

NodeLinks add_node_links(ClusterBuilder& builder, const NodeTemplate& node) {
  NodeLinks links{.pcie = builder.add_once(halved(node.pcie)),
                  .sockets = builder.add_once(node.sockets)};
  if (node.kind == NodeKind::kPcie || !node.link || node.devices == 1) return links;
  links.link = builder.add_once(node.kind == NodeKind::kNvswitch ? halved(*node.link) : *node.link);
  if (node.double_link && node.kind == NodeKind::kHybridCubeMesh)
    links.double_link = builder.add_once(*node.double_link);
  return links;
}

AddedNode add_node(ClusterBuilder& builder, const NodeTemplate& node, const NodeLinks& links,
                   std::uint32_t number, std::uint32_t nics) {
  const std::string name = fmt::format("node{}", number);
  const NodeId id = builder.add_node(name, node.store);
  const auto add = [&](VertexKind kind, const char* what, std::uint32_t i) {
    return builder.add({.name = fmt::format("{}/{}{}", name, what, i), .kind = kind, .node = id});
  };
  AddedNode added;
  std::vector<VertexId> devices;
  for (std::uint32_t i = 0; i < node.devices; ++i) {
    const DeviceId device = builder.add_device(id, fmt::format("{}/gpu{}", name, i), node.device);
    builder.set_forwards(device, node.forward);
    added.devices.push_back(device);
    devices.push_back(builder.vertex_of(device));
  }
  const Sockets sockets = sockets_of(node);
  std::vector<VertexId> hosts, switches;
  for (std::uint32_t i = 0; i < sockets.hosts; ++i)
    hosts.push_back(add(VertexKind::kHost, "cpu", i));
  if (sockets.joined) builder.connect(hosts[0], hosts[1], links.sockets);
  const std::uint32_t per = sockets.devices_per_pcie_switch;
  const std::uint32_t count = (node.devices + per - 1) / per;
  for (std::uint32_t i = 0; i < count; ++i) {
    switches.push_back(add(VertexKind::kSwitch, "pcie", i));
    builder.connect(switches[i], hosts[i * sockets.hosts / count], links.pcie);
  }
  for (std::uint32_t i = 0; i < node.devices; ++i)
    builder.connect(devices[i], switches[i / per], links.pcie);
  for (std::uint32_t i = 0; i < nics; ++i) {
    added.nics.push_back(add(VertexKind::kNic, "nic", i));
    builder.connect(added.nics.back(), switches[std::size_t{i} * count / nics], links.pcie);
  }
  if (!links.link) return added;

  const auto join = [&](std::uint32_t a, std::uint32_t b, std::uint32_t type) {
    builder.connect(devices[a], devices[b], type);
  };
  switch (node.kind) {
    case NodeKind::kPcie: break;
    case NodeKind::kNvlinkPairs:
      for (std::uint32_t i = 0; i < node.devices; i += 2) join(i, i + 1, *links.link);
      break;
    case NodeKind::kHybridCubeMesh:
      for (std::uint32_t a = 0; a < node.devices; ++a)
        for (std::uint32_t b = a + 1; b < node.devices; ++b)
          if (kV100Cube[a][b] > 0)
            join(a, b,
                 kV100Cube[a][b] == 2 ? links.double_link.value_or(*links.link) : *links.link);
      break;
    case NodeKind::kNvswitch: {
      const VertexId crossbar = builder.add(
          {.name = name + "/nvswitch", .kind = VertexKind::kSwitch, .node = id, .spread = true});
      for (const VertexId device : devices) builder.connect(device, crossbar, *links.link);
      break;
    }
    case NodeKind::kMesh:
      for (std::uint32_t a = 0; a < node.devices; ++a)
        for (std::uint32_t b = a + 1; b < node.devices; ++b) join(a, b, *links.link);
      break;
  }
  return added;
}

}  // namespace rehearse::cluster
