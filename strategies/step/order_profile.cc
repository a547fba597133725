#include "strategies/step/order_profile.h"

#include <algorithm>

namespace rehearse::step {
namespace {

using strategies::PipelineShape;
using strategies::Schedule;
using workload::Pass;
using workload::Slot;

bool holds_all_of(const OrderProfile::Moment& more, const OrderProfile::Moment& less) {
  if (more.backward != less.backward || more.chunk != less.chunk) return false;
  for (std::size_t c = 0; c < more.held.size(); ++c)
    if (more.held[c] < less.held[c]) return false;
  return true;
}

void keep(std::vector<OrderProfile::Moment>& fullest, OrderProfile::Moment moment) {
  for (const OrderProfile::Moment& other : fullest)
    if (holds_all_of(other, moment)) return;
  std::erase_if(fullest, [&](const auto& other) { return holds_all_of(moment, other); });
  fullest.push_back(std::move(moment));
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
    if (slot.pass == Pass::kForward || slot.pass == Pass::kBackward)
      keep(profile.fullest, {slot.pass == Pass::kBackward, slot.chunk, held});
    if (slot.pass == frees && held[slot.chunk] > 0) --held[slot.chunk];
  }
  return profile;
}

}  // namespace

const OrderProfile& OrderProfiles::of(Schedule schedule, const PipelineShape& shape,
                                      std::uint32_t stage, bool recomputes) {
  const Key key{schedule, shape.stages, shape.microbatches, shape.chunks, stage, recomputes};
  auto known = known_.find(key);
  if (known == known_.end())
    known = known_
                .emplace(key, profile_of(strategies::order_of(schedule, shape, stage, recomputes),
                                         shape.chunks))
                .first;
  return known->second;
}

}  // namespace rehearse::step
