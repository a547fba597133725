#include "models/workload/selective.h"

#include <algorithm>

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

}  // namespace rehearse::workload
