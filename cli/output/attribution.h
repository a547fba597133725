// Where the time of a step goes, as documents show it: what occupies the ranks, and what decides the
// length (sim/program/attribution.h). It is the same for recorded and for predicted steps.
#pragma once

#include <optional>

#include "cli/output/document.h"
#include "sim/base/estimate.h"
#include "sim/program/attribution.h"

namespace rehearse::cli {

inline constexpr const char* kOccupancyTitle = "Rank occupancy per step, mean over ranks";

/// The key "breakdown" of the JSON contract, as measured; or predicted, with the relative interval
/// of the step.
Value occupancy_fields(const program::Occupancy& occupancy);
Value occupancy_fields(const program::Occupancy& occupancy, const Estimate<Seconds>& step);

/// The times of one step, with their relative interval.
struct Attribution {
  program::Occupancy occupancy;                  ///< mean over ranks
  std::optional<program::PathTimes> path_times;  ///< absent: not known
  program::PathParts path;
};
/// Adds "breakdown", "critical_path" if it is known, "path", "path_parts" and "step_from".
void add_attribution(const Attribution& of, const Estimate<Seconds>& step, Document& document);

/// The key "path_parts", per step that the path covers.
Json json_path_parts(const program::PathParts& path);
/// Shares by provenance name.
Json json_provenance(const std::array<double, 4>& shares);

}  // namespace rehearse::cli
