// The values of a plan's fields that make a difference for a workload.
#pragma once

#include <vector>

#include "models/workload/workload.h"
#include "strategies/plan.h"

namespace rehearse::strategies {

struct UsefulAxes {
  bool weight_gradients = false;   ///< some ops are marked, so zero_bubble can defer them
  bool unfused_attention = false;  ///< its keys and values cannot be sent around a ring
  std::vector<Recompute> recompute = {Recompute::kNone};
};

inline UsefulAxes useful_axes(const workload::Workload& workload) {
  UsefulAxes useful;
  bool core = false, input = false;
  for (const workload::Layer& layer : workload.layers) {
    for (const workload::Op& op : layer.backward) useful.weight_gradients |= op.weight_gradient;
    for (const workload::Op& op : layer.forward)
      useful.unfused_attention |= op.core && op.kind == workload::OpKind::kGemm;
    for (const workload::SavedActivation& saved : layer.saved) {
      core |= saved.core && !saved.transient;
      input |= saved.input;
    }
  }
  if (core) useful.recompute.push_back(Recompute::kSelective);
  if (input) useful.recompute.push_back(Recompute::kFull);
  return useful;
}

}  // namespace rehearse::strategies
