#include "strategies/layer_split.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "strategies/transform.h"

namespace rehearse::strategies {
namespace {

using workload::Workload;

std::vector<std::uint32_t> evenly(std::uint32_t layers, std::uint32_t chunks) {
  std::vector<std::uint32_t> counts(chunks, layers / chunks);
  std::uint32_t over = layers % chunks;
  for (std::uint32_t c = 1; c + 1 < chunks && over > 0; ++c, --over) ++counts[c];
  if (over > 0) ++counts.front();
  return counts;
}

/// Sums of FLOPs of the first layers, from none to all.
std::vector<double> flops_before(const Workload& w) {
  std::vector<double> sums = {0};
  for (const workload::Layer& layer : w.layers) {
    Flops flops = Flops::flop(0);
    for (const std::vector<workload::Op>* ops : {&layer.forward, &layer.backward})
      for (const workload::Op& op : *ops)
        if (!op.communicates()) flops += flops_of(op);
    for (std::uint32_t i = 0; i < layer.count; ++i) sums.push_back(sums.back() + flops.flop());
  }
  return sums;
}

std::vector<std::uint32_t> by_flops(const Workload& w, std::uint32_t chunks) {
  const std::vector<double> before = flops_before(w);
  const auto n = static_cast<std::uint32_t>(before.size() - 1);
  // For chunks that hold the first layers: the largest chunk, and the sum of squares.
  using Cost = std::pair<double, double>;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<Cost> best(n + 1, {kNone, kNone});
  best[0] = {0, 0};
  std::vector<std::vector<std::uint32_t>> from(chunks, std::vector<std::uint32_t>(n + 1, 0));
  for (std::uint32_t c = 0; c < chunks; ++c) {
    std::vector<Cost> next(n + 1, {kNone, kNone});
    for (std::uint32_t end = c + 1; end <= n; ++end)
      for (std::uint32_t begin = c; begin < end; ++begin) {
        const double own = before[end] - before[begin];
        const Cost cost{std::max(best[begin].first, own), best[begin].second + own * own};
        if (cost >= next[end]) continue;
        next[end] = cost;
        from[c][end] = begin;
      }
    best = std::move(next);
  }
  std::vector<std::uint32_t> counts(chunks);
  std::uint32_t end = n;
  for (std::uint32_t c = chunks; c-- > 0;) {
    counts[c] = end - from[c][end];
    end = from[c][end];
  }
  return counts;
}

}  // namespace

LayerSplit split_for(const Workload& w, const Plan& plan) {
  if (plan.split) return *plan.split;
  const std::uint32_t chunks = plan.pipeline * plan.interleave;
  const auto even = [&](LayerSplit split) { return shared_layers(w, split) % chunks == 0; };
  return plan.interleave > 1 && !even(LayerSplit::kBlocks) && even(LayerSplit::kLayers)
             ? LayerSplit::kLayers
             : LayerSplit::kBlocks;
}

std::uint32_t shared_layers(const Workload& w, LayerSplit split) {
  std::uint32_t layers = w.layer_count();
  for (std::size_t i = 0; split == LayerSplit::kBlocks && i < w.layers.size(); ++i)
    layers -= is_extra(w, i);
  return layers;
}

std::vector<std::uint32_t> layers_of_chunks(const Workload& w, const Plan& plan) {
  if (!plan.stages.empty()) {
    std::vector<std::uint32_t> counts;
    std::uint32_t left = w.layer_count();
    for (const StagePlan& stage : plan.stages) {
      counts.push_back(stage.layers == 0 ? left : stage.layers);
      left -= counts.back();
    }
    return counts;
  }
  const std::uint32_t chunks = plan.pipeline * plan.interleave;
  const LayerSplit split = split_for(w, plan);
  if (split == LayerSplit::kFlops) return by_flops(w, chunks);
  std::vector<std::uint32_t> counts = evenly(shared_layers(w, split), chunks);
  if (split == LayerSplit::kBlocks) {
    counts.front() += is_extra(w, 0);
    counts.back() += is_extra(w, w.layers.size() - 1);
  }
  return counts;
}

std::vector<std::vector<LayerPart>> parts_of_chunks(const Workload& w, const Plan& plan) {
  std::vector<std::vector<LayerPart>> chunks;
  std::uint32_t layer = 0, taken = 0;  // of that layer's count
  for (std::uint32_t left : layers_of_chunks(w, plan)) {
    std::vector<LayerPart>& parts = chunks.emplace_back();
    while (left > 0) {
      const std::uint32_t count = std::min(left, w.layers[layer].count - taken);
      if (count > 0) parts.push_back({layer, count});
      left -= count;
      taken += count;
      if (taken < w.layers[layer].count) continue;
      ++layer;
      taken = 0;
    }
  }
  return chunks;
}

}  // namespace rehearse::strategies
