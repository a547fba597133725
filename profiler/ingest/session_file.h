// session.yaml beside captures: what the launcher measured and no capture says.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/result.h"

namespace rehearse::ingest {

/// What the file in the folder says, in the form of the facts that captures hold:
/// "overhead.ns_per_range", "overhead.ns_per_call" (ns), "overhead.step_share" (a ratio) and
/// "measured_step" (s), those that are there. Empty where there is no such file; fails on one whose
/// values are wrong. Other keys are passed over.
Result<std::vector<std::pair<std::string, std::string>>> session_facts(
    const std::filesystem::path& folder);

}  // namespace rehearse::ingest
