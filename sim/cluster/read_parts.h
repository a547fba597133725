// The parts of reading a cluster. Each records errors and returns the valid values.
#pragma once

#include <optional>

#include "sim/base/yaml.h"
#include "sim/cluster/cluster.h"

namespace rehearse::cluster {

/// A whole number in its range, else `otherwise`.
std::uint32_t read_count(const YamlMap& map, std::string_view key, std::uint32_t otherwise,
                         std::uint32_t least, std::uint32_t most);

/// `link` (a name in the catalog; default `usual` unless empty), `rate`, `latency`, `duplex`,
/// `start_up`, `message_cost`, `half_rate_size`. If rate and latency of a link are both given, the
/// kind of its network is that of `link` alone.
/// With a given value the type is called `name`. A value that is neither given nor in the catalog
/// is an error.
std::optional<LinkType> read_link_type(const YamlMap& map, std::string name,
                                       std::string_view usual);

/// Reads `network`, the kind of the network that the link belongs to, into the type. If its rate and
/// latency are given, what is not given of its messages is that of the kind; of a NIC without a
/// kind, that of RoCE below kKernelBypass.
void read_network(const YamlMap& map, LinkType& type, bool nic);

/// `start_up`, `message_cost` and `half_rate_size`, else those of `usual`.
MessageTimes read_message_times(const YamlMap& map, const MessageTimes& usual);

/// device, devices_per_node, nodes, intra_node, inter_node; or instance, count.
std::optional<ClusterBuilder> read_template(const YamlMap& section);

/// vertices, link_types, links.
std::optional<ClusterBuilder> read_vertices(const YamlMap& section);

/// Reads routes and changes, which apply on top of either.
void read_routes(const YamlMap& section, ClusterBuilder& builder);
void read_changes(const YamlMap& section, ClusterBuilder& builder);

}  // namespace rehearse::cluster
