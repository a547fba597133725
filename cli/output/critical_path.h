// A critical path as documents show it: by category, with the largest of each.
#pragma once

#include "cli/output/value.h"
#include "sim/base/estimate.h"
#include "sim/program/attribution.h"

namespace rehearse::cli {

/// The key "critical_path" of the JSON contract. Times have the relative interval of the step.
Json json_critical_path(const program::PathTimes& path, const Estimate<Seconds>& step);

/// The key "path_parts" of the JSON contract, per step that the path covers.
Json json_path_parts(const program::PathParts& path);
/// The key "path": the steps and ranks that the path covers.
Json json_path(const program::PathParts& path);
/// Shares by provenance name.
Json json_provenance(const std::array<double, 4>& shares);

}  // namespace rehearse::cli
