// The number of found plans that are run message by message: what some seconds of processor time pay
// for. It comes from the sizes of the runs and a measured cost per unit of work, so that it is the
// same on every machine.
#pragma once

#include <cstddef>
#include <vector>

#include "cli/planning/find_plans.h"
#include "strategies/search/space.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

/// The number of plans of a space that may be run: the best 5 %, but at most as many as can be run in
/// some seconds by the sizes of sample plans, and at least 20 (100 if `thorough`).
std::size_t runs_of(const step::Spec& spec, const strategies::Space& space, bool thorough);

/// Keeps the first plans that can be run in these seconds, and at least the same 20 (100): the best
/// plans may take longer to run than the samples.
void keep_runnable(const workload::Workload& workload, bool thorough,
                   std::vector<FoundPlan>& plans);

/// Keeps the first plans that may be run with all ranks. Keeps all, and returns false, if these are
/// fewer than `least`, because times with and without contention are not comparable.
bool keep_affordable(std::size_t least, std::vector<FoundPlan>& plans);

/// If they are fewer: the processor time of the recommended plan and those that take its place, run with all
/// ranks.
inline constexpr Seconds kTimeOfAnswer = Seconds::s(2);

}  // namespace rehearse::cli
