#include "strategies/offload.h"

#include <algorithm>
#include <cmath>

namespace rehearse::strategies {
namespace {

using workload::Issue, workload::Layer, workload::Layout, workload::Op, workload::OpKind,
    workload::Stage;

Op copy(std::string_view name, const Moved& moved, Issue issue) {
  return {.name = name,
          .kind = OpKind::kCopy,
          .bytes = Bytes::b(moved.bytes),
          .issue = issue,
          .nvme = Bytes::b(moved.nvme)};
}

/// `added`: the bytes that the host reads and writes to add up gradients.
void update_on_host(Layer& layer, const HostCopies& copies, double added, Issue issue) {
  auto update = std::ranges::find(layer.step, kUpdateName, &Op::name);
  if (update == layer.step.end()) return;
  if (copies.updated < 1) {  // the device updates the rest
    Op rest = *update;
    rest.bytes = rest.bytes * (1 - copies.updated);
    update = layer.step.insert(update, rest) + 1;
    update->bytes = update->bytes * copies.updated;
  }
  update->host = true;
  update->bytes += Bytes::b(added);
  update->nvme = Bytes::b(copies.update_nvme);
  auto after = update + 1;
  if (copies.backward.bytes > 0)
    layer.backward.push_back(copy("gradients to host", copies.backward, issue));
  else
    after = layer.step.insert(update, copy("gradients to host", copies.gradients, issue)) + 2;
  if (copies.weights.bytes > 0)
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
  // The device has updated them.
  if (copies.updated == 0 && copies.weights.bytes > 0 && !layer.step.empty())
    layer.step.push_back(copy("weights to host", copies.weights, issue));
}

void move_activations(Layer& layer, const Moved& moved, double share, bool overlap) {
  layer.forward.push_back(
      copy("activations to host", moved, overlap ? Issue::kDeferred : Issue::kInline));
  put_again(layer,
            copy("activations from host", moved, overlap ? Issue::kPrefetched : Issue::kInline));
  for (workload::SavedActivation& saved : layer.saved)
    if (!saved.transient) {
      saved.bytes = saved.bytes * (1 - share);
      saved.unsure = saved.unsure * (1 - share);
    }
  if (share == 1)
    std::erase_if(layer.saved, [](const workload::SavedActivation& k) { return !k.transient; });
}

}  // namespace

HostCopies host_copies(const Training& training, const Plan& plan, const Parameters& parameters,
                       double saved, const workload::Degrees& degrees, std::uint32_t microbatches) {
  HostCopies copies;
  const StateTiers& tiers = plan.tiers;
  const double weight = stored_bytes(training.dtype), gradient = summed_bytes(training, plan);
  const double held = updated(plan, parameters, degrees);
  const double on_host = tiers.optimizer.away(), fetched = tiers.weights.away();
  const auto each_pass = [&](double bytes, Tier tier) {
    copies.forward.add(bytes, tier);
    copies.again.add(bytes, tier);
    copies.present += bytes;
  };
  each_pass(saved * tiers.activations.away(), tiers.activations.tier);
  const Parameters read = parameters.read();
  each_pass(fetched * weight * (plan.zero == 3 ? shard_of(read, degrees) : read.summed()),
            tiers.weights.tier);
  copies.updated = held > 0 ? on_host : 0;
  if (on_host > 0) {
    const bool kept = tiers.gradients != Tier::kDevice;
    (kept && microbatches > 1 ? copies.backward : copies.gradients)
        .add(on_host * held * gradient, tiers.gradients);
    // With ZeRO-3 the whole gradients count as gathered (Stage::gathering).
    if (kept) copies.present += (plan.zero == 3 ? held : parameters.summed()) * gradient;
  }
  // The host has updated more parameters than it keeps, or the device has.
  copies.weights.add(std::abs(on_host - fetched) * held * weight,
                     on_host > fetched ? Tier::kHost : tiers.weights.tier);
  // The update reads and writes the optimizer's states, reads gradients and writes weights.
  const double written = std::min(on_host, fetched);
  if (tiers.optimizer.tier == Tier::kNvme)
    copies.update_nvme += 2 * on_host * held * state_bytes(training, plan).optimizer;
  if (tiers.gradients == Tier::kNvme) copies.update_nvme += on_host * held * gradient;
  if (tiers.weights.tier == Tier::kNvme) copies.update_nvme += written * held * weight;
  return copies;
}

Result<Layout> offload(Layout layout, const JobSetting& setting) {
  const Plan& plan = *setting.plan;
  const bool overlap = plan.overlap_gradients;
  const Issue issue = overlap ? Issue::kDeferred : Issue::kInline;
  const Kept& activations = plan.tiers.activations;
  for (Stage& stage : layout.stages) {
    double largest = 0;
    for (workload::Chunk& chunk : stage.chunks)
      for (Layer& layer : chunk.layers) {
        const double saved = layer.saved_bytes().b();
        const Parameters parameters = parameters_of(layer);
        const HostCopies copies = host_copies(*setting.training, plan, parameters, saved,
                                              stage.degrees, layout.microbatches);
        largest = std::max(largest, copies.present);
        if (const double moved = saved * activations.away(); moved > 0) {
          Moved each;
          each.add(moved, activations.tier);
          move_activations(layer, each, activations.share, overlap);
          layer.away.add(moved, activations.on_nvme() > 0);
        }
        // Two gradients are read and one is written, by the host and, if they are there, the drives.
        const double added = 3 * (layout.microbatches - 1) * copies.backward.bytes;
        if (copies.updated > 0) update_on_host(layer, copies, added, issue);
        if (plan.tiers.weights.away() > 0 && parameters.read().summed() > 0)
          fetch_weights(layer, copies, overlap ? Issue::kPrefetched : Issue::kInline);
      }
    stage.gathered += Bytes::b(2 * largest);
  }
  return layout;
}

}  // namespace rehearse::strategies
