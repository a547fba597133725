// Reading clusters from YAML (docs/formats/cluster.md). Three forms, each with `routes` and
// `changes`:
//
//   cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 4, inter_node: fat_tree}
//   cluster: {instance: p4d.24xlarge, count: 4}
//   cluster: {vertices: […], links: […]}
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/yaml.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/templates.h"

namespace rehearse::cluster {

/// What one instance of a provider is.
struct InstanceShape {
  std::string device;  ///< model
  std::uint32_t devices;
  std::optional<NodeKind> joined;  ///< absent: as usual for the device
  std::uint32_t nics;
  LinkType nic;
};

/// Finds an instance by its name ("p4d.24xlarge"); fails with the nearest name.
using InstanceLookup = std::function<Result<InstanceShape>(std::string_view name)>;

/// The file's `cluster:` section, which stands alone in it. Without a look-up, `instance` is an
/// error.
Result<Cluster> load_cluster(const std::filesystem::path& path,
                             const InstanceLookup& instances = {});
/// The same for text in memory; `name` stands for the file in messages.
Result<Cluster> parse_cluster(const std::string& text, std::string name,
                              const InstanceLookup& instances = {});

/// The section `cluster` of a file that has others too. Nothing where it is wrong or missing, which
/// the file's status then says.
std::optional<Cluster> read_cluster(const YamlMap& root, const InstanceLookup& instances = {});

}  // namespace rehearse::cluster
