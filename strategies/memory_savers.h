// Changes of a training and its plan that need less memory per rank: what to try where one does not
// fit.
#pragma once

#include <string>
#include <vector>

#include "strategies/plan.h"

namespace rehearse::strategies {

struct MemorySaver {
  std::string change;  ///< for people: "full recomputation", "tensor parallelism 8"
  Training training;
  Plan plan;
};

/// One change each, of the same number of ranks and the same global batch. Whether it can be laid
/// out, and what it saves, is for lay_out and a memory model to say. Plans with stages of their own
/// are changed in what all stages share alone.
std::vector<MemorySaver> memory_savers(const Training& training, const Plan& plan);

}  // namespace rehearse::strategies
