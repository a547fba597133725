// Process groups of a Chakra job, from the JSON file that simulators read with the traces.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace rehearse::ingest {

/// By name: the sets of ranks with this name. A rank is in at most one of them.
using CommGroups = std::map<std::string, std::vector<std::vector<std::uint32_t>>, std::less<>>;

/// Parses {"tp0": [0, 1], "tp1": [2, 3]}, or several sets under one name, where each rank uses the
/// set that contains it: {"tp": [[0, 1], [2, 3]]}. Fails on anything else, and on a rank that
/// occurs twice under one name.
Result<CommGroups> parse_comm_groups(std::string_view text, const std::string& name);
Result<CommGroups> load_comm_groups(const std::filesystem::path& path);

}  // namespace rehearse::ingest
