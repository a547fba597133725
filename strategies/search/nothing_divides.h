// The reason why no plan of a number of ranks divides a job.
#pragma once

#include <optional>

#include "strategies/search/space.h"

namespace rehearse::strategies {

struct UndividedJob {
  const workload::Workload& workload;
  const Training& training;
  const Plan& plan;
  std::uint32_t ranks;
  const Axes& axes;
};

/// One line with the key of the given degree that must change, the number that it does not divide,
/// and the plan that differs from the given degrees in the fewest and the least. `refused`: the
/// first reason for which a plan of these ranks was refused. `fewer`: the nearest number of ranks
/// that has a plan; else 0. REQUIRES: Space::of finds no plan.
tl::unexpected<Error> nothing_divides(const UndividedJob& job, const std::optional<Error>& refused,
                                      std::uint32_t fewer);

}  // namespace rehearse::strategies
