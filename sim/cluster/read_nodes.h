// Kinds of nodes: the part of a cluster's template that names a device or an instance.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "sim/base/yaml.h"
#include "sim/cluster/device_links.h"
#include "sim/cluster/instance_shape.h"
#include "sim/cluster/templates.h"

namespace rehearse::cluster {

/// The mapping at `key` if there is one; otherwise `kind` is the word at `key`.
struct Choice {
  std::optional<YamlMap> map;
  std::optional<std::size_t> kind;
  bool wrong = false;
};
Choice read_choice(const YamlMap& section, const char* key,
                   std::span<const std::string_view> names);

struct NodeKindRead {
  DeviceLinks usual;
  std::optional<InstanceShape> instance;
  std::uint32_t devices, nodes;
  std::optional<NodeTemplate> node;  ///< absent where something is wrong with it
  std::optional<NodeNics> nics = {};
  bool forward_given = false;
};

/// Reads `device`, `devices_per_node` and `nodes_key`, or `instance` and `count`; and `intra_node`.
/// If there are several kinds, each has a number from 1 on; 0: the only one. Nothing if the device
/// is unknown.
std::optional<NodeKindRead> read_node_kind(const YamlMap& section, const char* nodes_key,
                                           std::size_t number);

/// The NICs of the node's default link for the fabric kind `word`.
NodeNics usual_nics(const NodeKindRead& kind, std::string_view word);

/// Reads `links`, `link`, `network`, `rate`, `latency`, `duplex` of a node's NICs, with the usual
/// ones as defaults, and stripes them; `name` is the name of the type if a value is given.
std::optional<NodeNics> read_nics(const YamlMap& map, const NodeKindRead& kind, NodeNics usual,
                                  const std::string& name);

}  // namespace rehearse::cluster
