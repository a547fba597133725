#include "strategies/step/fit_recompute.h"

#include <algorithm>

#include "strategies/lay_out.h"
#include "strategies/step/devices.h"

namespace rehearse::step {

using strategies::Recompute;
using workload::Layer;
using workload::Layout;
using workload::Stage;

namespace {

std::uint32_t layers_of(const Stage& stage) {
  std::uint32_t layers = 0;
  for (const workload::Chunk& chunk : stage.chunks)
    for (const Layer& layer : chunk.layers) layers += layer.count;
  return layers;
}

/// The stage with its first layers from another layout of it, which has the same layers.
Stage mixed(const Stage& first, const Stage& rest, std::uint32_t layers) {
  Stage stage = layers > 0 ? first : rest;
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    std::vector<Layer> chosen;
    for (std::size_t i = 0; i < rest.chunks[c].layers.size(); ++i) {
      const std::uint32_t count = rest.chunks[c].layers[i].count, taken = std::min(count, layers);
      layers -= taken;
      for (const auto& [from, number] :
           {std::pair{&first, taken}, std::pair{&rest, count - taken}}) {
        if (number == 0) continue;
        chosen.push_back(from->chunks[c].layers[i]);
        chosen.back().count = number;
      }
    }
    stage.chunks[c].layers = std::move(chosen);
  }
  return stage;
}

}  // namespace

Result<Layout> lay_out_on(const cluster::Cluster& cluster, const workload::Workload& workload,
                          const strategies::Training& training, const strategies::Plan& plan) {
  if (training.recompute != Recompute::kAsNeeded)
    return strategies::lay_out(workload, training, plan);
  strategies::Training without = training;
  without.recompute = Recompute::kNone;
  const Layout all = TRY(strategies::lay_out(workload, training, plan)),
               none = TRY(strategies::lay_out(workload, without, plan));
  // Stages do not depend on each other: one bisection for all of them.
  struct Bounds {
    std::uint32_t low, high;  // the smallest number that fits is among these
  };
  std::vector<Bounds> bounds;
  for (const Stage& stage : all.stages) bounds.push_back({0, layers_of(stage)});
  const auto with = [&](auto number) {
    Layout layout = all;
    for (std::size_t s = 0; s < bounds.size(); ++s)
      layout.stages[s] = mixed(all.stages[s], none.stages[s], number(bounds[s]));
    return layout;
  };
  const auto middle = [](const Bounds& b) { return (b.low + b.high) / 2; };
  while (
      std::any_of(bounds.begin(), bounds.end(), [](const Bounds& b) { return b.low < b.high; })) {
    const std::vector<memory::StageMemory> memory = TRY(memory_on(with(middle), cluster));
    for (std::size_t s = 0; s < bounds.size(); ++s)
      if (memory[s].fit == memory::Fit::kDoesNotFit)
        bounds[s].low = std::min(bounds[s].high, middle(bounds[s]) + 1);
      else
        bounds[s].high = middle(bounds[s]);
  }
  return with([](const Bounds& b) { return b.low; });
}

}  // namespace rehearse::step
