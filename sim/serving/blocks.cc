#include "sim/serving/blocks.h"

#include <algorithm>

#include "sim/base/check.h"

namespace rehearse::serving {

Blocks::Hit Blocks::find(const std::vector<std::uint64_t>& prefix, std::size_t most) const {
  Hit hit;
  most = std::min(most, prefix.size());
  while (caches_ && hit.parts < most) {
    const auto found = parts_.find(prefix[hit.parts]);
    if (found == parts_.end()) break;
    if (found->second.holders == 0) hit.idle += part_;
    ++hit.parts;
  }
  while (hit.parts + hit.below < most && tiers_.holds(prefix[hit.parts + hit.below])) ++hit.below;
  return hit;
}

void Blocks::reuse(const std::vector<std::uint64_t>& prefix, std::size_t parts, Holding& holding) {
  for (std::size_t i = 0; i < parts; ++i) {
    Part& part = parts_.at(prefix[i]);
    if (part.holders++ == 0) {
      idle_.erase(part.idle);
      held_ += part_;
    }
    holding.shared.push_back(prefix[i]);
  }
}

void Blocks::allocate(std::int64_t blocks, Holding& holding, Picoseconds now) {
  REHEARSE_CHECK(blocks <= free(), "{} blocks of {}", blocks, free());
  held_ += blocks;
  holding.own += blocks;
  while (held_ + idle() > total_) {
    if (!writes_through_) tiers_.store(idle_.front(), now);
    parts_.erase(idle_.front());
    idle_.pop_front();
  }
}

void Blocks::publish(const std::vector<std::uint64_t>& prefix, std::size_t parts, Holding& holding,
                     Picoseconds now) {
  if (!caches_) return;
  parts = std::min(parts, prefix.size());
  // Where another request published the same part meanwhile, this one keeps its copy, and all that
  // follows it.
  while (holding.shared.size() < parts &&
         parts_.try_emplace(prefix[holding.shared.size()], Part{1, {}}).second) {
    holding.shared.push_back(prefix[holding.shared.size()]);
    holding.own -= part_;
  }
  // The end of a prefix is of no use without its beginning, so it leaves a tier first.
  for (std::size_t i = parts; writes_through_ && i > 0; --i) tiers_.store(prefix[i - 1], now);
}

void Blocks::leave(const std::vector<std::uint64_t>& prefix, Holding& holding, Picoseconds now) {
  publish(prefix, prefix.size(), holding, now);
  if (!caches_)
    for (std::size_t i = prefix.size(); i > 0; --i) tiers_.store(prefix[i - 1], now);
  release(holding);
}

void Blocks::release(Holding& holding) {
  held_ -= holding.own;
  // The end of a prefix is of no use without its beginning, so it is evicted first.
  for (auto name = holding.shared.rbegin(); name != holding.shared.rend(); ++name) {
    Part& part = parts_.at(*name);
    if (--part.holders > 0) continue;
    part.idle = idle_.insert(idle_.end(), *name);
    held_ -= part_;
  }
  holding = {};
}

}  // namespace rehearse::serving
