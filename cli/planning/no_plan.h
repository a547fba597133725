// The error if no plan meets the limits: the reason, and the nearest plan.
#pragma once

#include <functional>

#include "strategies/search/search.h"
#include "strategies/search/space.h"
#include "strategies/step/plan_costs.h"

namespace rehearse::cli {

struct FailedSearch {
  const step::Spec& spec;
  const cluster::Cluster& cluster;
  const strategies::Space& space;
  const strategies::Question& question;
  const strategies::Figures& asked;  ///< the limits that were set explicitly
  std::uint32_t ranks;
  Bytes fits;        ///< the most memory of the smallest device that a plan may use
  bool look_beyond;  ///< whether to search the plans without the given keys
};

/// Searches a space by one figure, within limits, for the single best plan.
using SearchAgain = std::function<Result<strategies::Found>(
    const strategies::Space&, strategies::Figure, const strategies::Figures& at_most)>;

tl::unexpected<Error> why_no_plan(const FailedSearch& failed, step::PlanCosts& costs,
                                  const SearchAgain& again);

}  // namespace rehearse::cli
