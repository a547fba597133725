// Devices that files define by their datasheet (docs/formats/cluster.md). They are found by name
// like those of the catalog, for the life of the program; safe from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/base/yaml.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cluster {

/// The device of that name which a file defined; null if there is none.
const Gpu* own_device(std::string_view name);

/// The device of the catalog whose links a device has: that which its definition is like, else itself.
std::string linked_like(std::string_view name);

/// The name of a device at `key`: a text, or a mapping that defines it. Mistakes are recorded,
/// including another device of the name.
std::optional<std::string> read_device(const YamlMap& map, std::string_view key);

}  // namespace rehearse::cluster
