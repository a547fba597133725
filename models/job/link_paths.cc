#include "models/job/link_paths.h"

#include <algorithm>
#include <utility>

namespace rehearse::job {

using cluster::Cluster, graph::MessageFlow;

std::shared_ptr<const graph::MessageFlows> one_message() {
  static const auto flows = std::make_shared<const graph::MessageFlows>(
      2, std::vector<MessageFlow>{{0, 1, 1, 1.0}}, std::vector<graph::Wait>{});
  return flows;
}

const LinkPaths::Path& LinkPaths::path(DeviceId from, DeviceId to) {
  const std::uint64_t key = (std::uint64_t{from.index()} << 32) | to.index();
  const auto known = paths_.find(key);
  if (known != paths_.end()) return known->second;
  Path path{std::pmr::vector<std::uint32_t>(memory_.get()), Picoseconds(0), ByteRate::gb_per_s(0),
            Seconds::s(0), true};
  if (from != to) {
    const cluster::Route route = cluster_.route(from, to);
    path.latency = Picoseconds::from(route.path.latency + route.start_up + overhead_);
    path.rate = route.path.rate;
    path.message_cost = route.message_cost;
    path.links.reserve(route.hops.size());
    for (const HopId hop : route.hops) {
      path.links.push_back(number(cluster_, hop));
      path.steady = path.steady && cluster_.links()[Cluster::link_of(hop).index()].changes.empty();
    }
  }
  return paths_.emplace(key, std::move(path)).first->second;
}

template <class Work>
std::vector<SharedLinks::Loaded> LinkPaths::sum(std::span<const ConcurrentGroup> concurrent_set,
                                                const Work& work) {
  messages_.resize(cluster_.hop_count(), 0);
  std::vector<std::uint32_t> used;
  for (const ConcurrentGroup& group : concurrent_set)
    for (std::size_t i = 0; i < group.flows().size(); ++i) {
      const MessageFlow& flow = group.flows()[i];
      const Path& route = path(group.devices[flow.from], group.devices[flow.to]);
      const double added = flow.count * work(group, i, route);
      if (added == 0) continue;
      for (const std::uint32_t link : route.links) {
        if (messages_[link] == 0) used.push_back(link);
        messages_[link] += added;
      }
    }
  std::vector<SharedLinks::Loaded> loaded;
  for (const std::uint32_t link : used)
    loaded.push_back({link, rate(link), std::exchange(messages_[link], 0)});
  return loaded;
}

std::vector<SharedLinks::Loaded> LinkPaths::load(std::span<const ConcurrentGroup> concurrent_set,
                                                 Bytes bytes) {
  return sum(concurrent_set, [&](const ConcurrentGroup& group, std::size_t i, const Path& path) {
    const Bytes share = group.size * group.flows()[i].share;
    if (group.messages.phases) return share / bytes;
    return (share + extra_bytes(path.message_cost, path.rate, group.messages.cap(i))) / bytes;
  });
}

std::vector<SharedLinks::Loaded> LinkPaths::shares(
    std::span<const ConcurrentGroup> concurrent_set) {
  return sum(concurrent_set, [](const ConcurrentGroup& group, std::size_t i, const Path&) {
    return group.flows()[i].share * group.size.b();
  });
}

BottleneckTime LinkPaths::bottleneck(std::span<const ConcurrentGroup> concurrent_set) {
  BottleneckTime longest;
  for (const SharedLinks::Loaded& link : shares(concurrent_set))
    longest.byte = std::max(longest.byte, Bytes::b(link.messages) / link.rate);
  const auto costs = [](const ConcurrentGroup& group, std::size_t i, const Path& path) {
    return extra_bytes(path.message_cost, path.rate, group.messages.cap(i)).b();
  };
  for (const SharedLinks::Loaded& link : sum(concurrent_set, costs))
    longest.messages = std::max(longest.messages, Bytes::b(link.messages) / link.rate);
  return longest;
}

}  // namespace rehearse::job
