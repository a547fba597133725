// `rehearse inspect --cluster`: the structure of a cluster.
#pragma once

#include <filesystem>

#include "cli/globals.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// Reads the cluster file, writes the drawing to `svg` unless it is empty, and writes the result.
Result<Exit> inspect_cluster(const std::filesystem::path& file, const std::filesystem::path& svg,
                             const Globals& globals);

}  // namespace rehearse::cli
