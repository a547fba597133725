// Confirms the best plans by SimGrid, if that takes only seconds.
#pragma once

#include <string>
#include <vector>

#include "cli/planning/find_plans.h"

namespace rehearse::cli {

/// Processor time for all plans together, by what their sizes say (step::RunSize): counted, not
/// measured, so that the same plans are confirmed everywhere.
inline constexpr Seconds kRefereeTime = Seconds::s(10);

struct Confirmed {
  std::size_t plans = 0;
  std::string left_out;  ///< why not all of them; else empty
};

/// Sets PlanTimes::refereed of the best, as many of them as fit in kRefereeTime; of those that
/// SimGrid has run already (`ran`), all. Fails where progress asks to stop. REQUIRES: every plan
/// has its step.
Result<Confirmed> referee_plans(std::vector<FoundPlan>& plans, const cluster::Cluster& cluster,
                                step::Fidelity ran, unsigned threads, const Progress& progress);

}  // namespace rehearse::cli
