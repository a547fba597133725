// A critical path as documents show it: by category, with the largest of each.
#pragma once

#include "cli/output/value.h"
#include "sim/base/estimate.h"
#include "sim/program/attribution.h"

namespace rehearse::cli {

/// "critical_path" of the JSON contract; times share the interval of the step, in proportion.
Json json_critical_path(const program::PathTimes& path, const Estimate<Seconds>& step);

/// "path_parts" of the JSON contract: of a step of those that the path covers.
Json json_path_parts(const program::PathParts& path);
/// "path": which it is.
Json json_path(const program::PathParts& path);
/// Shares by provenance, by their names.
Json json_provenance(const std::array<double, 4>& shares);

}  // namespace rehearse::cli
