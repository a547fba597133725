// How the calibrations that the program ships were made, so that they can be made again from the
// published tables below `data`: one file per device in `into`. Equal tables give equal files.
#pragma once

#include <filesystem>

#include "cli/output/table.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// models/comm/calibrations: costs of collectives, and of a call inside a framework.
Result<Table> make_collectives(const std::filesystem::path& data,
                               const std::filesystem::path& into);
/// models/compute/calibrations: costs of operations.
Result<Table> make_operations(const std::filesystem::path& data, const std::filesystem::path& into);
/// models/sharing/pairs: speeds of pairs of jobs on one GPU.
Result<Table> make_pairs(const std::filesystem::path& data, const std::filesystem::path& into);

}  // namespace rehearse::cli
