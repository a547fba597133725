// Jobs whose plans are searched: GPT-3 of 175 billion parameters on A100, nodes of eight.
#pragma once

#include "models/step/step.h"
#include "sim/cluster/cluster.h"
#include "strategies/search/search.h"

namespace rehearse::bench {

struct PlanJob {
  step::Spec spec;
  cluster::Cluster cluster;
  strategies::Space space;
};

/// 1,536 samples a step.
PlanJob gpt_175b_on(std::uint32_t gpus, const strategies::Axes& axes = {});

}  // namespace rehearse::bench
