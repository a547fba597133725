#include "strategies/offload.h"

#include <algorithm>

namespace rehearse::strategies {
namespace {

using workload::Issue, workload::Layer, workload::Layout, workload::Op, workload::OpKind,
    workload::Stage;

Op copy(std::string_view name, double bytes, Issue issue) {
  return {.name = name, .kind = OpKind::kCopy, .bytes = Bytes::b(bytes), .issue = issue};
}

/// `added`: the bytes that the host reads and writes to add up gradients.
void update_on_host(Layer& layer, const HostCopies& copies, double added, Issue issue) {
  const auto update = std::ranges::find(layer.step, kUpdateName, &Op::name);
  if (update == layer.step.end()) return;
  update->host = true;
  update->bytes += Bytes::b(added);
  auto after = update + 1;
  if (copies.backward > 0)
    layer.backward.push_back(copy("gradients to host", copies.backward, issue));
  else
    after = layer.step.insert(update, copy("gradients to host", copies.gradients, issue)) + 2;
  if (copies.weights > 0)
    layer.step.insert(after, copy("weights from host", copies.weights, issue));
}

/// Before backward, or before the recomputation that precedes it.
void put_again(Layer& layer, const Op& op) {
  std::vector<Op>& again = layer.recompute.empty() ? layer.backward : layer.recompute;
  again.insert(again.begin(), op);
}

void fetch_weights(Layer& layer, const HostCopies& copies, Issue issue) {
  layer.forward.insert(layer.forward.begin(), copy("weights from host", copies.forward, issue));
  put_again(layer, copy("weights from host", copies.again, issue));
}

void move_activations(Layer& layer, const HostCopies& copies, bool overlap) {
  layer.forward.push_back(
      copy("activations to host", copies.forward, overlap ? Issue::kDeferred : Issue::kInline));
  put_again(layer, copy("activations from host", copies.again,
                        overlap ? Issue::kPrefetched : Issue::kInline));
  std::erase_if(layer.saved, [](const workload::SavedActivation& k) { return !k.transient; });
}

}  // namespace

HostCopies host_copies(const Training& training, const Plan& plan, const Parameters& parameters,
                       double saved, const workload::Degrees& degrees, std::uint32_t microbatches) {
  HostCopies copies;
  if (plan.offload == Offload::kActivations) {
    copies.forward = copies.again = copies.present = saved;
    return copies;
  }
  if (!updates_on_host(plan.offload)) return copies;
  const double weight = stored_bytes(training.dtype), gradient = summed_bytes(training, plan);
  const double held = updated(plan, parameters, degrees);
  const bool each = plan.offload == Offload::kGradients && microbatches > 1;
  (each ? copies.backward : copies.gradients) = held * gradient;
  if (plan.offload == Offload::kGradients) copies.present = parameters.summed() * gradient;
  if (plan.offload != Offload::kWeights) {
    copies.weights = held * weight;
    return copies;
  }
  const Parameters read = parameters.read();
  const double fetched = plan.zero == 3 ? shard_of(read, degrees) : read.summed();
  copies.forward = copies.again = copies.present = weight * fetched;
  return copies;
}

Result<Layout> offload(Layout layout, const JobSetting& setting) {
  const Plan& plan = *setting.plan;
  const bool overlap = plan.overlap_gradients;
  const Issue issue = overlap ? Issue::kDeferred : Issue::kInline;
  for (Stage& stage : layout.stages) {
    double largest = 0;
    for (workload::Chunk& chunk : stage.chunks)
      for (Layer& layer : chunk.layers) {
        const HostCopies copies =
            host_copies(*setting.training, plan, parameters_of(layer), layer.saved_bytes().b(),
                        stage.degrees, layout.microbatches);
        largest = std::max(largest, copies.present);
        if (plan.offload == Offload::kActivations) {
          if (copies.forward > 0) move_activations(layer, copies, overlap);
          continue;
        }
        // Two gradients are read and one is written.
        if (copies.backward + copies.gradients > 0)
          update_on_host(layer, copies, 3 * (layout.microbatches - 1) * copies.backward, issue);
        if (copies.forward > 0)
          fetch_weights(layer, copies, overlap ? Issue::kPrefetched : Issue::kInline);
      }
    stage.gathered += Bytes::b(2 * largest);
  }
  return layout;
}

}  // namespace rehearse::strategies
