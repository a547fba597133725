#include "sim/cluster/read_nodes.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/base/check.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/link_types.h"
#include "sim/cluster/node_template.h"
#include "sim/cluster/own_devices.h"
#include "sim/cluster/read_parts.h"

namespace rehearse::cluster {

namespace {

// "nvlink": the usual NVLink of the device.
constexpr std::array<std::string_view, kNodeKindNames.size() + 1> kIntraNames = {
    "pcie", "nvlink_pairs", "hybrid_cube_mesh", "nvswitch", "mesh", "nvlink"};

LinkType must_be_known(std::string_view name) {
  Result<LinkType> type = link_type_named(name);
  REHEARSE_CHECK(type, "{} is not in the catalog", name);
  return std::move(*type);
}

class Reader {
 public:
  Reader(const YamlMap& section, const char* nodes_key, std::size_t number)
      : section_(section), nodes_key_(nodes_key), number_(number) {}

  std::optional<NodeKindRead> read() {
    const bool by_instance = section_.has("instance");
    std::optional<std::string> model;
    std::uint32_t devices = 1;
    if (by_instance) {
      instance_ = find_instance();
      if (instance_) {
        model = instance_->device;
        devices = instance_->devices;
      }
    } else {
      model = read_device(section_, "device");
      devices = read_count(section_, "devices_per_node", 1, 1, kMostDevicesPerNode);
    }
    const std::uint32_t nodes =
        read_count(section_, by_instance ? "count" : nodes_key_, 1, 1, kMostDevices);
    std::optional<DeviceLinks> usual;
    if (model) {
      const Result<DeviceLinks> found = links_of_device(*model);
      if (found)
        usual = *found;
      else
        report(by_instance ? "instance" : "device", found.error());
    }
    if (!usual) {  // no other error of these can be found
      section_.is_map("intra_node");
      section_.is_map("inter_node");
      return std::nullopt;
    }
    std::optional<NodeTemplate> node = read_node(*usual, *model, devices);
    if (const Status ok = node ? check_node(*node) : Status(); !ok) {
      report(by_instance ? "instance" : "devices_per_node", ok.error());
      node.reset();
    }
    return NodeKindRead{.usual = *usual,
                        .instance = std::move(instance_),
                        .devices = devices,
                        .nodes = nodes,
                        .node = std::move(node),
                        .forward_given = forward_given_};
  }

 private:
  void report(const char* key, const Error& error) {
    const Diagnostic& d = error.diagnostics.front();
    section_.report(key, d.problem, d.expected, d.nearest);
  }

  std::string numbered(std::string_view name) const {
    return number_ == 0 ? std::string(name) : fmt::format("{} {}", name, number_);
  }

  std::optional<InstanceShape> find_instance() {
    const auto name = section_.optional<std::string>("instance");
    if (!name) return std::nullopt;
    Result<InstanceShape> found = shape_of_instance(*name);
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
                      .sockets = must_be_known("qpi_upi_cross_socket_skl"),
                      .store = read_store()};
    const std::string_view name = link_of_device(usual, kind);
    if (choice.map) {
      const std::optional<bool> forward = choice.map->optional<bool>("forward");
      forward_given_ = forward.has_value();
      node.forward = forward.value_or(false);
    }
    if (kind == NodeKind::kPcie) {
      if (choice.map) {
        const auto pcie = read_link_type(*choice.map, numbered("intra_node"), usual.pcie);
        choice.map->no_other_keys();
        if (!pcie) return std::nullopt;
        node.pcie = *pcie;
      }
      return node;
    }
    if (choice.map) {
      node.link = read_link_type(*choice.map, numbered("intra_node"), name);
      choice.map->no_other_keys();
      if (!node.link) return std::nullopt;
    } else if (!name.empty()) {
      node.link = must_be_known(name);
    } else if (devices > 1) {
      section_.report("intra_node",
                      fmt::format("the catalog has no {} link of '{}'",
                                  kNodeKindNames[static_cast<std::size_t>(kind)], model),
                      "intra_node: {kind: …, rate: …, latency: …} in a job or cluster file");
      return std::nullopt;
    }
    if (node.link && kind == NodeKind::kHybridCubeMesh && has_double_links(usual)) {
      node.double_link = node.link;
      node.double_link->name += "_x2";
      node.double_link->rate = node.link->rate * 2;
    }
    return node;
  }

  /// `host`, over what the catalog knows of the instance.
  HostStore read_store() const {
    HostStore store = instance_ ? instance_->store : HostStore{};
    const auto host = section_.map("host");
    if (!host) return store;
    constexpr Bytes kLeast = Bytes::mib(1), kMost = Bytes::gib(1e9);
    if (const auto memory = host->within("memory", kLeast, kMost)) store.memory = memory;
    if (const auto nvme = host->within("nvme", Bytes::b(0), kMost)) store.nvme = nvme;
    store.nvme_rate =
        host->within("nvme_rate", ByteRate::bytes_per_s(1e6), ByteRate::gb_per_s(1e6));
    host->no_other_keys();
    return store;
  }

  const YamlMap& section_;
  const char* nodes_key_;
  const std::size_t number_;
  std::optional<InstanceShape> instance_;
  bool forward_given_ = false;
};

std::string_view nic_named(const DeviceLinks& usual, std::string_view word) {
  return word == "ethernet" && !usual.nic.starts_with("tcp") ? "tcp_100g" : usual.nic;
}

/// A NIC that is not in the catalog (of an instance), with the given values instead of its own.
std::optional<LinkType> over_own(const YamlMap& map, LinkType type, const std::string& name) {
  const auto rate = map.optional<ByteRate>("rate");
  const auto latency = map.optional<Seconds>("latency");
  type.message = read_message_times(map, type.message);
  if (!rate && !latency) return type;
  if (rate && !(*rate >= kLeastLinkRate)) {
    map.report("rate", "is out of range", std::string(kLinkRates));
    return std::nullopt;
  }
  type.name = name;
  type.source =
      rate && latency ? "given" : type.source + (rate ? ", rate given" : ", latency given");
  type.rate = rate.value_or(type.rate);
  type.latency = latency.value_or(type.latency);
  return type;
}

constexpr NodeKind kPcie = NodeKind::kPcie, kNvswitch = NodeKind::kNvswitch,
                   kCube = NodeKind::kHybridCubeMesh, kMesh = NodeKind::kMesh;
constexpr std::string_view kNvlink3 = "nvlink3_a100_nvswitch", kNvlink4 = "nvlink4_h100_nvswitch",
                           kNvlink5 = "nvlink5_b200_nvswitch";

// Device links and PCIe generations are from data sheets; NICs are those of the maker's own node:
// DGX-1 (4 EDR), DGX A100 (8 HDR), DGX H100, H200 and B200 (8 NDR).
constexpr std::array kTable = {
    DeviceLinks{"a10", kPcie, "", "pcie4_x16", "tcp_100g", 0},
    DeviceLinks{"a100_pcie_40", kPcie, "", "pcie4_x16", "ib_hdr_200", 0},
    DeviceLinks{"a100_pcie_80", kPcie, "", "pcie4_x16", "ib_hdr_200", 0},
    DeviceLinks{"a100_sxm4_40", kNvswitch, kNvlink3, "pcie4_x16", "ib_hdr_200", 1},
    DeviceLinks{"a100_sxm4_80", kNvswitch, kNvlink3, "pcie4_x16", "ib_hdr_200", 1},
    DeviceLinks{"a10g", kPcie, "", "pcie4_x16", "tcp_50g", 0},
    DeviceLinks{"a30", kPcie, "", "pcie4_x16", "tcp_100g", 0},
    DeviceLinks{"a40", kPcie, "", "pcie4_x16", "tcp_100g", 0},
    DeviceLinks{"b200_sxm_180", kNvswitch, kNvlink5, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"b300", kNvswitch, kNvlink5, "pcie6_x16", "ib_xdr_800", 1},
    DeviceLinks{"gb200_186", kNvswitch, kNvlink5, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"gh200_144", kNvswitch, kNvlink4, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"gh200_96", kNvswitch, kNvlink4, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"h100_nvl_94", kPcie, "", "pcie5_x16", "ib_ndr_400", 0},
    DeviceLinks{"h100_pcie_80", kPcie, "", "pcie5_x16", "ib_ndr_400", 0},
    DeviceLinks{"h100_sxm5_80", kNvswitch, kNvlink4, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"h100_sxm5_96", kNvswitch, kNvlink4, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"h100_sxm5_96_500w", kNvswitch, kNvlink4, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"h200_nvl_141", kPcie, "", "pcie5_x16", "ib_ndr_400", 0},
    DeviceLinks{"h200_sxm_141", kNvswitch, kNvlink4, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"k80", kPcie, "", "pcie3_x16", "tcp_10g", 0},
    DeviceLinks{"l4", kPcie, "", "pcie4_x16", "tcp_50g", 0},
    DeviceLinks{"l40s", kPcie, "", "pcie4_x16", "tcp_100g", 0},
    DeviceLinks{"mi250x", kMesh, "infinity_fabric3_mi250x_pair", "pcie4_x16", "ib_hdr_200", 1},
    DeviceLinks{"mi300x", kMesh, "infinity_fabric4_mi300x_pair", "pcie5_x16", "roce_400", 1},
    DeviceLinks{"p100_pcie_16", kPcie, "", "pcie3_x16", "tcp_10g", 0},
    DeviceLinks{"p100_sxm2_16", kCube, "nvlink1_p100_pair_1link", "pcie3_x16", "ib_edr_100", 2},
    DeviceLinks{"quadro_rtx6000", kPcie, "", "pcie3_x16", "tcp_10g", 0},
    DeviceLinks{"rtx2080ti", kPcie, "", "pcie3_x16", "tcp_10g", 0},
    DeviceLinks{"rtx3090", kPcie, "", "pcie4_x16", "tcp_10g", 0},
    DeviceLinks{"rtx4090", kPcie, "", "pcie4_x16", "tcp_10g", 0},
    DeviceLinks{"rtx_a6000", kPcie, "", "pcie4_x16", "tcp_10g", 0},
    DeviceLinks{"rtx_pro_6000_server", kPcie, "", "pcie5_x16", "tcp_100g", 0},
    DeviceLinks{"t4", kPcie, "", "pcie3_x16", "tcp_50g", 0},
    DeviceLinks{"v100_pcie_16", kPcie, "", "pcie3_x16", "tcp_10g", 0},
    DeviceLinks{"v100_pcie_32", kPcie, "", "pcie3_x16", "tcp_10g", 0},
    DeviceLinks{"v100_sxm2_16", kCube, "nvlink2_v100_pair_1link", "pcie3_x16", "ib_edr_100", 2},
    DeviceLinks{"v100_sxm2_32", kCube, "nvlink2_v100_pair_1link", "pcie3_x16", "ib_edr_100", 2},
};

DeviceLinks card(const Gpu& gpu) {
  const std::uint32_t generation = gpu.pcie ? gpu.pcie->generation : 3;
  const std::string_view host = generation >= 5   ? "pcie5_x16"
                                : generation == 4 ? "pcie4_x16"
                                                  : "pcie3_x16";
  return {gpu.name, kPcie, "", host, "tcp_10g", 0};
}

}  // namespace

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

std::optional<NodeKindRead> read_node_kind(const YamlMap& section, const char* nodes_key,
                                           std::size_t number) {
  return Reader(section, nodes_key, number).read();
}

NodeNics usual_nics(const NodeKindRead& kind, std::string_view word) {
  const DeviceLinks& usual = kind.usual;
  if (kind.instance)
    return {kind.instance->nic ? *kind.instance->nic : must_be_known(nic_named(usual, word)),
            kind.instance->nics};
  const bool one = word == "ethernet" || usual.devices_per_nic == 0;
  return {must_be_known(nic_named(usual, word)),
          one ? 1 : std::max(1U, kind.devices / usual.devices_per_nic)};
}

std::optional<NodeNics> read_nics(const YamlMap& map, const NodeKindRead& kind, NodeNics usual,
                                  const std::string& name) {
  usual.count = read_count(map, "links", usual.count, 1, kMostDevicesPerNode);
  const bool of_catalog = !kind.instance && link_type_named(usual.link.name);
  std::optional<LinkType> link = map.has("link") || of_catalog
                                     ? read_link_type(map, name, usual.link.name)
                                     : over_own(map, usual.link, name);
  if (!link) return std::nullopt;
  read_network(map, *link, true);
  return striped({std::move(*link), usual.count}, kind.devices);
}

Result<DeviceLinks> links_of_device(std::string_view model) {
  const std::size_t colon = model.find(':');
  const std::string_view name = model.substr(0, colon);
  if (model == kCpu) return DeviceLinks{kCpu, kPcie, "", "pcie4_x16", "tcp_100g", 0};
  const Result<const Gpu*> gpu = find_gpu(name);
  if (!gpu) {
    std::vector<std::string_view> names;
    for (const Gpu& each : gpus()) names.push_back(each.name);
    return fail(fmt::format("unknown device '{}'", name), suggest(name, names));
  }
  const auto row = std::ranges::find(kTable, linked_like(name), &DeviceLinks::model);
  // Cards without further data are on PCIe.
  DeviceLinks links = row != kTable.end() ? *row : card(**gpu);
  if (colon != std::string_view::npos) {
    links.joined = NodeKind::kPcie;
    links.link = {};
  }
  return links;
}

std::string_view link_of_device(const DeviceLinks& device, NodeKind kind) {
  if (kind == device.joined) return device.link;
  if (kind == NodeKind::kNvswitch && has_double_links(device)) return "nvlink2_v100";  // DGX-2
  if (kind == NodeKind::kMesh && device.link == kNvlink3) return "nvlink3_a100_direct_4gpu_nv4";
  if (kind == NodeKind::kNvlinkPairs) {  // bridges of cards that are on PCIe otherwise
    if (device.model.starts_with("a100_pcie")) return "nvlink3_a100_pcie_bridge";
    if (device.model == "h100_pcie_80" || device.model == "h100_nvl_94")
      return "nvlink4_h100_pcie_bridge";
  }
  return {};
}

bool has_double_links(const DeviceLinks& device) {
  return device.link == "nvlink2_v100_pair_1link";
}

}  // namespace rehearse::cluster
