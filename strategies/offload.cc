#include "strategies/offload.h"

#include <algorithm>

namespace rehearse::strategies {
namespace {

using workload::Issue;
using workload::Layer;
using workload::Layout;
using workload::Op;
using workload::OpKind;
using workload::Stage;

Op copy(std::string_view name, double bytes, Issue issue) {
  return {.name = name, .kind = OpKind::kCopy, .bytes = Bytes::b(bytes), .issue = issue};
}

/// `held`: parameters of the layer that this rank updates. `microbatches`: the number whose
/// gradients leave the device one by one, for the host to add: two are read and one is written.
void update_on_host(Layer& layer, double held, double gradient, double weights,
                    std::uint32_t microbatches, Issue issue) {
  const auto update = std::find_if(layer.step.begin(), layer.step.end(),
                                   [](const Op& op) { return op.name == kUpdateName; });
  if (update == layer.step.end()) return;
  update->host = true;
  update->bytes += Bytes::b(3 * (microbatches - 1) * held * gradient);
  const Op sent = copy("gradients to host", held * gradient, issue);
  auto after = update + 1;
  if (microbatches > 1)
    layer.backward.push_back(sent);
  else
    after = layer.step.insert(update, sent) + 2;
  if (weights > 0) layer.step.insert(after, copy("weights from host", held * weights, issue));
}

void fetch_weights(Layer& layer, double bytes, Issue issue) {
  const Op fetch = copy("weights from host", bytes, issue);
  layer.forward.insert(layer.forward.begin(), fetch);
  std::vector<Op>& again = layer.recompute.empty() ? layer.backward : layer.recompute;
  again.insert(again.begin(), fetch);
}

double move_activations(Layer& layer, bool overlap) {
  double bytes = layer.saved_bytes().b();
  if (bytes == 0) return 0;
  layer.forward.push_back(
      copy("activations to host", bytes, overlap ? Issue::kDeferred : Issue::kInline));
  std::vector<Op>& again = layer.recompute.empty() ? layer.backward : layer.recompute;
  again.insert(again.begin(),
               copy("activations from host", bytes, overlap ? Issue::kPrefetched : Issue::kInline));
  std::erase_if(layer.saved, [](const workload::SavedActivation& k) { return !k.transient; });
  return bytes;
}

}  // namespace

Result<Layout> offload(Layout layout, const JobSetting& setting) {
  const Plan& plan = *setting.plan;
  const bool overlap = plan.overlap_gradients;
  const Issue issue = overlap ? Issue::kDeferred : Issue::kInline;
  const double weight = stored_bytes(setting.training->dtype);
  const double gradient = summed_bytes(*setting.training, plan);
  for (Stage& stage : layout.stages) {
    double largest = 0;
    for (workload::Chunk& chunk : stage.chunks)
      for (Layer& layer : chunk.layers) {
        if (plan.offload == Offload::kActivations) {
          largest = std::max(largest, move_activations(layer, overlap));
          continue;
        }
        const Parameters parameters = parameters_of(layer);
        if (parameters.read().summed() == 0) continue;
        const bool weights_too = plan.offload == Offload::kWeights;
        const bool gradients_too = plan.offload == Offload::kGradients;
        update_on_host(layer, updated(plan, parameters, stage.degrees), gradient,
                       weights_too ? 0 : weight, gradients_too ? layout.microbatches : 1, issue);
        if (gradients_too) largest = std::max(largest, gradient * parameters.summed());
        if (!weights_too) continue;
        const double fetched = weight * (plan.zero == 3 ? shard_of(parameters.read(), stage.degrees)
                                                        : parameters.read().summed());
        fetch_weights(layer, fetched, overlap ? Issue::kPrefetched : Issue::kInline);
        largest = std::max(largest, fetched);
      }
    stage.gathered += Bytes::b(2 * largest);
  }
  return layout;
}

}  // namespace rehearse::strategies
