#include "sim/cluster/templates.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include <fmt/core.h>

#include "sim/cluster/node_template.h"

namespace rehearse::cluster {
namespace {

/// The endpoints of the fabric.
struct Ends {
  std::vector<std::vector<VertexId>> nics;  ///< by node; none where the devices are joined
  std::vector<std::uint32_t> nic_types;     ///< by node: the link of a NIC to its switch
  std::vector<DeviceId> devices;
};

/// Counts over the whole cluster.
struct EndCounts {
  std::uint32_t nodes = 0;
  std::uint64_t devices = 0, nics = 0;
};

/// Ports of a switch of the lowest level of a fat tree.
struct LeafPorts {
  std::uint32_t down, up;
};

LeafPorts leaf_ports(const FabricTemplate& f) {
  const auto up = static_cast<std::uint32_t>(f.radix / (1 + f.oversubscription));
  return {static_cast<std::uint32_t>(up * f.oversubscription + 1e-9), up};
}

std::uint64_t product(const std::vector<std::uint32_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{1},
                         [](std::uint64_t a, std::uint32_t b) {
                           return std::min(a * b, std::uint64_t{kMostDevices} + 1);
                         });
}

class FabricBuilder {
 public:
  FabricBuilder(ClusterBuilder& builder, const FabricTemplate& fabric, const Ends& ends)
      : builder_(builder), f_(fabric), ends_(ends) {}

  void build() {
    switch (f_.kind) {
      case FabricKind::kSwitch: {
        const VertexId all = add_switch("switch");
        for (std::size_t node = 0; node < ends_.nics.size(); ++node)
          for (const VertexId nic : ends_.nics[node]) attach({nic, node}, all);
        break;
      }
      case FabricKind::kRails: return rails();
      case FabricKind::kFatTree: return fat_tree();
      case FabricKind::kDragonfly: return dragonfly();
      case FabricKind::kTorus: return torus();
      case FabricKind::kWan: return wan();
    }
  }

 private:
  VertexId add_switch(std::string name) {
    return builder_.add({.name = std::move(name), .kind = VertexKind::kSwitch});
  }
  std::vector<VertexId> add_switches(const char* name, std::size_t count) {
    std::vector<VertexId> added;
    for (std::size_t i = 0; i < count; ++i)
      added.push_back(add_switch(fmt::format("{}{}", name, i)));
    return added;
  }

  struct Nic {
    VertexId vertex;
    std::size_t node;
  };
  void attach(const Nic& nic, VertexId to) {
    builder_.connect(nic.vertex, to, ends_.nic_types[nic.node]);
  }

  /// Joins two switches by one link with the rate of this many.
  void trunk(VertexId a, VertexId b, double links = 1) {
    LinkType type = f_.link;
    type.name += links == 1 ? "_between_switches" : fmt::format("_x{:g}", links);
    type.rate = type.rate * links;
    type.latency = kSwitchHop;
    type.message = {};  // of NICs alone
    builder_.connect(a, b, builder_.add_once(std::move(type)));
  }

  std::vector<Nic> all_nics() const {
    std::vector<Nic> all;
    for (std::size_t node = 0; node < ends_.nics.size(); ++node)
      for (const VertexId nic : ends_.nics[node]) all.push_back({nic, node});
    return all;
  }

  void rails() {
    std::size_t most = 0;
    for (const auto& nics : ends_.nics) most = std::max(most, nics.size());
    const std::vector<VertexId> rails = add_switches("rail", most);
    for (std::size_t node = 0; node < ends_.nics.size(); ++node)
      for (std::size_t i = 0; i < ends_.nics[node].size(); ++i)
        attach({ends_.nics[node][i], node}, rails[i]);
    if (f_.spines == 0) return;
    const VertexId spine = add_switch("spine");
    for (const VertexId rail : rails)
      trunk(rail, spine, static_cast<double>(ends_.nics.size()) / f_.oversubscription);
  }

  /// Blocks of switches with free ports up; each level joins blocks into larger ones. The level
  /// that joins all blocks leaves no port up free.
  void fat_tree() {
    struct Block {
      VertexId top;     // all switches of its highest level
      double links_up;  // their free ports
    };
    const std::vector<Nic> nics = all_nics();
    const LeafPorts ports = leaf_ports(f_);
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < nics.size(); ++i) {
      if (i % ports.down == 0)
        blocks.push_back({add_switch(fmt::format("leaf{}", blocks.size())), 1.0 * ports.up});
      attach(nics[i], blocks.back().top);
    }
    std::size_t number = 0;
    for (std::uint32_t level = 2; level <= f_.levels && blocks.size() > 1; ++level) {
      const std::size_t half = f_.radix / 2;
      const bool top = level == f_.levels || blocks.size() <= half;
      const std::size_t together = top ? blocks.size() : half;
      std::vector<Block> larger;
      for (std::size_t first = 0; first < blocks.size(); first += together) {
        const VertexId above = add_switch(top ? "spine" : fmt::format("middle{}", number++));
        for (std::size_t b = first; b < std::min(first + together, blocks.size()); ++b)
          trunk(blocks[b].top, above, blocks[b].links_up);
        larger.push_back({above, blocks[first].links_up * static_cast<double>(half)});
      }
      blocks = std::move(larger);
    }
  }

  void dragonfly() {
    const std::vector<Nic> nics = all_nics();
    const std::uint32_t groups = f_.groups, per_group = f_.routers;
    const std::vector<VertexId> routers = add_switches("router", groups * per_group);
    const std::size_t share = (nics.size() + routers.size() - 1) / routers.size();
    for (std::size_t i = 0; i < nics.size(); ++i) attach(nics[i], routers[i / share]);
    for (std::uint32_t g = 0; g < groups; ++g)
      for (std::uint32_t a = 0; a < per_group; ++a)
        for (std::uint32_t b = a + 1; b < per_group; ++b)
          trunk(routers[g * per_group + a], routers[g * per_group + b]);
    // The links of a group to the others, in order of distance, are distributed over its routers.
    const std::uint32_t each = std::max(1U, (groups - 1 + per_group - 1) / per_group);
    const auto gateway = [&](std::uint32_t from, std::uint32_t to) {
      return routers[from * per_group + ((to + groups - from) % groups - 1) / each];
    };
    for (std::uint32_t a = 0; a < groups; ++a)
      for (std::uint32_t b = a + 1; b < groups; ++b) trunk(gateway(a, b), gateway(b, a));
  }

  void torus() {
    std::vector<VertexId> places;
    std::function<void(VertexId, VertexId)> join;
    if (ends_.nics.front().empty()) {
      const std::uint32_t type = builder_.add(f_.link);
      for (const DeviceId device : ends_.devices) {
        builder_.set_forwards(device, true);
        places.push_back(builder_.vertex_of(device));
      }
      join = [this, type](VertexId a, VertexId b) { builder_.connect(a, b, type); };
    } else {
      places = add_switches("switch", ends_.nics.size());
      for (std::size_t i = 0; i < places.size(); ++i)
        for (const VertexId nic : ends_.nics[i]) attach({nic, i}, places[i]);
      join = [this](VertexId a, VertexId b) { trunk(a, b); };
    }
    std::size_t stride = 1;
    for (const std::uint32_t size : f_.dimensions) {
      for (std::size_t i = 0; i < places.size(); ++i) {
        const std::size_t at = i / stride % size;
        if (at + 1 < size)
          join(places[i], places[i + stride]);
        else if (size > 2)
          join(places[i], places[i - at * stride]);
      }
      stride *= size;
    }
  }

  void wan() {
    const std::vector<VertexId> regions = add_switches("region", f_.regions);
    for (std::size_t i = 0; i < ends_.nics.size(); ++i)
      for (const VertexId nic : ends_.nics[i])
        attach({nic, i}, regions[i * regions.size() / ends_.nics.size()]);
    const std::uint32_t type = builder_.add(*f_.wan);
    for (std::size_t a = 0; a < regions.size(); ++a)
      for (std::size_t b = a + 1; b < regions.size(); ++b)
        builder_.connect(regions[a], regions[b], type);
  }

  ClusterBuilder& builder_;
  const FabricTemplate& f_;
  const Ends& ends_;
};

tl::unexpected<Error> bad(const char* key, std::string problem, std::string expected) {
  return fail(
      Diagnostic{.key = key, .problem = std::move(problem), .expected = std::move(expected)});
}

Status check_fat_tree(const FabricTemplate& f, std::uint64_t nics) {
  if (f.levels < 1 || f.levels > 4) return bad("levels", "out of range", "1 to 4");
  if (f.radix < 2 || f.radix > 1024) return bad("radix", "out of range", "2 to 1024 ports");
  const LeafPorts ports = leaf_ports(f);
  if (ports.up < 1 || ports.down < 1)
    return bad("oversubscription", "leaves no switch port for one of the directions",
               "between 1 / (radix - 1) and radix - 1");
  std::uint64_t blocks = (nics + ports.down - 1) / ports.down;
  std::uint64_t most = ports.down;
  for (std::uint32_t level = 2; level <= f.levels; ++level) {
    const std::uint64_t together = level == f.levels ? f.radix : f.radix / 2;
    blocks = (blocks + together - 1) / together;
    most *= together;
  }
  if (blocks > 1)
    return bad("levels", fmt::format("the tree has ports for {} of {} NICs", most, nics),
               "more levels, or switches of a larger radix");
  return {};
}

Status check_dragonfly(const FabricTemplate& f, std::uint64_t nics) {
  if (f.groups < 2 || f.groups > 1024) return bad("groups", "out of range", "2 to 1024");
  if (f.routers < 1 || f.routers > 64) return bad("routers", "out of range", "1 to 64 in a group");
  if (std::uint64_t{f.groups} * f.routers > nics)
    return bad("groups", fmt::format("{} routers for {} NICs", f.groups * f.routers, nics),
               "at least one NIC per router");
  return {};
}

/// The link between a NIC and its switch: half of the latency between two NICs.
LinkType link_of_nic(LinkType type) {
  type.latency = type.latency / 2;
  return type;
}

/// Whether nodes are joined by NICs; otherwise the devices themselves are. Fails if the numbers of
/// the template are inconsistent.
Result<bool> check_fabric(const FabricTemplate& f, const EndCounts& counts) {
  const auto [nodes, devices, nics] = counts;
  if (f.links < 1 || f.links > kMostDevicesPerNode)
    return bad("links", "out of range", fmt::format("1 to {} NICs of a node", kMostDevicesPerNode));
  if (nics > kMostDevices)
    return bad("links", fmt::format("{} NICs in all", nics), fmt::format("up to {}", kMostDevices));
  if (!(f.oversubscription >= 0.01 && f.oversubscription <= 100))
    return bad("oversubscription", "out of range", "0.01 to 100 links down per link up");
  Status ok;
  switch (f.kind) {
    case FabricKind::kSwitch: break;
    case FabricKind::kRails:
      if (f.spines > 1024) return bad("spines", "out of range", "0 to 1024");
      break;
    case FabricKind::kFatTree: ok = check_fat_tree(f, nics); break;
    case FabricKind::kDragonfly: ok = check_dragonfly(f, nics); break;
    case FabricKind::kTorus: {
      if (f.dimensions.empty() || f.dimensions.size() > 6)
        return bad("dimensions", "out of range", "1 to 6 sizes");
      const std::uint64_t places = product(f.dimensions);
      if (places == devices) return false;
      if (places != nodes)
        return bad("dimensions", fmt::format("the torus has {} places", places),
                   devices == nodes
                       ? fmt::format("a product of {} devices", devices)
                       : fmt::format("a product of {} nodes or {} devices", nodes, devices));
      break;
    }
    case FabricKind::kWan:
      if (f.regions < 2 || f.regions > 64 || f.regions > nodes)
        return bad("regions", "out of range", fmt::format("2 to {}", std::min(nodes, 64U)));
      if (!f.wan) return bad("wan", "is missing", "wan: {rate: 5 Gbit/s, latency: 40 ms}");
      break;
  }
  TRY(ok);
  return true;
}

/// REQUIRES: check_fabric succeeded.
void add_fabric(ClusterBuilder& builder, const FabricTemplate& fabric, const Ends& ends) {
  FabricBuilder(builder, fabric, ends).build();
}

}  // namespace

NodeNics striped(NodeNics nics, std::uint32_t devices) {
  if (nics.count <= devices || nics.count % devices != 0) return nics;
  const std::uint32_t together = nics.count / devices;
  nics.link.rate = nics.link.rate * together;
  // Each NIC carries a part.
  nics.link.message.half_rate_size = nics.link.message.half_rate_size * together;
  nics.link.name += fmt::format(", {} together", together);
  nics.count = devices;
  return nics;
}

Result<ClusterBuilder> make_cluster(const ClusterTemplate& t) {
  EndCounts counts;
  for (const NodeGroup& group : t.groups) {
    TRY(check_node(group.node));
    const std::uint64_t most = (kMostDevices - counts.devices) / group.node.devices;
    if (group.nodes < 1 || group.nodes > most)
      return fail(Diagnostic{
          .key = "nodes",
          .problem = "out of range",
          .expected = fmt::format("{}{} devices in all",
                                  most > 0 ? fmt::format("1 to {}, for ", most) : "at most ",
                                  kMostDevices)});
    counts.nodes += group.nodes;
    counts.devices += std::uint64_t{group.nodes} * group.node.devices;
    if (t.fabric)
      counts.nics +=
          std::uint64_t{group.nodes} * (group.nics ? group.nics->count : t.fabric->links);
  }
  bool by_nics = false;
  if (t.fabric) {
    by_nics = TRY(check_fabric(*t.fabric, counts));
  } else if (counts.nodes > 1) {
    return fail(
        Diagnostic{.key = "fabric",
                   .problem = "is missing",
                   .expected = fmt::format("the network between the {} nodes", counts.nodes)});
  }
  ClusterBuilder builder;
  Ends ends;
  std::uint32_t number = 0;
  for (const NodeGroup& group : t.groups) {
    const NodeLinks links = add_node_links(builder, group.node);
    const std::uint32_t nics = !by_nics ? 0 : group.nics ? group.nics->count : t.fabric->links;
    for (std::uint32_t i = 0; i < group.nodes; ++i) {
      AddedNode node = add_node(builder, group.node, links, number++, nics);
      ends.nics.push_back(std::move(node.nics));
      ends.devices.insert(ends.devices.end(), node.devices.begin(), node.devices.end());
    }
    if (!by_nics) continue;
    const LinkType& link = group.nics ? group.nics->link : t.fabric->link;
    ends.nic_types.insert(ends.nic_types.end(), group.nodes, builder.add_once(link_of_nic(link)));
  }
  if (t.fabric) add_fabric(builder, *t.fabric, ends);
  return builder;
}

}  // namespace rehearse::cluster
