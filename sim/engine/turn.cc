#include "sim/engine/turn.h"

#include <algorithm>

namespace rehearse::engine {

std::optional<Picoseconds> Turn::at(Picoseconds now, std::span<const FlowGroupId> there) {
  if (!holder_) {
    holder_ = *std::ranges::min_element(there);
    since_ = now;
  }
  if (changes_at_) {
    if (now < *changes_at_) return changes_at_;
    since_ = *changes_at_;
    idle_since_ = since_;
    changes_at_.reset();
  }
  const bool others =
      std::ranges::any_of(there, [&](FlowGroupId group) { return group != *holder_; });
  if (!others) return std::nullopt;
  const bool busy = std::ranges::find(there, *holder_) != there.end();
  const Picoseconds ends = busy ? since_ + law_.quantum : idle_since_ + law_.change;
  if (now < ends) return ends;
  // The next group after the holder, cyclically.
  FlowGroupId next = *holder_;
  for (const FlowGroupId group : there) {
    if (group == *holder_) continue;
    const bool after = group > *holder_, best_after = next > *holder_;
    if (next == *holder_ || (after && !best_after) || (after == best_after && group < next))
      next = group;
  }
  holder_ = next;
  since_ = idle_since_ = now;
  if (law_.change > Picoseconds(0)) {
    changes_at_ = now + law_.change;
    return changes_at_;
  }
  return since_ + law_.quantum;
}

}  // namespace rehearse::engine
