// Data parallelism: every rank computes the same step on its own samples, and gradients are summed
// over the ranks before the optimizer uses them.
#pragma once

#include <vector>

#include "sim/base/result.h"
#include "sim/program/gradients.h"
#include "sim/program/program.h"

namespace rehearse::strategies {

struct DataParallelPlan {
  std::uint32_t ranks;
  /// Gradients are sent in buckets of at least this size, as PyTorch's DistributedDataParallel does
  /// (its default, from its documentation: 25 MiB).
  Bytes bucket = Bytes::mib(25);
  /// True: an all-reduce overlaps the backward pass, on its own stream. False: the thread
  /// that computed a gradient runs its all-reduce at once, as blocking MPI code does.
  bool overlap = true;
  /// By position in the step: how much later the slowest rank has a gradient than this one
  /// (stragglers.h). Empty: all have it at once.
  std::vector<Seconds> lateness = {};
};

/// Makes a program of one rank that of one of plan.ranks ranks, which are all equal. Ops keep their
/// numbers; the all-reduces, of no duration yet (job::price), follow them. With one rank the program
/// is unchanged. Fails without gradients.
Status data_parallel(program::Program& program, const std::vector<program::GradientStep>& steps,
                     const DataParallelPlan& plan);

}  // namespace rehearse::strategies
