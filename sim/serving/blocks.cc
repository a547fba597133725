#include "sim/serving/blocks.h"

#include <algorithm>

#include "sim/base/check.h"

namespace rehearse::serving {

Blocks::Hit Blocks::find(const std::vector<std::uint64_t>& prefix, std::size_t most) const {
  Hit hit;
  if (!caches_) return hit;
  most = std::min(most, prefix.size());
  while (hit.parts < most) {
    const auto found = parts_.find(prefix[hit.parts]);
    if (found == parts_.end()) break;
    if (found->second.holders == 0) hit.idle += part_;
    ++hit.parts;
  }
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

void Blocks::allocate(std::int64_t blocks, Holding& holding) {
  REHEARSE_CHECK(blocks <= free(), "{} blocks of {}", blocks, free());
  held_ += blocks;
  holding.own += blocks;
  while (held_ + idle() > total_) {
    parts_.erase(idle_.front());
    idle_.pop_front();
  }
}

void Blocks::publish(const std::vector<std::uint64_t>& prefix, std::size_t parts,
                     Holding& holding) {
  if (!caches_) return;
  parts = std::min(parts, prefix.size());
  // Where another request published the same part meanwhile, this one keeps its copy, and all that
  // follows it.
  while (holding.shared.size() < parts &&
         parts_.try_emplace(prefix[holding.shared.size()], Part{1, {}}).second) {
    holding.shared.push_back(prefix[holding.shared.size()]);
    holding.own -= part_;
  }
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
