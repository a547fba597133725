// Changes of a training and its plan that reduce the memory per rank, for jobs that do not
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

/// Single changes with the same number of ranks and the same global batch. lay_out and a memory
/// model decide whether it can be laid out, and its effect. In plans with stages of their own
/// only settings shared by all stages are changed.
std::vector<MemorySaver> memory_savers(const Training& training, const Plan& plan);

}  // namespace rehearse::strategies
