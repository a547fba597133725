#include "strategies/recompute.h"

#include <algorithm>

namespace rehearse::strategies {
namespace {

using workload::Kept;
using workload::Layer;
using workload::Op;

template <class Dropped>
void drop(Layer& layer, Dropped dropped) {
  for (const Kept& kept : layer.kept)
    if (dropped(kept)) layer.recomputed += kept.bytes;
  std::erase_if(layer.kept, dropped);
}

}  // namespace

Result<workload::Workload> recompute(workload::Workload workload, const RankSetting& setting) {
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    Layer& layer = workload.layers[i];
    const auto core = [](const Kept& k) { return k.core && !k.transient; };
    if (!layer.recompute.empty()) {  // it says itself what runs again
      drop(layer, core);
      continue;
    }
    if (setting.recompute == Recompute::kFull) {
      const bool says_input =
          std::any_of(layer.kept.begin(), layer.kept.end(), [](const Kept& k) { return k.input; });
      if (!says_input || is_extra(workload, i)) continue;
      drop(layer, [](const Kept& k) { return !k.input && !k.transient; });
      layer.recompute = layer.forward;
    } else {
      if (std::none_of(layer.kept.begin(), layer.kept.end(), core)) continue;
      drop(layer, core);
      for (const Op& op : layer.forward)
        if (op.core) layer.recompute.push_back(op);
    }
  }
  return workload;
}

}  // namespace rehearse::strategies
