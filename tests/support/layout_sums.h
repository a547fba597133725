// Sums over the ranks and microbatches of a layout, for conservation laws.
#pragma once

#include <functional>
#include <optional>

#include "models/workload/layout.h"

namespace rehearse::test {

/// Calls visit(op, stage, times), where `times` is how often a rank of the stage runs the op per
/// step.
using VisitOp = std::function<void(const workload::Op&, const workload::Stage&, double times)>;
inline void visit_ops(const workload::Layout& layout, const VisitOp& visit) {
  for (const workload::Stage& stage : layout.stages)
    for (const workload::Chunk& chunk : stage.chunks)
      for (const workload::Layer& layer : chunk.layers) {
        for (const auto* phase : {&layer.forward, &layer.backward, &layer.recompute})
          for (const workload::Op& op : *phase)
            visit(op, stage, double(layer.count) * layout.microbatches);
        for (const workload::Op& op : layer.step) visit(op, stage, layer.count);
      }
}

/// FLOPs of a step over all ranks, including recomputation.
inline Flops flops_over_ranks(const workload::Layout& layout) {
  Flops sum = Flops::flop(0);
  visit_ops(layout, [&](const workload::Op& op, const workload::Stage& stage, double times) {
    sum += flops_of(op) * (times * stage.degrees.ranks());
  });
  return sum;
}

/// Parameters, summed over the ranks that hold different ones.
inline double parameters_over_ranks(const workload::Layout& layout) {
  double sum = 0;
  for (const workload::Stage& stage : layout.stages)
    for (const workload::Chunk& chunk : stage.chunks)
      for (const workload::Layer& layer : chunk.layers)
        for (const workload::Weights& w : layer.weights)
          sum += layer.count * w.count * (w.tensor ? stage.degrees.tensor : 1) *
                 (w.expert ? stage.degrees.expert : 1);
  return sum;
}

/// The bytes that one rank of each stage passes to such collectives per step.
inline double collective_bytes(const workload::Layout& layout, workload::Axis axis,
                               std::optional<CollectiveKind> kind = {}) {
  double sum = 0;
  visit_ops(layout, [&](const workload::Op& op, const workload::Stage&, double times) {
    if (op.kind == workload::OpKind::kCollective && op.axis == axis &&
        (!kind || op.collective == *kind))
      sum += op.bytes.b() * times;
  });
  return sum;
}

}  // namespace rehearse::test
