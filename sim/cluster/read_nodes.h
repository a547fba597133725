// Kinds of nodes: the part of a cluster's template that names a device or an instance.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sim/base/result.h"
#include "sim/base/yaml.h"
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

/// The usual links of nodes with devices of a model: the default where a cluster file states no
/// more.
struct DeviceLinks {
  std::string_view model;
  NodeKind joined;                ///< a node of up to 8
  std::string_view link;          ///< between devices, by its name in the catalog; may be empty
  std::string_view pcie;          ///< as `link`
  std::string_view nic;           ///< as `link`
  std::uint32_t devices_per_nic;  ///< 0: one NIC per node
};

/// The links of a device model. A partition ("a100_sxm4_80:3g.20gb") has the links of its GPU
/// without NVLink, which partitions cannot use. Fails with the nearest name.
Result<DeviceLinks> links_of_device(std::string_view model);

/// The catalog's name of the link between such devices in a node of another kind than the usual
/// one; empty if there is none.
std::string_view link_of_device(const DeviceLinks&, NodeKind kind);

/// Whether some pairs of a hybrid cube mesh have two links (V100, which has six; P100 has four).
bool has_double_links(const DeviceLinks&);

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
