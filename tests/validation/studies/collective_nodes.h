// Prices of collectives over several nodes, and of single reports from other hosts.
#pragma once

#include <filesystem>

#include "tests/validation/studies/collective_accuracy.h"

namespace rehearse::cli {

/// Adds cases, and what was refused. Single reports are left out where their table is missing.
Status price_nodes(const std::filesystem::path& data, CollectiveAccuracy& accuracy);

}  // namespace rehearse::cli
