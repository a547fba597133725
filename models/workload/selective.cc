#include "models/workload/selective.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::workload {
namespace {

/// Query heads per head of keys and values.
double group_of(const Workload& workload) {
  double heads = 1, kv_heads = 0;
  for (const auto& [name, count] : workload.divided_by_tensor) {
    if (name == "heads") heads = count;
    if (name == "kv_heads") kv_heads = count;
  }
  return kv_heads > 0 ? heads / kv_heads : heads;
}

void save_products(Layer& block, double group, bool sums) {
  for (const Op& op : block.forward) {
    const bool saved = op.name == "query" || op.name == "value" || op.name == "attention" ||
                       op.name == "gate" || op.name == "down" || (sums && op.name == "projection");
    if (!saved) block.recompute.push_back(op);
  }
  std::vector<SavedActivation> saved;
  Bytes input = Bytes::b(0);
  for (SavedActivation k : block.saved) {
    const auto split = [&](double share) {
      SavedActivation rest = k;
      rest.bytes = k.bytes * (1 - share);
      rest.core = true;
      k.bytes = k.bytes * share;
      saved.push_back(rest);
    };
    if (k.name == "input") input = k.bytes;
    if (k.name == "keys and values")
      split(1 / (2 * group));
    else if (k.name == "activation input")
      split(0.5);
    else if (k.name != "input" && k.name != "queries" && k.name != "context" &&
             k.name != "log-sum-exp")
      k.core = true;
    if (k.name == "log-sum-exp") k.core = false;
    saved.push_back(k);
  }
  saved.push_back({.name = "feed-forward output", .bytes = input});
  block.saved = std::move(saved);
}

Result<std::vector<Layer*>> layers_named(Workload& workload, std::string_view pattern) {
  std::vector<Layer*> found;
  std::vector<std::string_view> names;
  for (Layer& layer : workload.layers) {
    names.emplace_back(layer.name);
    if (matches_wildcard(pattern, layer.name)) found.push_back(&layer);
  }
  if (found.empty())
    return fail(fmt::format("no layer is named '{}'", pattern), suggest(pattern, names));
  return found;
}

}  // namespace

void save_selectively(Workload& workload, Saved saved) {
  if (saved == Saved::kAllButScores) return;
  for (Layer& layer : workload.layers)
    if (layer.name.find("block") != std::string::npos)
      save_products(layer, group_of(workload), saved == Saved::kProductsAndSums);
}

void run_again(Workload& workload, std::span<const std::string> ops) {
  for (Layer& layer : workload.layers)
    for (const Op& op : layer.forward)
      if (std::ranges::find(ops, op.name) != ops.end()) layer.recompute.push_back(op);
}

Status recompute_layers(Workload& workload, std::string_view pattern) {
  for (Layer* const layer : TRY(layers_named(workload, pattern))) {
    if (!layer->recompute.empty()) continue;
    layer->recompute = layer->forward;
    for (const SavedActivation& saved : layer->saved)
      if (!saved.input && !saved.transient) layer->recomputed += saved.bytes;
    std::erase_if(layer->saved,
                  [](const SavedActivation& saved) { return !saved.input && !saved.transient; });
  }
  return {};
}

Status keep_layers(Workload& workload, std::string_view pattern) {
  bool any = false;
  for (Layer* const layer : TRY(layers_named(workload, pattern))) {
    any = any || !layer->recompute.empty();
    layer->recompute.clear();
    if (layer->recomputed > Bytes::b(0))
      layer->saved.push_back({.name = "outputs", .bytes = layer->recomputed});
    layer->recomputed = Bytes::b(0);
  }
  if (!any)
    return fail(fmt::format("no layer of '{}' runs operations again", pattern),
                "a recording with checkpoints");
  return {};
}

}  // namespace rehearse::workload
