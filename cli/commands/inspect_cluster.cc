#include "cli/commands/inspect_cluster.h"

#include <fmt/core.h>

#include "cli/output/cluster_groups.h"
#include "cli/output/document.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/cluster/read_cluster.h"

namespace rehearse::cli {
namespace {

using cluster::Cluster;

std::string_view duplex_of(const cluster::LinkType& type) {
  return type.duplex == cluster::Duplex::kFull ? "full" : "half";
}

/// "4 × ib_ndr_400 to nic, …"
std::string links_text(const Cluster& c, const LinkCounts& links) {
  if (links.empty()) return "no link";
  return join(links, ", ", [&](const auto& link) {
    const auto& [key, count] = link;
    return fmt::format("{} × {} to {}", count, c.link_types()[key.second].name, key.first);
  });
}

std::string group_text(const Cluster& c, const VertexGroup& group, std::size_t indent) {
  const std::string name = group.stem == group.what ? "" : " " + group.stem;
  return fmt::format("{}{} × {}{}: {}\n", std::string(indent, ' '), group.vertices.size(),
                     group.what, name, links_text(c, group.links));
}

/// "8 × h100_sxm5_80"
std::string devices_of(const Cluster& c, const cluster::Node& node) {
  std::map<std::string_view, std::size_t> models;
  for (const DeviceId id : node.devices) ++models[c.devices()[id.index()].model];
  std::string text;
  for (const auto& [model, count] : models)
    text += fmt::format("{}{} × {}", text.empty() ? "" : ", ", count, model);
  return text.empty() ? "no device" : text;
}

Value type_rows(const Cluster& c) {
  Value rows = Value::array();
  const std::vector<std::size_t> counts = links_by_type(c);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const cluster::LinkType& type = c.link_types()[i];
    rows.push_back({{"name", "link type", type.name},
                    {"count", "links", counts[i]},
                    {"rate", "rate", type.rate, in::kGbPerS},
                    {"latency", "latency", type.latency, in::kShortUs},
                    {"duplex", "duplex", duplex_of(type)},
                    {"provenance", "provenance", to_string(type.provenance)},
                    {"source", "source", type.source, {}, kProse}});
  }
  return rows;
}

std::string link_name(const Cluster& c, const cluster::Link& link) {
  return c.vertices()[link.a.index()].name + "-" + c.vertices()[link.b.index()].name;
}

Json json_links(const Cluster& c, const LinkCounts& links) {
  Json list = Json::array();
  for (const auto& [key, count] : links)
    list.push_back(
        {{"to", key.first}, {"type", c.link_types()[key.second].name}, {"count", count}});
  return list;
}

Json json_group(const Cluster& c, const VertexGroup& group) {
  return {{"name", group.stem},
          {"kind", group.what},
          {"count", group.vertices.size()},
          {"links", json_links(c, group.links)}};
}

Document document_of(const Cluster& c) {
  Document d{.command = "inspect", .rows = "link_types"};
  d.line(fmt::format("{}, {}, {}", counted(c.nodes().size(), "node"),
                     counted(c.devices().size(), "device"), counted(c.links().size(), "link")));
  d["cluster"] = {{"nodes", c.nodes().size()},
                  {"devices", c.devices().size()},
                  {"vertices", c.vertices().size()},
                  {"links", c.links().size()}};
  Value nodes = Value::array(), fabric = Value::array(), changes = Value::array();
  for (const NodeGroup& group : alike_nodes(c)) {
    const cluster::Node& first = c.nodes()[group.nodes.front().index()];
    Value parts = Value::array(), models = Value::array();
    std::string lines = fmt::format(
        "\n{} × node: {} ({}{})\n", group.nodes.size(), devices_of(c, first), first.name,
        group.nodes.size() == 1 ? "" : " … " + c.nodes()[group.nodes.back().index()].name);
    for (const VertexGroup& vertices : vertex_groups(c, group.nodes.front())) {
      lines += group_text(c, vertices, 2);
      parts.push_back(json_group(c, vertices));
    }
    d.line(lines);
    for (const DeviceId id : first.devices) models.push_back(c.devices()[id.index()].model);
    nodes.push_back({{"count", group.nodes.size()},
                     {"first", first.name},
                     {"devices", std::move(models)},
                     {"parts", std::move(parts)}});
  }
  std::string lines;
  const std::vector<FabricGroup> groups = fabric_groups(c);
  for (const FabricGroup& group : groups) {
    fabric.push_back(json_group(c, group));
    lines += group_text(c, group, 2 + 2 * (groups.front().level - group.level));
  }
  if (!lines.empty()) d.line("\nFabric\n" + lines);
  std::vector<std::string> changed;
  for (const cluster::Link& link : c.links())
    for (const cluster::LinkChange& change : link.changes) {
      changes.push_back({{"link", link_name(c, link)}, {"at", change.at}, {"share", change.share}});
      changed.push_back(fmt::format(
          "{}: {} from {} on", link_name(c, link),
          change.share == 0 ? "down" : significant(change.share * 100) + " % of its rate",
          to_string(change.at)));
    }
  d["node_groups"] = std::move(nodes);
  d["fabric"] = std::move(fabric);
  d.show("link_types", "Links (rate per direction; full-duplex links have it in both)",
         type_rows(c));
  d["changes"] = std::move(changes);
  d.show("", "Changes", changed);
  return d;
}

}  // namespace

Result<Exit> inspect_cluster(const std::filesystem::path& file, const std::filesystem::path& svg,
                             const Globals& globals) {
  const Cluster c = TRY(cluster::load_cluster(file));
  if (!svg.empty()) TRY(write_file(svg, cluster_svg(c, file.filename().string())));
  return answer_with(globals, document_of(c));
}

}  // namespace rehearse::cli
