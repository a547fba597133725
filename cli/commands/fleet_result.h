// The document of `rehearse fleet`.
#pragma once

#include <optional>

#include "cli/output/document.h"
#include "sim/fleet/fleet.h"
#include "sim/fleet/job_list.h"

namespace rehearse::cli {

/// The basis of the rates on slices, by the number of jobs that ended on one, and the makespan with
/// the rates at either end of their intervals.
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

/// The document has a row per job.
Document fleet_document(const FleetRun& run);

}  // namespace rehearse::cli
