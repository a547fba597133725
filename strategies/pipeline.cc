#include <algorithm>

#include "strategies/check_plan.h"
#include "strategies/layer_split.h"
#include "strategies/states.h"
#include "strategies/transforms.h"

namespace rehearse::strategies {
namespace {

using workload::Axis, workload::Chunk, workload::Layer, workload::Layout, workload::Stage,
    workload::Workload;

std::vector<Layer> layers_of(const Workload& w, std::span<const LayerPart> parts) {
  std::vector<Layer> taken;
  for (const LayerPart& part : parts) {
    taken.push_back(w.layers[part.layer]);
    taken.back().count = part.count;
    taken.back().inputs.clear();
  }
  return taken;
}

/// The data that crosses the border before layer `at` besides the output of the previous layer:
/// outputs of earlier layers that later ones read.
Bytes passed_along(const Workload& w, std::uint32_t at) {
  std::vector<bool> taken(w.layers.size(), false);
  std::uint32_t first = 0;
  for (const Layer& layer : w.layers) {
    if (first >= at)
      for (const std::uint32_t input : layer.inputs) taken[input] = true;
    first += layer.count;
  }
  Bytes sum = Bytes::b(0);
  std::uint32_t end = 0;
  for (std::size_t i = 0; i < w.layers.size(); ++i) {
    end += w.layers[i].count;
    if (end >= at) break;
    if (taken[i]) sum += w.layers[i].output;
  }
  return sum;
}

workload::Op gathered_border(double bytes) {
  return collective("gather across the stage border", CollectiveKind::kAllGather, Axis::kTensor,
                    bytes);
}

/// The matrix that the first layer shares with the last.
double vocabulary_matrix(const Workload& w) {
  double most = 0;
  for (const workload::Weights& weights : w.layers.front().weights)
    if (weights.tensor) most = std::max(most, weights.count);
  return most;
}

}  // namespace

Result<Layout> cut_stages(std::span<const StageSource> sources, const Workload& sample) {
  const Training& training = *sources[0].setting.training;
  const Plan& plan = *sources[0].setting.plan;
  const std::uint32_t p = static_cast<std::uint32_t>(sources.size());
  const std::vector<std::vector<LayerPart>> chunks = parts_of_chunks(sample, plan);

  Layout layout{.microbatches = microbatches_of(training, plan),
                .samples_per_step = training.global_batch,
                .tokens_per_sample = sample.tokens_per_sample,
                .model_flops = sample.model_flops() * (training.global_batch / sample.samples)};
  layout.stages.reserve(p);
  for (const StageSource& source : sources)
    layout.stages.push_back(Stage{.name = source.name,
                                  .degrees = source.setting.degrees,
                                  .first_rank = source.setting.first_rank,
                                  .together = source.setting.together});
  std::uint32_t first = 0;
  for (std::uint32_t c = 0; c < chunks.size(); ++c) {
    const StageSource& source = sources[c % p];
    Chunk chunk{layers_of(*source.workload, chunks[c]), first};
    for (const LayerPart& part : chunks[c]) first += part.count;
    if (const Bytes more = passed_along(*source.workload, first);
        more > Bytes::b(0) && c + 1 < chunks.size())
      alone_at_back(chunk.layers).output += more;
    const double t = source.setting.degrees.tensor;
    if (t > 1 && !plan.sequence_parallel) {
      if (c > 0) {
        // The same number of elements as the output of the previous layer.
        const Layer& before = layout.stages[(c - 1) % p].chunks.back().layers.back();
        const double sent = before.output.b() * sources[(c - 1) % p].setting.degrees.ranks() /
                            source.setting.degrees.ranks();
        Layer& layer = alone_at_front(chunk.layers);
        layer.forward.insert(layer.forward.begin(), gathered_border(sent * t));
      }
      if (c + 1 < chunks.size()) {
        Layer& layer = alone_at_back(chunk.layers);
        layer.backward.insert(layer.backward.begin(), gathered_border(layer.output.b() * t));
      }
    }
    layout.stages[c % p].chunks.push_back(std::move(chunk));
  }
  if (sample.tied_embedding && p > 1) {
    // The size of the embedding as a rank of the last stage would hold it.
    const double matrix = vocabulary_matrix(*sources.back().workload);
    const bool frozen = sample.layers.front().trained_parameters() == 0;
    layout.stages.back().chunks.back().layers.back().weights.push_back(
        {.count = matrix, .tensor = true, .frozen = frozen});
    if (!frozen) layout.tied_gradient = Bytes::b(matrix * summed_bytes(training, plan));
  }
  for (Stage& stage : layout.stages) {
    const Parameters held = parameters_of(stage);
    stage.states = states_of(training, plan, held, stage.degrees);
    stage.away = away_of(training, plan, held, stage.degrees);
    double largest = 0;  // of the matrices that a pass writes in the format of operands
    for (const workload::Chunk& chunk : stage.chunks)
      for (const Layer& layer : chunk.layers)
        for (const workload::Weights& w : layer.weights)
          if (w.nf4) largest = std::max(largest, w.count);
    stage.gathered += Bytes::b(largest * stored_bytes(training.dtype));
  }
  return layout;
}

}  // namespace rehearse::strategies
