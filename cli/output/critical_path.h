// A critical path as documents show it: by category, with the largest of each.
#pragma once

#include "cli/output/json_value.h"
#include "profiler/replay/breakdown.h"
#include "sim/base/estimate.h"
#include "sim/graph/critical_path.h"
#include "sim/program/path_parts.h"

namespace rehearse::cli {

/// Of a run of one step: all of its path, summed up.
replay::CriticalPath summed(const graph::Graph& graph, const std::vector<graph::PathStep>& path);

/// "critical_path" of the JSON contract; times share the interval of the step, in proportion.
Json json_critical_path(const replay::CriticalPath& path, const Estimate<Seconds>& step);

/// "path_parts" of the JSON contract: of a step of those that the path covers.
Json json_path_parts(const program::PathParts& path);
/// "path": which it is.
Json json_path(const program::PathParts& path);
/// Shares by provenance, by their names.
Json json_provenance(const std::array<double, 4>& shares);

}  // namespace rehearse::cli
