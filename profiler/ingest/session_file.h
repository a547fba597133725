// session.yaml in a capture folder: measurements of the launcher that captures do not contain.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/result.h"

namespace rehearse::ingest {

/// The contents of the file in the folder, as facts like those of captures:
/// "overhead.ns_per_range", "overhead.ns_per_call" (ns), "overhead.step_share" (a ratio),
/// "measured_step" (s) and "commit", if present. Empty without such a file; fails on wrong values. Other keys
/// are ignored.
Result<std::vector<std::pair<std::string, std::string>>> session_facts(
    const std::filesystem::path& folder);

}  // namespace rehearse::ingest
