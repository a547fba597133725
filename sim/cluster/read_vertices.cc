// The form of a cluster that lists every vertex and link.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/cluster/link_types.h"
#include "sim/cluster/own_devices.h"
#include "sim/cluster/read_parts.h"

namespace rehearse::cluster {
namespace {

constexpr std::array<std::string_view, 5> kKindNames = {"device", "switch", "nic", "host",
                                                        "storage"};

struct VertexRow {
  std::string name;
  VertexKind kind;
  std::optional<std::uint32_t> node;
  std::string model;
  std::optional<bool> forwards;
  bool spread;
};

class Reader {
 public:
  explicit Reader(const YamlMap& section) : section_(section) {}

  std::optional<ClusterBuilder> read() {
    for (const YamlMap& map : section_.maps("vertices")) read_vertex(map);
    add_vertices();
    for (const YamlMap& map : section_.maps("link_types")) read_type(map);
    for (const YamlMap& map : section_.maps("links")) read_link(map);
    if (!sound_) return std::nullopt;
    return std::move(builder_);
  }

 private:
  void read_vertex(const YamlMap& map) {
    const auto name = map.required<std::string>("name");
    const auto kind = map.choice("kind", kKindNames);
    if (!map.has("kind")) map.required<std::string>("kind");
    const auto node = map.optional<std::string>("node");
    const auto forwards = map.optional<bool>("forwards");
    const auto spread = map.optional<bool>("spread");
    const bool is_device = kind && static_cast<VertexKind>(*kind) == VertexKind::kDevice;
    const auto model = is_device ? read_device(map, "device") : std::nullopt;
    if (is_device && !node) map.required<std::string>("node");
    map.no_other_keys();
    if (!name || !kind || (is_device && (!node || !model))) return wrong();
    if (!seen_.insert(*name).second) {
      map.report("name", fmt::format("'{}' appears twice", *name), "unique names");
      return wrong();
    }
    VertexRow row{*name,    static_cast<VertexKind>(*kind), std::nullopt, model.value_or(""),
                  forwards, spread.value_or(false)};
    if (node) {
      const auto [at, is_new] =
          nodes_.try_emplace(*node, static_cast<std::uint32_t>(node_names_.size()));
      if (is_new) node_names_.push_back(*node);
      row.node = at->second;
    }
    rows_.push_back(std::move(row));
  }

  /// Adds vertices node by node, in the order of the file within each; those outside nodes come
  /// last.
  void add_vertices() {
    for (const std::string& name : node_names_) builder_.add_node(name);
    std::ranges::stable_sort(rows_, [](const VertexRow& a, const VertexRow& b) {
      return a.node.value_or(UINT32_MAX) < b.node.value_or(UINT32_MAX);
    });
    for (VertexRow& row : rows_) {
      VertexId id(0);
      if (row.kind == VertexKind::kDevice) {
        const DeviceId device = builder_.add_device(NodeId(*row.node), row.name, row.model);
        builder_.set_forwards(device, row.forwards.value_or(false));
        id = builder_.vertex_of(device);
      } else {
        id = builder_.add({.name = row.name,
                           .kind = row.kind,
                           .node = row.node ? std::optional(NodeId(*row.node)) : std::nullopt,
                           .forwards = row.forwards.value_or(row.kind != VertexKind::kStorage),
                           .spread = row.spread});
      }
      vertices_.try_emplace(std::move(row.name), id);
    }
  }

  void read_type(const YamlMap& map) {
    const auto name = map.required<std::string>("name");
    auto type = read_link_type(map, name.value_or(""), "");
    if (type) read_network(map, *type, false);
    map.no_other_keys();
    if (!name || !type) return wrong();
    type->name = *name;
    if (types_.contains(*name)) {
      map.report("name", fmt::format("'{}' appears twice", *name), "unique names");
      return wrong();
    }
    types_[*name] = builder_.add(std::move(*type));
  }

  std::optional<std::uint32_t> type_named(const YamlMap& map, const std::string& name) {
    if (const auto known = types_.find(name); known != types_.end()) return known->second;
    Result<LinkType> type = link_type_named(name);
    if (type) return types_[name] = builder_.add(std::move(*type));
    std::vector<std::string_view> names;
    for (const auto& [known, index] : types_) names.push_back(known);
    const auto near = nearest(name, names);
    map.report("type", fmt::format("unknown link type '{}'", name),
               near ? fmt::format("did you mean '{}'?", *near)
                    : type.error().diagnostics.front().expected);
    return std::nullopt;
  }

  void read_link(const YamlMap& map) {
    const auto end = [&](const char* key) -> std::optional<VertexId> {
      const auto name = map.required<std::string>(key);
      if (!name) return std::nullopt;
      if (const auto found = vertices_.find(*name); found != vertices_.end()) return found->second;
      std::vector<std::string_view> names;
      for (const auto& [known, id] : vertices_) names.push_back(known);
      const auto near = nearest(*name, names);
      map.report(key, fmt::format("unknown vertex '{}'", *name),
                 near ? fmt::format("did you mean '{}'?", *near) : "the name of a vertex");
      return std::nullopt;
    };
    const std::optional<VertexId> a = end("a"), b = end("b");
    const auto type_name = map.required<std::string>("type");
    const auto type = type_name ? type_named(map, *type_name) : std::nullopt;
    map.no_other_keys();
    if (!a || !b || !type) return wrong();
    if (*a == *b) {
      map.report("b", "is the same vertex as a", "another vertex");
      return wrong();
    }
    builder_.connect(*a, *b, *type);
  }

  void wrong() { sound_ = false; }

  const YamlMap& section_;
  ClusterBuilder builder_;
  std::vector<VertexRow> rows_;
  std::set<std::string> seen_;
  std::vector<std::string> node_names_;
  std::map<std::string, std::uint32_t> nodes_, types_;
  std::map<std::string, VertexId> vertices_;
  bool sound_ = true;
};

}  // namespace

std::optional<ClusterBuilder> read_vertices(const YamlMap& section) {
  return Reader(section).read();
}

}  // namespace rehearse::cluster
