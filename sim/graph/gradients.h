// The gradients of a training step, as ops of a graph, for data parallelism to sum.
#pragma once

#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace rehearse::graph {

/// A gradient, complete when `ready` ends.
struct Gradient {
  OpId ready;
  Bytes size;
};

/// The gradients of one step, in the order in which they become ready, and the ops that use them.
struct GradientStep {
  std::vector<Gradient> gradients;
  std::vector<OpId> users;
  bool whole = true;  ///< false for a step that the recording cuts
};

}  // namespace rehearse::graph
