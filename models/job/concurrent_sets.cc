#include "models/job/concurrent_sets.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::job {

using graph::Category, graph::FlowRoute, graph::MessageFlow;

namespace {

/// Joins items, each known by its number.
class Joined {
 public:
  explicit Joined(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0U);
  }
  std::uint32_t root(std::uint32_t m) {
    while (parent_[m] != m) m = parent_[m] = parent_[parent_[m]];
    return m;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = root(a);
    b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint32_t> parent_;
};

using Set = std::vector<const ConcurrentGroup*>;

/// The groups by root, in the order in which roots are first seen.
template <class RootOf>
std::vector<Set> sets_by(const Set& groups, RootOf root_of) {
  std::vector<Set> sets;
  std::unordered_map<std::uint32_t, std::size_t> set_of;
  for (std::uint32_t m = 0; m < groups.size(); ++m) {
    const auto [set, added] = set_of.try_emplace(root_of(m), sets.size());
    if (added) sets.emplace_back();
    sets[set->second].push_back(groups[m]);
  }
  return sets;
}

}  // namespace

/// Groups that have no node in common, directly or through others. All together, where routes use
/// links of other nodes.
std::vector<ConcurrentSets::Set> ConcurrentSets::on_other_nodes(const Set& concurrent_set) const {
  const bool own_links = !cluster_.node_kinds().empty();
  Joined nodes(cluster_.nodes().size());
  const auto node = [&](DeviceId device) {
    return own_links ? cluster_.devices()[device.index()].node.index() : 0;
  };
  for (const ConcurrentGroup* group : concurrent_set)
    for (const DeviceId device : group->devices)
      nodes.join(node(group->devices.front()), node(device));
  return sets_by(concurrent_set, [&](std::uint32_t m) {
    return nodes.root(node(concurrent_set[m]->devices.front()));
  });
}

std::vector<ConcurrentSets::Set> ConcurrentSets::apart(const Set& concurrent_set) {
  Joined groups(concurrent_set.size());
  std::unordered_map<std::uint32_t, std::uint32_t> user;  // of links: some concurrent group
  for (std::uint32_t m = 0; m < concurrent_set.size(); ++m)
    for (const MessageFlow& flow : concurrent_set[m]->flows())
      for (const std::uint32_t link :
           paths_.path(concurrent_set[m]->devices[flow.from], concurrent_set[m]->devices[flow.to])
               .links)
        groups.join(user.emplace(link, m).first->second, m);
  return sets_by(concurrent_set, [&](std::uint32_t m) { return groups.root(m); });
}

namespace {

/// What the messages of a group are, whatever their links.
void append_messages(const ConcurrentGroup& group, std::vector<double>& shape) {
  shape.push_back(
      static_cast<double>(reinterpret_cast<std::uintptr_t>(group.messages.flows.get())));
  shape.push_back(group.size.b());
  shape.push_back(group.messages.most.bytes_per_s());
  if (const auto& phases = group.messages.phases)
    shape.insert(shape.end(), {phases->launch.s(), phases->levels[0].start.s(),
                               phases->levels[0].cap.bytes_per_s(), phases->levels[1].start.s(),
                               phases->levels[1].cap.bytes_per_s()});
}

}  // namespace

ConcurrentSets::Pattern ConcurrentSets::pattern_of(const Set& concurrent_groups) {
  Pattern pattern;
  patterns_.clear();
  for (const ConcurrentGroup* group : concurrent_groups) {
    patterns_.append(group->devices, pattern.first);
    append_messages(*group, pattern.second);
  }
  return pattern;
}

ConcurrentSets::Shape ConcurrentSets::shape_of(const Set& concurrent_groups) {
  Shape shape;
  std::unordered_map<std::uint32_t, std::uint32_t> number;
  for (const ConcurrentGroup* concurrent_group : concurrent_groups) {
    append_messages(*concurrent_group, shape);
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
  const bool alike = std::ranges::all_of(concurrent_groups, [&](const ConcurrentGroup* m) {
    return m->messages.flows.get() == &flows;
  });
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
    const Picoseconds time = TRY(run_all(set));
    times[half] = time.count();
  }
  const double pace = static_cast<double>(times[1] - times[0]) / (static_cast<double>(kRun) / 2);
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
  const graph::Graph graph = TRY(std::move(builder).build());
  const graph::Timeline timeline = TRY(run_(graph));
  return timeline.makespan();
}

Result<std::optional<ConcurrentSets::Times>> ConcurrentSets::times(const Set& concurrent_groups) {
  std::optional<Times> times;
  for (const Set& set : apart(concurrent_groups)) {
    for (const ConcurrentGroup* concurrent_group : set)
      for (const MessageFlow& flow : concurrent_group->flows())
        if (!paths_.path(concurrent_group->devices[flow.from], concurrent_group->devices[flow.to])
                 .steady)
          return std::nullopt;
    Shape shape = shape_of(set);
    auto known = known_.find(shape);
    if (known == known_.end()) {
      const Picoseconds time = TRY(run(set));
      known = known_.emplace(std::move(shape), time).first;
    }
    if (!times) times = Times{known->second, known->second};
    times->least = std::min(times->least, known->second);
    times->most = std::max(times->most, known->second);
  }
  return times;
}

Result<std::optional<Picoseconds>> ConcurrentSets::time(
    std::span<const ConcurrentGroup> concurrent_set) {
  REHEARSE_CHECK(!concurrent_set.empty());
  Set groups;
  for (const ConcurrentGroup& group : concurrent_set) groups.push_back(&group);
  std::optional<Times> all;
  for (const Set& set : on_other_nodes(groups)) {
    Pattern pattern = pattern_of(set);
    auto known = known_patterns_.find(pattern);
    if (known == known_patterns_.end()) {
      const std::optional<Times> times = TRY(this->times(set));
      known = known_patterns_.emplace(std::move(pattern), times).first;
    }
    if (!known->second) return std::nullopt;
    if (!all) all = *known->second;
    all->least = std::min(all->least, known->second->least);
    all->most = std::max(all->most, known->second->most);
  }
  constexpr double kRounding = 1e-6;
  constexpr std::int64_t kFew = 1000;  // ps: every message rounds to one
  if (static_cast<double>((all->most - all->least).count()) >
      kFew + kRounding * static_cast<double>(all->most.count()))
    return std::nullopt;
  return all->most;
}

}  // namespace rehearse::job
