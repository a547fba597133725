// Data parallelism: every rank computes the same step on its own samples, and gradients are summed
// over the ranks before the optimizer uses them.
#pragma once

#include <vector>

#include "sim/base/result.h"
#include "sim/graph/collective_op.h"
#include "sim/graph/gradients.h"
#include "sim/graph/graph.h"

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

struct DataParallelGraph {
  graph::Graph graph;
  /// All-reduces of no duration yet, for a cost model to set.
  std::vector<graph::CollectiveOp> collectives;
};

/// The graph of one of the ranks, which are all equal. Ops keep their ids; the all-reduces follow
/// them. With one rank the graph is unchanged.
/// Fails without gradients, and on gradients that are used before they are computed.
Result<DataParallelGraph> data_parallel(const graph::Graph& graph,
                                        const std::vector<graph::GradientStep>& steps,
                                        const DataParallelPlan& plan);

}  // namespace rehearse::strategies
