#include "cli/commands/inspect_cluster.h"

#include <fmt/core.h>

#include "cli/output/cluster_groups.h"
#include "cli/output/cluster_svg.h"
#include "cli/output/result.h"
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
  std::string text;
  for (const auto& [key, count] : links)
    text += fmt::format("{}{} × {} to {}", text.empty() ? "" : ", ", count,
                        c.link_types()[key.second].name, key.first);
  return text.empty() ? "no link" : text;
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

Table type_table(const Cluster& c) {
  Table table({{"link type", Align::kLeft},
               {"links"},
               {"rate (GB/s)"},
               {"latency (us)"},
               {"duplex", Align::kLeft},
               {"provenance", Align::kLeft},
               {"source", Align::kLeft}});
  const std::vector<std::size_t> counts = links_by_type(c);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const cluster::LinkType& type = c.link_types()[i];
    table.add({type.name, grouped(counts[i]), significant(type.rate.gb_per_s()),
               significant(type.latency.us()), std::string(duplex_of(type)),
               std::string(to_string(type.provenance)), type.source});
  }
  return table;
}

std::string link_name(const Cluster& c, const cluster::Link& link) {
  return c.vertices()[link.a.index()].name + "-" + c.vertices()[link.b.index()].name;
}

std::string to_text(const Cluster& c) {
  std::string text =
      fmt::format("{}, {}, {}\n", counted(c.nodes().size(), "node"),
                  counted(c.devices().size(), "device"), counted(c.links().size(), "link"));
  for (const NodeGroup& group : alike_nodes(c)) {
    const cluster::Node& first = c.nodes()[group.nodes.front().index()];
    text += fmt::format(
        "\n{} × node: {} ({}{})\n", group.nodes.size(), devices_of(c, first), first.name,
        group.nodes.size() == 1 ? "" : " … " + c.nodes()[group.nodes.back().index()].name);
    for (const VertexGroup& vertices : vertex_groups(c, group.nodes.front()))
      text += group_text(c, vertices, 2);
  }
  if (const std::vector<FabricGroup> fabric = fabric_groups(c); !fabric.empty()) {
    text += "\nFabric\n";
    for (const FabricGroup& group : fabric)
      text += group_text(c, group, 2 + 2 * (fabric.front().level - group.level));
  }
  text += "\nLinks (rate in one direction; links of full duplex have it in both)\n";
  text += type_table(c).text();
  std::string changes;
  for (const cluster::Link& link : c.links())
    for (const cluster::LinkChange& change : link.changes)
      changes += fmt::format(
          "  {}: {} from {} on\n", link_name(c, link),
          change.share == 0 ? "down" : significant(change.share * 100) + " % of its rate",
          to_string(change.at));
  if (!changes.empty()) text += "\nChanges\n" + changes;
  return text;
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

Json to_json(const Cluster& c) {
  Json json = json_root("inspect");
  json["cluster"] = {{"nodes", c.nodes().size()},
                     {"devices", c.devices().size()},
                     {"vertices", c.vertices().size()},
                     {"links", c.links().size()}};
  Json nodes = Json::array(), fabric = Json::array(), types = Json::array(),
       changes = Json::array();
  for (const NodeGroup& group : alike_nodes(c)) {
    const cluster::Node& first = c.nodes()[group.nodes.front().index()];
    Json parts = Json::array(), models = Json::array();
    for (const VertexGroup& vertices : vertex_groups(c, group.nodes.front()))
      parts.push_back(json_group(c, vertices));
    for (const DeviceId id : first.devices) models.push_back(c.devices()[id.index()].model);
    nodes.push_back({{"count", group.nodes.size()},
                     {"first", first.name},
                     {"devices", std::move(models)},
                     {"parts", std::move(parts)}});
  }
  for (const FabricGroup& group : fabric_groups(c)) fabric.push_back(json_group(c, group));
  const std::vector<std::size_t> counts = links_by_type(c);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const cluster::LinkType& type = c.link_types()[i];
    types.push_back({{"name", type.name},
                     {"count", counts[i]},
                     {"rate", {{"value", type.rate.bytes_per_s()}, {"unit", "B/s"}}},
                     {"latency", json_measured(type.latency)},
                     {"duplex", duplex_of(type)},
                     {"provenance", to_string(type.provenance)},
                     {"source", type.source}});
  }
  for (const cluster::Link& link : c.links())
    for (const cluster::LinkChange& change : link.changes)
      changes.push_back({{"link", link_name(c, link)},
                         {"at", json_measured(change.at)},
                         {"share", change.share}});
  json["node_groups"] = std::move(nodes);
  json["fabric"] = std::move(fabric);
  json["link_types"] = std::move(types);
  json["changes"] = std::move(changes);
  return json;
}

Status write_svg(const std::filesystem::path& path, const Cluster& c, const std::string& title) {
  Result<PendingFile> file = PendingFile::create(path);
  if (!file) return forward(file);
  if (Status ok = file->write(cluster_svg(c, title)); !ok) return ok;
  return file->commit();
}

}  // namespace

Result<Exit> inspect_cluster(const std::filesystem::path& file, const std::filesystem::path& svg,
                             const Globals& globals) {
  const Result<Cluster> c = cluster::load_cluster(file);
  if (!c) return forward(c);
  if (!svg.empty())
    if (Status ok = write_svg(svg, *c, file.filename().string()); !ok) return forward(ok);
  const Formats formats = {.text = [&] { return to_text(*c); },
                           .json = [&] { return to_json(*c); },
                           .table = [&] { return type_table(*c); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace rehearse::cli
