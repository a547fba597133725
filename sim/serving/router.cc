#include "sim/serving/router.h"

#include <algorithm>

#include "sim/base/check.h"

namespace rehearse::serving {

std::int64_t Router::load_of(const Request& request, const Replica& replica) const {
  if (routing_ != Routing::kPrefix) return 1;
  std::int64_t known = 0;
  for (const std::uint64_t name : request.prefix) {
    if (!replica.prefixes.contains(name)) break;
    known += prefix_tokens_;
  }
  return std::max<std::int64_t>(1, request.input - known);
}

std::size_t Router::send(std::uint32_t id, const Request& request) {
  constexpr std::size_t kNone = SIZE_MAX;
  std::size_t best = kNone;
  const auto load_with = [&](const Replica& r) { return r.load + load_of(request, r); };
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    const std::size_t other = (next_ + i) % replicas_.size();
    if (!replicas_[other].open) continue;
    if (best == kNone || load_with(replicas_[other]) < load_with(replicas_[best])) best = other;
    if (routing_ == Routing::kRoundRobin) break;
  }
  REHEARSE_CHECK(best != kNone, "no replica takes requests");
  next_ = (best + 1) % replicas_.size();
  Replica& replica = replicas_[best];
  const std::int64_t load = load_of(request, replica);
  replica.load += load;
  replica.sent.emplace(id, load);
  if (routing_ == Routing::kPrefix)
    replica.prefixes.insert(request.prefix.begin(), request.prefix.end());
  return best;
}

void Router::end(std::size_t replica, std::uint32_t id) {
  const auto sent = replicas_[replica].sent.find(id);
  replicas_[replica].load -= sent->second;
  replicas_[replica].sent.erase(sent);
}

}  // namespace rehearse::serving
