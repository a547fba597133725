// Small jobs with spaces of plans, for what searches them.
#pragma once

#include <random>

#include "sim/cluster/cluster.h"
#include "strategies/search/search.h"
#include "strategies/step/plan_costs.h"

namespace rehearse::test {

struct PlanSpace {
  step::Spec spec;
  cluster::Cluster cluster;
  strategies::Space space;
};

/// A transformer, mixture or not, of random size on some nodes of A100; the axes are thinned out at
/// random, so that the space stays small.
PlanSpace random_plan_space(std::mt19937& random);

/// Figures of step time, memory, and money at a USD per device-second of the step.
strategies::Figures figures_of(const step::PlanCost& cost);

/// A judge by closed forms. `bounds`: else every bound is zero.
strategies::Judge judge_of(const PlanSpace& job, Bytes most, bool bounds);

}  // namespace rehearse::test
