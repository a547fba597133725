#include "models/job/link_paths.h"

#include <algorithm>
#include <utility>

namespace rehearse::job {

using cluster::Cluster;
using cluster::Duplex;
using graph::MessageFlow;

std::shared_ptr<const graph::MessageFlows> one_message() {
  static const auto flows = std::make_shared<const graph::MessageFlows>(
      2, std::vector<MessageFlow>{{0, 1, 1, 1.0}}, std::vector<graph::Wait>{});
  return flows;
}

const LinkPaths::Path& LinkPaths::path(DeviceId from, DeviceId to) {
  const std::uint64_t key = (std::uint64_t{from.index()} << 32) | to.index();
  const auto known = paths_.find(key);
  if (known != paths_.end()) return known->second;
  Path path{{}, Picoseconds(0), ByteRate::gb_per_s(0), true};
  if (from != to) {
    const cluster::Route route = cluster_.route(from, to);
    path.latency = Picoseconds::from(route.path.latency + overhead_);
    path.rate = route.path.rate;
    for (const HopId hop : route.hops) {
      const LinkId link = Cluster::link_of(hop);
      const bool half = cluster_.type(link).duplex == Duplex::kHalf;
      path.links.push_back(half ? 2 * link.index() : hop.index());
      path.steady = path.steady && cluster_.links()[link.index()].changes.empty();
    }
  }
  return paths_.emplace(key, std::move(path)).first->second;
}

std::vector<SharedLinks::Loaded> LinkPaths::load(std::span<const ConcurrentGroup> concurrent_set,
                                                 Bytes bytes) {
  messages_.resize(cluster_.hop_count(), 0);
  std::vector<std::uint32_t> used;
  for (const ConcurrentGroup& concurrent_group : concurrent_set)
    for (const MessageFlow& flow : concurrent_group.flows()) {
      const double messages = flow.count * flow.share * (concurrent_group.size / bytes);
      if (messages == 0) continue;
      for (const std::uint32_t link :
           path(concurrent_group.devices[flow.from], concurrent_group.devices[flow.to]).links) {
        if (messages_[link] == 0) used.push_back(link);
        messages_[link] += messages;
      }
    }
  std::vector<SharedLinks::Loaded> loaded;
  for (const std::uint32_t link : used)
    loaded.push_back({link, rate(link), std::exchange(messages_[link], 0)});
  return loaded;
}

Seconds LinkPaths::bottleneck(std::span<const ConcurrentGroup> concurrent_set) {
  Seconds longest = Seconds::s(0);
  for (const SharedLinks::Loaded& link : load(concurrent_set, Bytes::b(1)))
    longest = std::max(longest, Bytes::b(link.messages) / link.rate);
  return longest;
}

}  // namespace rehearse::job
