#include <algorithm>

#include "strategies/transforms.h"

namespace rehearse::strategies {
namespace {

using workload::Layer, workload::Op, workload::SavedActivation;

template <class Dropped>
void drop(Layer& layer, Dropped dropped) {
  for (const SavedActivation& saved : layer.saved)
    if (dropped(saved)) layer.recomputed += saved.bytes;
  std::erase_if(layer.saved, dropped);
}

}  // namespace

Result<workload::Workload> recompute(workload::Workload workload, const RankSetting& setting) {
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    Layer& layer = workload.layers[i];
    const auto core = [](const SavedActivation& k) { return k.core && !k.transient; };
    if (!layer.recompute.empty()) {  // it says itself what runs again
      drop(layer, core);
      continue;
    }
    if (setting.recompute != Recompute::kSelective) {
      const bool says_input =
          std::ranges::any_of(layer.saved, [](const SavedActivation& k) { return k.input; });
      if (!says_input || is_extra(workload, i)) continue;
      drop(layer, [](const SavedActivation& k) { return !k.input && !k.transient; });
      layer.recompute = layer.forward;
    } else {
      if (std::ranges::none_of(layer.saved, core)) continue;
      drop(layer, core);
      for (const Op& op : layer.forward)
        if (op.core) layer.recompute.push_back(op);
    }
  }
  return workload;
}

}  // namespace rehearse::strategies
