// The gradients of a training step, as ops of a rank's program, for data parallelism to sum.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace rehearse::program {

/// A gradient, complete when the op `ready` ends.
struct Gradient {
  std::uint32_t ready;
  Bytes size;
};

/// The gradients of one step, in the order in which they become ready, and the ops that use them.
struct GradientStep {
  std::vector<Gradient> gradients;
  std::vector<std::uint32_t> users;
  bool whole = true;  ///< false for a step that the recording cuts
};

}  // namespace rehearse::program
