// Reading clusters from YAML (docs/formats/cluster.md). Three forms, each with `routes` and
// `changes`:
//
//   cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 4, inter_node: fat_tree}
//   cluster: {instance: p4d.24xlarge, count: 4}
//   cluster: {vertices: […], links: […]}
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sim/base/yaml.h"
#include "sim/cluster/cluster.h"

namespace rehearse::cluster {

/// The `cluster:` section of a file, which is its only section.
Result<Cluster> load_cluster(const std::filesystem::path& path);
/// The same for text in memory; `name` is the file name in messages.
Result<Cluster> parse_cluster(const std::string& text, std::string name);

/// The section `cluster` of a file that also has other sections. Nothing if it is wrong or missing;
/// the file's status then has the error.
std::optional<Cluster> read_cluster(const YamlMap& root);

}  // namespace rehearse::cluster
