#include "strategies/shard_parameters.h"

#include <algorithm>

namespace rehearse::strategies {
namespace {

using workload::Chunk;
using workload::Issue;
using workload::Layer;
using workload::Layout;
using workload::Op;
using workload::Stage;

void put_first(std::vector<Op>& ops, const std::vector<Op>& added) {
  ops.insert(ops.begin(), added.begin(), added.end());
}

void by_layer(Layer& layer, const workload::Degrees& degrees, double weights, double gradient,
              bool overlap) {
  const Parameters parameters = parameters_of(layer);
  std::vector<Op> gather;
  add_collectives(gather, "gather weights", CollectiveKind::kAllGather, parameters, weights,
                  degrees, overlap ? Issue::kPrefetched : Issue::kInline);
  put_first(layer.forward, gather);
  if (!layer.backward.empty())
    put_first(layer.recompute.empty() ? layer.backward : layer.recompute, gather);
  add_collectives(layer.backward, "sum and scatter gradients", CollectiveKind::kReduceScatter,
                  parameters, gradient, degrees, overlap ? Issue::kDeferred : Issue::kInline);
}

void by_step(Layer& layer, const workload::Degrees& degrees, double weights, double gradient,
             bool overlap) {
  const Parameters parameters = parameters_of(layer);
  const Issue issue = overlap ? Issue::kDeferred : Issue::kInline;
  std::vector<Op> sums;
  add_collectives(sums, "sum and scatter gradients", CollectiveKind::kReduceScatter, parameters,
                  gradient, degrees, issue);
  put_first(layer.step, sums);
  add_collectives(layer.step, "gather weights", CollectiveKind::kAllGather, parameters, weights,
                  degrees, issue);
}

}  // namespace

Result<Layout> shard_parameters(Layout layout, const JobSetting& setting) {
  const Plan& plan = *setting.plan;
  const double weights = stored_bytes(setting.training->dtype);
  const double each = summed_bytes(*setting.training, plan);
  const double gradient = each * plan.compression;
  const bool pipeline = layout.stages.size() > 1;
  for (Stage& stage : layout.stages) {
    const Parameters all = parameters_of(stage);
    if (all.total() == 0) continue;
    const double shard = shard_of(all, stage.degrees) / all.total();
    stage.states.weights *= shard;
    stage.states.gradient *= shard;
    stage.states.optimizer *= shard;
    const bool repeats =
        std::any_of(stage.chunks.front().layers.begin(), stage.chunks.front().layers.end(),
                    [](const Layer& l) { return l.count > 1; });
    double largest = 0, largest_end = 0;
    for (Chunk& chunk : stage.chunks)
      for (Layer& layer : chunk.layers) {
        const Parameters parameters = parameters_of(layer);
        if (parameters.total() == 0) continue;
        const bool end = repeats && layer.count == 1 &&
                         (&layer == &chunk.layers.front() || &layer == &chunk.layers.back());
        (end ? largest_end : largest) = std::max(end ? largest_end : largest, parameters.total());
        layer.step.push_back(update_of(shard_of(parameters, stage.degrees), setting));
        if (sharers(stage.degrees, false) <= 1) continue;
        if (pipeline)
          by_step(layer, stage.degrees, weights, gradient, plan.overlap_gradients);
        else
          by_layer(layer, stage.degrees, weights, gradient, plan.overlap_gradients);
      }
    if (sharers(stage.degrees, false) > 1)
      stage.gathered += Bytes::b(pipeline ? all.total() * (weights + each)
                                          : largest * (2 * weights + each) + largest_end * weights);
  }
  return layout;
}

}  // namespace rehearse::strategies
