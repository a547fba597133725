#include "strategies/step/order_profile.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rehearse::step {
namespace {

using strategies::PipelineShape;
using strategies::Schedule;
using workload::Pass;
using workload::Slot;

bool is_fuller(const OrderProfile::Moment& a, const OrderProfile::Moment& b) {
  const auto held = [](const OrderProfile::Moment& moment) {
    return std::pair(std::accumulate(moment.held.begin(), moment.held.end(), 0U), moment.chunk);
  };
  return held(a) > held(b);
}

/// From the last slot of the chunk on.
OrderProfile::Rest rest_of(const std::vector<Slot>& order, std::uint32_t chunk,
                           std::uint32_t chunks) {
  OrderProfile::Rest rest{chunk, {}};
  rest.passes.resize(chunks);
  for (auto slot = order.rbegin(); slot != order.rend(); ++slot) {
    ++rest.passes[slot->chunk][static_cast<std::size_t>(slot->pass)];
    if (slot->chunk == chunk) break;
  }
  return rest;
}

}  // namespace

OrderProfile profile_of(const std::vector<Slot>& order, std::uint32_t chunks) {
  OrderProfile profile;
  profile.first_chunk = order.front().chunk;
  for (const Slot& slot : order) {
    profile.splits_weights |= slot.pass == Pass::kBackwardWeights;
    profile.splits_recompute |= slot.pass == Pass::kRecompute;
    if (slot.pass == Pass::kBackward) {
      profile.last_chunk = slot.chunk;
      profile.weights_after = 0;
    }
    profile.weights_after += slot.pass == Pass::kBackwardWeights;
  }
  std::vector<bool> seen(chunks, false);
  std::uint32_t first_through = order.back().chunk;
  for (auto slot = order.rbegin(); slot != order.rend(); ++slot) {
    if (!seen[slot->chunk]) first_through = slot->chunk;
    seen[slot->chunk] = true;
  }
  profile.first_through = rest_of(order, first_through, chunks);
  profile.last_through = rest_of(order, order.back().chunk, chunks);
  const Pass frees = profile.splits_weights ? Pass::kBackwardWeights : Pass::kBackward;
  std::vector<std::uint32_t> held(chunks, 0);
  for (const Slot& slot : order) {
    if (slot.pass == Pass::kForward) ++held[slot.chunk];
    if (slot.pass == Pass::kForward || slot.pass == Pass::kBackward) {
      OrderProfile::Moment moment{slot.pass == Pass::kBackward, slot.chunk, held};
      OrderProfile::Moment& fullest = profile.fullest[moment.backward];
      if (is_fuller(moment, fullest)) fullest = std::move(moment);
    }
    if (slot.pass == frees && held[slot.chunk] > 0) --held[slot.chunk];
  }
  return profile;
}

const OrderProfile& OrderProfiles::of(Schedule schedule, const PipelineShape& shape,
                                      std::uint32_t stage, bool recomputes) {
  // The passes ahead of the first backward are those of up to two microbatches for each stage, and
  // of as many as there are stages for each further chunk. A multiple of the stages stays one.
  constexpr std::uint32_t kOfEachStage = 4;
  const bool holds_all = schedule == Schedule::kGpipe && shape.chunks == 1;
  PipelineShape shortened = shape;
  if (!holds_all)
    shortened.microbatches = std::min(shape.microbatches, kOfEachStage * shape.stages);
  const Key key{schedule, shape.stages, shortened.microbatches, shape.chunks, stage, recomputes};
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  if (holds_all) shortened.microbatches = 1;
  OrderProfile profile =
      profile_of(strategies::order_of(schedule, shortened, stage, recomputes), shape.chunks);
  if (holds_all)
    for (OrderProfile::Moment& moment : profile.fullest) moment.held.front() = shape.microbatches;
  return known_.emplace(key, std::move(profile)).first->second;
}

}  // namespace rehearse::step
