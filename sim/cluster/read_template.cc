// The forms of a cluster that name a device or an instance.
#include <array>

#include <fmt/core.h>

#include "sim/base/check.h"
#include "sim/cluster/device_links.h"
#include "sim/cluster/link_types.h"
#include "sim/cluster/read_parts.h"

namespace rehearse::cluster {
namespace {

// "nvlink": whatever NVLink is usual for the device.
constexpr std::array<std::string_view, kNodeKindNames.size() + 1> kIntraNames = {
    "pcie", "nvlink_pairs", "hybrid_cube_mesh", "nvswitch", "mesh", "nvlink"};
// "ethernet": one switch, one NIC per node. "ring": a torus of one dimension.
constexpr std::array<std::string_view, kFabricKindNames.size() + 2> kInterNames = {
    "switch", "rails", "fat_tree", "dragonfly", "torus", "wan", "ethernet", "ring"};

/// The mapping at `key`, where one stands; else its kind is the word that stands there.
struct Choice {
  std::optional<YamlMap> map;
  std::optional<std::size_t> kind;
  bool wrong = false;
};

Choice read_choice(const YamlMap& section, const char* key,
                   std::span<const std::string_view> names) {
  Choice choice;
  if (!section.has(key)) return choice;
  if (section.is_map(key)) choice.map = section.map(key);
  const YamlMap& in = choice.map ? *choice.map : section;
  const char* word = choice.map ? "kind" : key;
  choice.kind = in.choice(word, names);
  choice.wrong = !choice.kind && in.has(word);
  return choice;
}

LinkType must_be_known(std::string_view name) {
  Result<LinkType> type = link_type_named(name);
  REHEARSE_CHECK(type, "{} is in no catalog", name);
  return std::move(*type);
}

class Reader {
 public:
  Reader(const YamlMap& section, const InstanceLookup& instances)
      : section_(section), instances_(instances) {}

  std::optional<ClusterBuilder> read() {
    const bool by_instance = section_.has("instance");
    const char* nodes_key = by_instance ? "count" : "nodes";
    std::optional<std::string> model;
    std::uint32_t devices = 1;
    if (by_instance) {
      instance_ = find_instance();
      if (instance_) {
        model = instance_->device;
        devices = instance_->devices;
      }
    } else {
      model = section_.required<std::string>("device");
      devices = read_count(section_, "devices_per_node", 1, 1, kMostDevicesPerNode);
    }
    const std::uint32_t nodes = read_count(section_, nodes_key, 1, 1, kMostDevices);
    std::optional<DeviceLinks> usual;
    if (model) {
      const Result<DeviceLinks> found = links_of_device(*model);
      if (found)
        usual = *found;
      else
        report(by_instance ? "instance" : "device", found.error());
    }
    if (!usual) {  // nothing else can be told of these
      section_.is_map("intra_node");
      section_.is_map("inter_node");
      return std::nullopt;
    }
    std::optional<NodeTemplate> node = read_node(*usual, *model, devices);
    std::optional<FabricTemplate> fabric = read_fabric(*usual, devices, nodes);
    if (!node || fabric_wrong_) return std::nullopt;
    // GPUs on the rail of the destination pass on what others send: what NCCL does by default.
    if (fabric && fabric->kind == FabricKind::kRails && fabric->spines == 0 && !forward_given_)
      node->forward = node->kind == NodeKind::kNvswitch;
    Result<ClusterBuilder> made =
        make_cluster({.node = std::move(*node), .nodes = nodes, .fabric = std::move(fabric)});
    if (made) return std::move(*made);
    const Diagnostic& d = made.error().diagnostics.front();
    if (d.key == "devices" || d.key == "nodes")
      section_.report(by_instance        ? "instance"
                      : d.key == "nodes" ? "nodes"
                                         : "devices_per_node",
                      d.problem, d.expected);
    else if (inter_)
      inter_->report(d.key, d.problem, d.expected);
    else
      section_.report("inter_node", fmt::format("{}: {}", d.key, d.problem), d.expected);
    return std::nullopt;
  }

 private:
  void report(const char* key, const Error& error) {
    const Diagnostic& d = error.diagnostics.front();
    section_.report(key, d.problem, d.expected, d.nearest);
  }

  std::optional<InstanceShape> find_instance() {
    const auto name = section_.optional<std::string>("instance");
    if (!name) return std::nullopt;
    if (!instances_) {
      section_.report("instance", "no catalog of instances is at hand", "device and nodes");
      return std::nullopt;
    }
    Result<InstanceShape> found = instances_(*name);
    if (found) return std::move(*found);
    report("instance", found.error());
    return std::nullopt;
  }

  std::optional<NodeTemplate> read_node(const DeviceLinks& usual, const std::string& model,
                                        std::uint32_t devices) {
    const Choice choice = read_choice(section_, "intra_node", kIntraNames);
    if (choice.wrong) return std::nullopt;
    NodeKind kind = instance_ ? instance_->joined.value_or(usual.joined) : usual.joined;
    if (kind == NodeKind::kHybridCubeMesh && devices > 8) kind = NodeKind::kNvswitch;
    if (choice.kind && *choice.kind < kNodeKindNames.size())
      kind = static_cast<NodeKind>(*choice.kind);
    else if (choice.kind && kind == NodeKind::kPcie)
      kind = NodeKind::kNvlinkPairs;
    NodeTemplate node{.kind = kind,
                      .device = model,
                      .devices = devices,
                      .link = std::nullopt,
                      .pcie = must_be_known(usual.pcie),
                      .sockets = must_be_known("qpi_upi_cross_socket_skl")};
    const std::string_view name = link_of_device(usual, kind);
    if (choice.map) {
      const std::optional<bool> forward = choice.map->optional<bool>("forward");
      forward_given_ = forward.has_value();
      node.forward = forward.value_or(false);
    }
    if (kind == NodeKind::kPcie) {
      if (choice.map) {
        const auto pcie = read_link_type(*choice.map, "intra_node", usual.pcie);
        choice.map->no_other_keys();
        if (!pcie) return std::nullopt;
        node.pcie = *pcie;
      }
      return node;
    }
    if (choice.map) {
      node.link = read_link_type(*choice.map, "intra_node", name);
      choice.map->no_other_keys();
      if (!node.link) return std::nullopt;
    } else if (!name.empty()) {
      node.link = must_be_known(name);
    } else if (devices > 1) {
      section_.report("intra_node",
                      fmt::format("the catalog has no {} link of '{}'",
                                  kNodeKindNames[static_cast<std::size_t>(kind)], model),
                      "intra_node: {kind: …, rate: …, latency: …}");
      return std::nullopt;
    }
    if (node.link && kind == NodeKind::kHybridCubeMesh && has_double_links(usual)) {
      node.double_link = node.link;
      node.double_link->name += "_x2";
      node.double_link->rate = node.link->rate * 2;
    }
    return node;
  }

  std::optional<FabricTemplate> read_fabric(const DeviceLinks& usual, std::uint32_t devices,
                                            std::uint32_t nodes) {
    const Choice choice = read_choice(section_, "inter_node", kInterNames);
    inter_ = choice.map;
    if (choice.wrong) return wrong();
    if (nodes == 1 && !section_.has("inter_node")) return std::nullopt;
    const std::string_view word = choice.kind ? kInterNames[*choice.kind] : "switch";
    FabricTemplate fabric{.kind = FabricKind::kSwitch, .link = LinkType(usual_nic(usual, word))};
    if (choice.kind && *choice.kind < kFabricKindNames.size())
      fabric.kind = static_cast<FabricKind>(*choice.kind);
    if (word == "ring") {
      fabric.kind = FabricKind::kTorus;
      fabric.dimensions = {nodes > 1 ? nodes : devices};
    }
    fabric.links = instance_ ? instance_->nics
                   : word == "ethernet" || usual.devices_per_nic == 0
                       ? 1
                       : std::max(1U, devices / usual.devices_per_nic);
    if (!inter_) return fabric;
    fabric.links = read_count(*inter_, "links", std::min(fabric.links, 64U), 1, 64);
    std::optional<LinkType> link;
    if (inter_->has("link") || !instance_) {
      link = read_link_type(*inter_, "inter_node", fabric.link.name);
    } else {
      link = over_instance(fabric.link);
    }
    read_shape(fabric);
    inter_->no_other_keys();
    if (!link) return wrong();
    fabric.link = *link;
    return fabric;
  }

  LinkType usual_nic(const DeviceLinks& usual, std::string_view word) const {
    if (instance_) return instance_->nic;
    return must_be_known(word == "ethernet" && !usual.nic.starts_with("tcp") ? "tcp_100g"
                                                                             : usual.nic);
  }

  /// The NIC of an instance, with what is given in its place.
  std::optional<LinkType> over_instance(LinkType type) {
    const auto rate = inter_->optional<ByteRate>("rate");
    const auto latency = inter_->optional<Seconds>("latency");
    if (!rate && !latency) return type;
    if (rate && !(*rate > ByteRate::bytes_per_s(0))) {
      inter_->report("rate", "is out of range", "above 0 B/s");
      return std::nullopt;
    }
    type.name = "inter_node";
    type.source =
        rate && latency ? "given" : type.source + (rate ? ", rate given" : ", latency given");
    type.rate = rate.value_or(type.rate);
    type.latency = latency.value_or(type.latency);
    return type;
  }

  void read_shape(FabricTemplate& fabric) {
    constexpr std::uint32_t kAny = UINT32_MAX;  // make_cluster knows the ranges
    const auto count = [&](const char* key, std::uint32_t& into) {
      into = read_count(*inter_, key, into, 0, kAny);
    };
    const auto ratio = [&] {
      fabric.oversubscription =
          inter_->optional<double>("oversubscription").value_or(fabric.oversubscription);
    };
    switch (fabric.kind) {
      case FabricKind::kSwitch:
        break;
      case FabricKind::kRails:
        count("spines", fabric.spines);
        if (fabric.spines > 0) ratio();
        break;
      case FabricKind::kFatTree:
        count("levels", fabric.levels);
        count("radix", fabric.radix);
        ratio();
        break;
      case FabricKind::kDragonfly:
        for (const char* key : {"groups", "routers"})
          if (!inter_->has(key)) {
            inter_->required<std::string>(key);
            fabric_wrong_ = true;
          }
        count("groups", fabric.groups);
        count("routers", fabric.routers);
        break;
      case FabricKind::kTorus: {
        if (!fabric.dimensions.empty()) break;  // a ring
        for (const std::int64_t size : inter_->list<std::int64_t>("dimensions"))
          fabric.dimensions.push_back(
              size > 0 && size <= kMostDevices ? static_cast<std::uint32_t>(size) : 0);
        break;
      }
      case FabricKind::kWan: {
        count("regions", fabric.regions);
        if (const auto wan = inter_->map("wan")) {
          fabric.wan = read_link_type(*wan, "wan", "");
          wan->no_other_keys();
          if (fabric.wan)
            fabric.wan->name = "wan";  // also where its make is that of the NICs
          else
            fabric_wrong_ = true;
        }
        break;
      }
    }
  }

  std::optional<FabricTemplate> wrong() {
    fabric_wrong_ = true;
    return std::nullopt;
  }

  const YamlMap& section_;
  const InstanceLookup& instances_;
  std::optional<InstanceShape> instance_;
  std::optional<YamlMap> inter_;
  bool forward_given_ = false;
  bool fabric_wrong_ = false;
};

}  // namespace

std::optional<ClusterBuilder> read_template(const YamlMap& section,
                                            const InstanceLookup& instances) {
  return Reader(section, instances).read();
}

}  // namespace rehearse::cluster
