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

/// The message buffers of PyTorch's pipeline: a buffer for every activation and gradient that a
/// stage receives in a step (activations in flight count as its layers' inputs), and its sent data
/// until the gradient of that data comes back.
Bytes messages_of(const Layout& layout, std::size_t s) {
  const std::size_t stages = layout.stages.size();
  const double all = layout.microbatches;
  const double in_flight = std::min(all, static_cast<double>(stages - s));
  Bytes bytes = Bytes::b(0);
  if (s > 0) bytes += layout.stages[s - 1].chunks.back().layers.back().output * (all - in_flight);
  if (s + 1 < stages)
    bytes += layout.stages[s].chunks.back().layers.back().output * (all + in_flight);
  return bytes;
}

}  // namespace

Result<Layout> shard_parameters(Layout layout, const JobSetting& setting) {
  const Plan& plan = *setting.plan;
  const ParameterTraffic moves =
      traffic_of(*setting.training, plan, layout.stages.size(), layout.microbatches);
  const double weights = moves.weights, gradient = moves.gradient;
  const double each = summed_bytes(*setting.training, plan);
  const bool pipeline = moves.when != ParameterTraffic::When::kLayerByLayer;
  for (std::size_t s = 0; s < layout.stages.size(); ++s) {
    Stage& stage = layout.stages[s];
    for (Chunk& chunk : stage.chunks)
      for (Layer& layer : chunk.layers) {
        add_update(layer, updated(plan, parameters_of(layer), stage.degrees), layout.microbatches,
                   setting);
        add_row_gradients(layer, gradient, layout.microbatches, stage.degrees,
                          plan.overlap_gradients ? Issue::kDeferred : Issue::kInline);
        if (stage.degrees.sharers(false) <= 1) continue;
        if (pipeline)
          by_step(layer, stage.degrees, weights, gradient, plan.overlap_gradients);
        else
          by_layer(layer, stage.degrees, weights, gradient, plan.overlap_gradients);
      }
    if (stage.degrees.sharers(false) <= 1) continue;
    // Gradients as backward leaves them, and the copy that is summed and scattered.
    stage.gathering.gradient = weights + each;
    if (pipeline) {
      stage.gathered +=
          Bytes::b(parameters_of(stage).summed() * (weights + each)) + messages_of(layout, s);
    } else {
      stage.gathering.weights = weights;
      stage.gathering.ahead = 1;
    }
  }
  return layout;
}

}  // namespace rehearse::strategies
