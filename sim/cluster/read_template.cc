// The forms of a cluster that name a device or an instance, or several kinds of nodes.
#include <array>

#include <fmt/core.h>

#include "sim/cluster/read_nodes.h"
#include "sim/cluster/read_parts.h"

namespace rehearse::cluster {
namespace {

// "ethernet": one switch, one NIC per node. "ring": a torus of one dimension.
constexpr std::array<std::string_view, kFabricKindNames.size() + 2> kInterNames = {
    "switch", "rails", "fat_tree", "dragonfly", "torus", "wan", "ethernet", "ring"};

class TemplateReader {
 public:
  explicit TemplateReader(const YamlMap& section) : section_(section) {}

  std::optional<ClusterBuilder> read() {
    several_ = section_.is_list_of_maps("nodes");
    if (!several_ && section_.is_list("nodes")) {
      section_.report("nodes", "is not a list of kinds of nodes", "[{device: …, count: …}, …]");
      section_.is_map("inter_node");  // nothing else can be told of it
      return std::nullopt;
    }
    bool known = true;
    if (several_) {
      parts_ = section_.maps("nodes");
      for (std::size_t i = 0; i < parts_.size(); ++i) known &= read_kind(parts_[i], "count", i + 1);
    } else {
      known = read_kind(section_, "nodes", 0);
    }
    std::optional<FabricTemplate> fabric;
    if (known)
      fabric = read_fabric();
    else
      section_.is_map("inter_node");  // nothing else can be told of it
    for (const YamlMap& part : parts_) {
      part.is_map("inter_node");
      part.no_other_keys();
    }
    if (!known || fabric_wrong_) return std::nullopt;
    std::vector<NodeGroup> groups;
    for (NodeKindRead& kind : kinds_) {
      if (!kind.node) return std::nullopt;
      // GPUs on the rail of the destination forward the messages of others, as NCCL does by
      // default.
      if (fabric && fabric->kind == FabricKind::kRails && fabric->spines == 0 &&
          !kind.forward_given)
        kind.node->forward = kind.node->kind == NodeKind::kNvswitch;
      groups.push_back({std::move(*kind.node), kind.nodes, std::move(kind.nics)});
    }
    Result<ClusterBuilder> made =
        make_cluster({.groups = std::move(groups), .fabric = std::move(fabric)});
    if (made) return std::move(*made);
    const Diagnostic& d = made.error().diagnostics.front();
    if (d.key == "nodes")
      section_.report(section_.has("instance") ? "instance" : "nodes", d.problem, d.expected);
    else if (inter_)
      inter_->report(d.key, d.problem, d.expected);
    else
      section_.report("inter_node", fmt::format("{}: {}", d.key, d.problem), d.expected);
    return std::nullopt;
  }

 private:
  bool read_kind(const YamlMap& map, const char* nodes_key, std::size_t number) {
    std::optional<NodeKindRead> kind = read_node_kind(map, nodes_key, number);
    if (kind) kinds_.push_back(std::move(*kind));
    return kind.has_value();
  }

  std::optional<FabricTemplate> read_fabric() {
    const Choice choice = read_choice(section_, "inter_node", kInterNames);
    inter_ = choice.map;
    if (choice.wrong) return wrong();
    std::uint32_t nodes = 0;
    for (const NodeKindRead& kind : kinds_) nodes += kind.nodes;
    if (nodes == 1 && !section_.has("inter_node")) return std::nullopt;
    const std::string_view word = choice.kind ? kInterNames[*choice.kind] : "switch";
    const NodeNics first = usual_nics(kinds_.front(), word);
    FabricTemplate fabric{.kind = FabricKind::kSwitch, .link = first.link, .links = first.count};
    if (choice.kind && *choice.kind < kFabricKindNames.size())
      fabric.kind = static_cast<FabricKind>(*choice.kind);
    if (word == "ring") {
      fabric.kind = FabricKind::kTorus;
      fabric.dimensions = {nodes > 1 ? nodes : kinds_.front().devices};
    }
    bool sound = true;
    if (inter_) {
      const std::optional<NodeNics> given = read_nics(*inter_, kinds_.front(), first, "inter_node");
      read_shape(fabric);
      inter_->no_other_keys();
      sound = given.has_value();
      if (given) {
        fabric.link = given->link;
        fabric.links = given->count;
      }
    }
    if (several_ && sound) sound = read_nics_of_kinds(fabric, word);
    if (!sound) return wrong();
    return fabric;
  }

  /// `inter_node` values of the cluster apply to all kinds; the others are the usual ones of each
  /// kind.
  bool read_nics_of_kinds(const FabricTemplate& fabric, std::string_view word) {
    const auto given = [&](const char* key) { return inter_ && inter_->has(key); };
    bool sound = true;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      NodeNics nics = usual_nics(kinds_[i], word);
      if (given("links")) nics.count = fabric.links;
      if (given("link") || given("rate") || given("latency") || given("network"))
        nics.link = fabric.link;
      if (const std::optional<YamlMap> own = parts_[i].map("inter_node")) {
        const std::optional<NodeNics> read =
            read_nics(*own, kinds_[i], nics, fmt::format("inter_node {}", i + 1));
        own->no_other_keys();
        sound &= read.has_value();
        if (read) nics = *read;
      }
      kinds_[i].nics = striped(std::move(nics), kinds_[i].devices);
    }
    return sound;
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
      case FabricKind::kSwitch: break;
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
  std::vector<YamlMap> parts_;  // if several kinds of nodes are listed
  std::vector<NodeKindRead> kinds_;
  std::optional<YamlMap> inter_;
  bool several_ = false;
  bool fabric_wrong_ = false;
};

}  // namespace

std::optional<ClusterBuilder> read_template(const YamlMap& section) {
  return TemplateReader(section).read();
}

}  // namespace rehearse::cluster
