// Small jobs with spaces of plans, to test searches.
#pragma once

#include <random>

#include "sim/cluster/cluster.h"
#include "strategies/search/search.h"
#include "strategies/search/space.h"
#include "strategies/step/plan_costs.h"

namespace rehearse::test {

struct PlanSpace {
  step::Spec spec;
  cluster::Cluster cluster;
  strategies::Space space;
};

/// A transformer, with or without experts, of random size on some nodes of A100. The axes are
/// thinned out at random, so that the space stays small.
PlanSpace random_plan_space(std::mt19937& random);

/// Step time, memory, and cost at one USD per device-second of the step.
strategies::Figures figures_of(const step::PlanCost& cost);

/// A judge by closed forms. Without `bounds`, every bound is zero. REQUIRES: `job` outlives it.
strategies::Judge judge_of(const PlanSpace& job, Bytes most, bool bounds);

}  // namespace rehearse::test
