// A fleet that has run, as text, JSON and rows.
#pragma once

#include <optional>
#include <string>

#include "cli/output/json.h"
#include "cli/output/table.h"
#include "sim/fleet/fleet.h"
#include "sim/fleet/job_list.h"

namespace rehearse::cli {

/// Of a run with slices: what rates rest on, by jobs that ended on one, and when all would be done
/// with rates at either end of their intervals.
struct OnSlices {
  std::size_t by_law = 0, by_share = 0;
  Nanoseconds soonest{0}, latest{0};
};

struct FleetRun {
  fleet::JobList list;
  fleet::Fleet fleet;
  fleet::Options options;
  fleet::Outcome outcome;
  std::optional<OnSlices> on_slices = {};
};

std::string fleet_text(const FleetRun& run);
Json fleet_json(const FleetRun& run);
/// One row per job of the list.
Table fleet_table(const FleetRun& run);

}  // namespace rehearse::cli
