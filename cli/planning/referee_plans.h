// Confirms the best plans by SimGrid, if that takes only seconds.
#pragma once

#include <string>
#include <vector>

#include "cli/planning/find_plans.h"

namespace rehearse::cli {

/// The processor time for all plans together, estimated from their sizes (step::RunSize) and not
/// measured, so that the same plans are confirmed on every machine.
inline constexpr Seconds kRefereeTime = Seconds::s(2), kThoroughRefereeTime = Seconds::s(10);

struct Confirmed {
  std::size_t plans = 0;
  std::string left_out;  ///< why some were not confirmed; else empty
};

/// Sets PlanTimes::refereed of the best plans, as many as fit in `most` processor time; of all plans
/// if SimGrid has run them already (`ran`). Fails if progress asks to stop. REQUIRES: the plans are of
/// this job, and every one has its step and size.
Result<Confirmed> referee_plans(std::vector<FoundPlan>& plans, const step::Spec& spec,
                                const cluster::Cluster& cluster, step::Fidelity ran, Seconds most,
                                unsigned threads, const Progress& progress);

}  // namespace rehearse::cli
