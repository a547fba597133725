#include "sim/cluster/read_cluster.h"

#include "sim/cluster/read_parts.h"

namespace rehearse::cluster {
namespace {

Result<Cluster> read_file_of_cluster(const YamlFile& file) {
  const YamlMap root = file.root();
  std::optional<Cluster> cluster = read_cluster(root);
  root.no_other_keys();
  TRY(file.status());
  return std::move(*cluster);
}

}  // namespace

std::optional<Cluster> read_cluster(const YamlMap& root) {
  const std::optional<YamlMap> section = root.map("cluster");
  if (!section) {
    if (!root.has("cluster"))
      root.report("cluster", "is missing", "cluster: {device: …, devices_per_node: …, nodes: …}");
    return std::nullopt;
  }
  const bool in_full = section->has("vertices");
  std::optional<ClusterBuilder> builder =
      in_full ? read_vertices(*section) : read_template(*section);
  if (!builder) {  // the keys of these are known all the same
    section->maps("routes");
    section->maps("changes");
    section->no_other_keys();
    return std::nullopt;
  }
  read_routes(*section, *builder);
  read_changes(*section, *builder);
  section->no_other_keys();
  Result<Cluster> cluster = std::move(*builder).build();
  if (cluster) return std::move(*cluster);
  for (const Diagnostic& d : cluster.error().diagnostics)
    root.report("cluster", d.problem, d.expected, d.nearest);
  return std::nullopt;
}

Result<Cluster> load_cluster(const std::filesystem::path& path) {
  return YamlFile::load(path).and_then(read_file_of_cluster);
}

Result<Cluster> parse_cluster(const std::string& text, std::string name) {
  return YamlFile::parse(text, std::move(name)).and_then(read_file_of_cluster);
}

}  // namespace rehearse::cluster
