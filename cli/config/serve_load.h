// The key `load` of a server: the requests that it gets (docs/formats/serve.md).
#pragma once

#include <filesystem>

#include "cli/config/serve_file.h"

namespace rehearse::cli {

/// Draws or reads the requests of the load. REQUIRES: rules and pools were read.
Status read_load(const YamlMap& load, const std::filesystem::path& folder, ServeFile& file);

/// A time within these limits, if it is given.
std::optional<Seconds> duration_in(const YamlMap& map, std::string_view key, Seconds least,
                                   Seconds most);

}  // namespace rehearse::cli
