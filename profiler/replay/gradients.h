// The gradients of a recorded training job, for strategies that sum them over ranks.
#pragma once

#include <vector>

#include "profiler/replay/lower.h"
#include "sim/program/gradients.h"

namespace rehearse::replay {

struct Gradients {
  bool
      overlapped;  ///< the framework sums them in buckets during the backward pass; else their thread does
  std::vector<program::GradientStep> steps = {};
};

/// The gradients of one rank, found in one of two ways.
///
/// PyTorch: operators torch::autograd::AccumulateGrad with the shape and type of their input. A
/// gradient is ready with the last device op that its thread launched up to the operator's end; its
/// users are the next ops of each stream after the last gradient of the step. Without a device, it is
/// ready with the operator; its user is the next operator of its thread.
///
/// NVTX: ranges or marks "gradient" whose payload is the number of bytes. A gradient is ready where
/// the range ends, and the thread itself would sum it there: it has no users.
///
/// Fails if there are none, or if sizes were not recorded.
Result<Gradients> find_gradients(const Recording& recording, const RankReplay& rank);

}  // namespace rehearse::replay
