// Why no plan keeps the limits, and which is the nearest that there is.
#pragma once

#include <functional>

#include "models/step/plan_costs.h"
#include "strategies/search/search.h"

namespace rehearse::cli {

struct FailedSearch {
  const step::Spec& spec;
  const cluster::Cluster& cluster;
  const strategies::Space& space;
  const strategies::Question& question;
  const strategies::Figures& asked;  ///< the limits that somebody set
};

/// `least` finds the plan that fits with the least of a figure.
tl::unexpected<Error> why_no_plan(
    const FailedSearch& failed, const strategies::Found& found, step::PlanCosts& costs,
    const std::function<strategies::Figures(const step::PlanCost&)>& figures,
    const std::function<Result<strategies::Found>(strategies::Figure)>& least);

}  // namespace rehearse::cli
