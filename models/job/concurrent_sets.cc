#include "models/job/concurrent_sets.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::job {

using graph::Category;
using graph::FlowRoute;
using graph::MessageFlow;

std::vector<ConcurrentSets::Set> ConcurrentSets::apart(
    std::span<const ConcurrentGroup> concurrent_set) {
  std::vector<std::uint32_t> parent(concurrent_set.size());
  std::iota(parent.begin(), parent.end(), 0U);
  const auto root = [&](std::uint32_t m) {
    while (parent[m] != m) m = parent[m] = parent[parent[m]];
    return m;
  };
  std::unordered_map<std::uint32_t, std::uint32_t> user;  // of links: some concurrent group
  for (std::uint32_t m = 0; m < concurrent_set.size(); ++m)
    for (const MessageFlow& flow : concurrent_set[m].flows())
      for (const std::uint32_t link :
           paths_.path(concurrent_set[m].devices[flow.from], concurrent_set[m].devices[flow.to])
               .links) {
        const std::uint32_t a = root(user.emplace(link, m).first->second), b = root(m);
        parent[std::max(a, b)] = std::min(a, b);
      }
  std::vector<Set> sets;
  std::vector<std::uint32_t> set_of(concurrent_set.size(), UINT32_MAX);
  for (std::uint32_t m = 0; m < concurrent_set.size(); ++m) {
    std::uint32_t& set = set_of[root(m)];
    if (set == UINT32_MAX) {
      set = static_cast<std::uint32_t>(sets.size());
      sets.emplace_back();
    }
    sets[set].push_back(&concurrent_set[m]);
  }
  return sets;
}

ConcurrentSets::Shape ConcurrentSets::shape_of(const Set& concurrent_groups) {
  Shape shape;
  std::unordered_map<std::uint32_t, std::uint32_t> number;
  for (const ConcurrentGroup* concurrent_group : concurrent_groups) {
    shape.push_back(static_cast<double>(
        reinterpret_cast<std::uintptr_t>(concurrent_group->messages.flows.get())));
    shape.push_back(concurrent_group->size.b());
    shape.push_back(concurrent_group->messages.most.bytes_per_s());
    if (const auto& phases = concurrent_group->messages.phases)
      shape.insert(shape.end(), {phases->launch.s(), phases->levels[0].start.s(),
                                 phases->levels[0].cap.bytes_per_s(), phases->levels[1].start.s(),
                                 phases->levels[1].cap.bytes_per_s()});
    for (const MessageFlow& flow : concurrent_group->flows()) {
      const LinkPaths::Path& route =
          paths_.path(concurrent_group->devices[flow.from], concurrent_group->devices[flow.to]);
      shape.push_back(static_cast<double>(route.latency.count()));
      shape.push_back(route.message_cost.s());
      shape.push_back(static_cast<double>(route.links.size()));
      for (const std::uint32_t link : route.links) {
        const auto [known, added] = number.emplace(link, static_cast<std::uint32_t>(number.size()));
        shape.push_back(known->second);
        if (added) shape.push_back(paths_.rate(link).bytes_per_s());
      }
    }
  }
  return shape;
}

namespace {

/// The same with flows of at most `count` messages; nothing if they are not all alike.
std::shared_ptr<const graph::MessageFlows> shortened(const graph::MessageFlows& flows,
                                                     std::uint32_t count) {
  std::vector<MessageFlow> shorter(flows.flows().begin(), flows.flows().end());
  for (MessageFlow& flow : shorter) {
    if (flow.count != flows.flows().front().count) return nullptr;
    flow.count = std::min(flow.count, count);
  }
  for (const graph::Wait& wait : flows.waits())
    if (!wait.each || wait.after > 1) return nullptr;
  return std::make_shared<const graph::MessageFlows>(
      flows.members(), std::move(shorter),
      std::vector<graph::Wait>(flows.waits().begin(), flows.waits().end()));
}

}  // namespace

Result<Picoseconds> ConcurrentSets::run(const Set& concurrent_groups) {
  // Half of the messages that are run serve to reach the steady state.
  constexpr std::uint32_t kRun = 64;
  std::uint64_t messages = 0;
  for (const ConcurrentGroup* concurrent_group : concurrent_groups)
    messages += concurrent_group->messages.flows->messages();
  const graph::MessageFlows& flows = *concurrent_groups.front()->messages.flows;
  const bool alike =
      std::all_of(concurrent_groups.begin(), concurrent_groups.end(),
                  [&](const ConcurrentGroup* m) { return m->messages.flows.get() == &flows; });
  const std::uint32_t count = flows.flows().empty() ? 0 : flows.flows().front().count;
  if (messages <= kMostMessages || !alike || count <= 2 * kRun) return run_all(concurrent_groups);
  std::int64_t times[2] = {};
  for (const std::uint32_t half : {0U, 1U}) {
    const auto shorter = shortened(flows, half == 0 ? kRun / 2 : kRun);
    if (!shorter) return run_all(concurrent_groups);
    std::vector<ConcurrentGroup> few;
    for (const ConcurrentGroup* concurrent_group : concurrent_groups) {
      few.push_back(*concurrent_group);
      few.back().messages.flows = shorter;
    }
    Set set;
    for (const ConcurrentGroup& concurrent_group : few) set.push_back(&concurrent_group);
    const Result<Picoseconds> time = run_all(set);
    if (!time) return time;
    times[half] = time->count();
  }
  const double pace =
      static_cast<double>(times[1] - times[0]) / static_cast<double>(kRun - kRun / 2);
  return Picoseconds(times[1]) + Picoseconds(1) * (pace * (count - kRun));
}

Result<Picoseconds> ConcurrentSets::run_all(const Set& concurrent_groups) {
  graph::GraphBuilder builder;
  std::unordered_map<std::uint32_t, CapacityId> capacities;
  const NameId name = builder.intern("member");
  for (const ConcurrentGroup* concurrent_group : concurrent_groups) {
    std::vector<FlowRoute> routes;
    const std::optional<comm::Phases>& phases = concurrent_group->messages.phases;
    for (const MessageFlow& flow : concurrent_group->flows()) {
      const LinkPaths::Path& route =
          paths_.path(concurrent_group->devices[flow.from], concurrent_group->devices[flow.to]);
      graph::Demand demand{.rate_cap = concurrent_group->messages.cap(routes.size()).bytes_per_s()};
      for (const std::uint32_t link : route.links) {
        auto known = capacities.find(link);
        if (known == capacities.end())
          known = capacities
                      .emplace(link, builder.add(graph::Capacity{
                                         .name = builder.intern(fmt::format("link {}", link)),
                                         .rate = paths_.rate(link).bytes_per_s()}))
                      .first;
        demand.capacities.push_back(known->second);
      }
      const Picoseconds start =
          phases ? Picoseconds::from(concurrent_group->messages.start(routes.size()))
                 : route.latency;
      const Bytes extra = phases ? Bytes::b(0)
                                 : extra_bytes(route.message_cost, route.rate,
                                               concurrent_group->messages.cap(routes.size()));
      routes.push_back({builder.add(std::move(demand)), start, extra.b()});
    }
    std::vector<OpId> members;
    for (std::uint32_t m = 0; m < concurrent_group->messages.flows->members(); ++m)
      members.push_back(builder.add(
          graph::Op{.name = name,
                    .category = Category::kCommunication,
                    .duration = phases ? Picoseconds::from(phases->launch) : Picoseconds(0)}));
    builder.add(graph::Transfer{concurrent_group->messages.flows,
                                std::make_shared<const std::vector<FlowRoute>>(std::move(routes)),
                                std::move(members), concurrent_group->size.b()});
  }
  const Result<graph::Graph> graph = std::move(builder).build();
  if (!graph) return forward(graph);
  const Result<graph::Timeline> timeline = run_(*graph);
  if (!timeline) return forward(timeline);
  return timeline->makespan();
}

Result<std::optional<Picoseconds>> ConcurrentSets::time(
    std::span<const ConcurrentGroup> concurrent_set) {
  REHEARSE_CHECK(!concurrent_set.empty());
  std::optional<Picoseconds> least, most;
  for (const Set& set : apart(concurrent_set)) {
    for (const ConcurrentGroup* concurrent_group : set)
      for (const MessageFlow& flow : concurrent_group->flows())
        if (!paths_.path(concurrent_group->devices[flow.from], concurrent_group->devices[flow.to])
                 .steady)
          return std::nullopt;
    Shape shape = shape_of(set);
    auto known = known_.find(shape);
    if (known == known_.end()) {
      const Result<Picoseconds> time = run(set);
      if (!time) return forward(time);
      known = known_.emplace(std::move(shape), *time).first;
    }
    least = least ? std::min(*least, known->second) : known->second;
    most = most ? std::max(*most, known->second) : known->second;
  }
  constexpr double kRounding = 1e-6;
  constexpr std::int64_t kFew = 1000;  // ps: every message rounds to one
  if (static_cast<double>((*most - *least).count()) >
      kFew + kRounding * static_cast<double>(most->count()))
    return std::nullopt;
  return most;
}

}  // namespace rehearse::job
