// The algorithms of collectives as an axis of the search: they are tried on the best plans alone.
#pragma once

#include <functional>
#include <optional>

#include "models/workload/workload.h"
#include "strategies/search/space.h"

namespace rehearse::cli {

/// The objective of a plan; nothing if it breaks a limit, or if its prices do not compare with those
/// of the plan that it was made from.
using Objective = std::function<std::optional<double>(const strategies::Candidate& other,
                                                      const strategies::Candidate& from)>;

/// The plan with named algorithms for kinds of collectives that it uses and that `free` leaves open:
/// kind by kind the best one, if it gains more than kNoise (find_plans.h). Nothing if none does.
/// Algorithms in which switches add are not tried, because not all clusters have them.
std::optional<strategies::Candidate> with_algorithms(const workload::Workload& workload,
                                                     const strategies::Candidate& plan,
                                                     const strategies::Axes& free,
                                                     const Objective& objective);

}  // namespace rehearse::cli
