#include "sim/serving/router.h"

#include <algorithm>

#include "sim/base/check.h"

namespace rehearse::serving {

std::int64_t Router::load_of(std::int64_t input, std::span<const std::uint64_t> prefix,
                             const Replica& replica) const {
  if (routing_ != Routing::kPrefix) return 1;
  std::int64_t known = 0;
  for (const std::uint64_t name : prefix) {
    if (!replica.prefixes.contains(name)) break;
    known += prefix_tokens_;
  }
  return std::max<std::int64_t>(1, input - known);
}

std::size_t Router::send(std::uint32_t id, std::int64_t input,
                         std::span<const std::uint64_t> prefix) {
  constexpr std::size_t kNone = SIZE_MAX;
  std::size_t best = kNone;
  const auto load_with = [&](const Replica& r) { return r.load + load_of(input, prefix, r); };
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    const std::size_t other = (next_ + i) % replicas_.size();
    if (!replicas_[other].open) continue;
    if (best == kNone || load_with(replicas_[other]) < load_with(replicas_[best])) best = other;
    if (routing_ == Routing::kRoundRobin) break;
  }
  REHEARSE_CHECK(best != kNone, "no replica takes requests");
  next_ = (best + 1) % replicas_.size();
  Replica& replica = replicas_[best];
  const std::int64_t load = load_of(input, prefix, replica);
  replica.load += load;
  replica.sent.emplace(id, load);
  if (routing_ == Routing::kPrefix) replica.prefixes.insert(prefix.begin(), prefix.end());
  return best;
}

void Router::end(std::size_t replica, std::uint32_t id) {
  const auto sent = replicas_[replica].sent.find(id);
  replicas_[replica].load -= sent->second;
  replicas_[replica].sent.erase(sent);
}

}  // namespace rehearse::serving
