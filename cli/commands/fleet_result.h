// A fleet that has run, as text, JSON and rows.
#pragma once

#include <string>

#include "cli/output/json.h"
#include "cli/output/table.h"
#include "sim/fleet/fleet.h"
#include "sim/fleet/job_list.h"

namespace rehearse::cli {

struct FleetRun {
  fleet::JobList list;
  fleet::Fleet fleet;
  fleet::Options options;
  fleet::Outcome outcome;
};

std::string fleet_text(const FleetRun& run);
Json fleet_json(const FleetRun& run);
/// One row per job of the list.
Table fleet_table(const FleetRun& run);

}  // namespace rehearse::cli
