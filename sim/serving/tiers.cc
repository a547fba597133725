#include "sim/serving/tiers.h"

#include <algorithm>

#include "sim/base/check.h"

namespace rehearse::serving {

Tiers::Tiers(const Rules& rules)
    : part_(rules.prefix_tokens / rules.block_tokens), keeps_(rules.prefix_cache) {
  for (const Tier& tier : rules.tiers)
    if (tier.blocks >= part_) stores_.push_back({tier});
}

bool Tiers::holds(std::uint64_t part) const {
  return std::ranges::any_of(stores_, [&](const Store& s) { return s.held.contains(part); });
}

Picoseconds Tiers::transfer(const Tier& tier) const {
  return Picoseconds::from(tier.block * static_cast<double>(part_));
}

void Tiers::store(std::uint64_t part, Picoseconds now) {
  for (Store& s : stores_) {
    const auto found = s.held.find(part);
    if (found == s.held.end()) continue;
    if (&s == &stores_.front()) return s.order.splice(s.order.end(), s.order, found->second.place);
    s.order.erase(found->second.place);
    s.held.erase(found);
  }
  put(0, part, now);
}

void Tiers::put(std::size_t tier, std::uint64_t part, Picoseconds from) {
  if (tier == stores_.size()) return;
  Store& s = stores_[tier];
  if ((static_cast<std::int64_t>(s.order.size()) + 1) * part_ > s.tier.blocks) {
    const auto oldest = s.held.find(s.order.front());
    put(tier + 1, oldest->first, std::max(from, oldest->second.there));
    s.held.erase(oldest);
    s.order.pop_front();
  }
  s.in = std::max(s.in, from) + transfer(s.tier);
  s.held[part] = {s.order.insert(s.order.end(), part), s.in + Picoseconds::from(s.tier.latency)};
}

Picoseconds Tiers::load(std::span<const std::uint64_t> parts, Picoseconds now) {
  Picoseconds ready = now;
  // The end of a prefix is of no use without its beginning, so it leaves first.
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const auto s =
        std::ranges::find_if(stores_, [&](const Store& each) { return each.held.contains(*part); });
    REHEARSE_CHECK(s != stores_.end(), "no tier holds part {}", *part);
    const auto found = s->held.find(*part);
    s->out = std::max({s->out, now, found->second.there}) + transfer(s->tier);
    ready = std::max(ready, s->out + Picoseconds::from(s->tier.latency));
    s->order.splice(s->order.end(), s->order, found->second.place);
    if (keeps_) continue;
    s->order.pop_back();
    s->held.erase(found);
  }
  return ready;
}

}  // namespace rehearse::serving
