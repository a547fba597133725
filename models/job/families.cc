#include "models/job/families.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::job {

using graph::Category;
using graph::Lane;
using graph::Way;

std::vector<Families::Set> Families::apart(std::span<const Meeting> family) {
  std::vector<std::uint32_t> parent(family.size());
  std::iota(parent.begin(), parent.end(), 0U);
  const auto root = [&](std::uint32_t m) {
    while (parent[m] != m) m = parent[m] = parent[parent[m]];
    return m;
  };
  std::unordered_map<std::uint32_t, std::uint32_t> user;  // of links: some meeting
  for (std::uint32_t m = 0; m < family.size(); ++m)
    for (const Lane& lane : family[m].lanes())
      for (const std::uint32_t link :
           paths_.path(family[m].devices[lane.from], family[m].devices[lane.to]).links) {
        const std::uint32_t a = root(user.emplace(link, m).first->second), b = root(m);
        parent[std::max(a, b)] = std::min(a, b);
      }
  std::vector<Set> sets;
  std::vector<std::uint32_t> set_of(family.size(), UINT32_MAX);
  for (std::uint32_t m = 0; m < family.size(); ++m) {
    std::uint32_t& set = set_of[root(m)];
    if (set == UINT32_MAX) {
      set = static_cast<std::uint32_t>(sets.size());
      sets.emplace_back();
    }
    sets[set].push_back(&family[m]);
  }
  return sets;
}

Families::Shape Families::shape_of(const Set& meetings) {
  Shape shape;
  std::unordered_map<std::uint32_t, std::uint32_t> number;
  for (const Meeting* meeting : meetings) {
    shape.push_back(
        static_cast<double>(reinterpret_cast<std::uintptr_t>(meeting->messages.lanes.get())));
    shape.push_back(meeting->size.b());
    shape.push_back(meeting->messages.most.bytes_per_s());
    if (const auto& phases = meeting->messages.phases)
      shape.insert(shape.end(), {phases->launch.s(), phases->levels[0].start.s(),
                                 phases->levels[0].cap.bytes_per_s(), phases->levels[1].start.s(),
                                 phases->levels[1].cap.bytes_per_s()});
    for (const Lane& lane : meeting->lanes()) {
      const LinkPaths::Path& way =
          paths_.path(meeting->devices[lane.from], meeting->devices[lane.to]);
      shape.push_back(static_cast<double>(way.latency.count()));
      shape.push_back(static_cast<double>(way.links.size()));
      for (const std::uint32_t link : way.links) {
        const auto [known, added] = number.emplace(link, static_cast<std::uint32_t>(number.size()));
        shape.push_back(known->second);
        if (added) shape.push_back(paths_.rate(link).bytes_per_s());
      }
    }
  }
  return shape;
}

namespace {

/// The same with lanes of at most `count` messages; nothing where they are not all alike.
std::shared_ptr<const graph::Lanes> shortened(const graph::Lanes& lanes, std::uint32_t count) {
  std::vector<Lane> shorter(lanes.lanes().begin(), lanes.lanes().end());
  for (Lane& lane : shorter) {
    if (lane.count != lanes.lanes().front().count) return nullptr;
    lane.count = std::min(lane.count, count);
  }
  for (const graph::Wait& wait : lanes.waits())
    if (!wait.each || wait.after > 1) return nullptr;
  return std::make_shared<const graph::Lanes>(
      lanes.members(), std::move(shorter),
      std::vector<graph::Wait>(lanes.waits().begin(), lanes.waits().end()));
}

}  // namespace

Result<Picoseconds> Families::run(const Set& meetings) {
  // Half of the messages that are run are there to get into step.
  constexpr std::uint32_t kRun = 64;
  std::uint64_t messages = 0;
  for (const Meeting* meeting : meetings) messages += meeting->messages.lanes->messages();
  const graph::Lanes& lanes = *meetings.front()->messages.lanes;
  const bool alike = std::all_of(meetings.begin(), meetings.end(), [&](const Meeting* m) {
    return m->messages.lanes.get() == &lanes;
  });
  const std::uint32_t count = lanes.lanes().empty() ? 0 : lanes.lanes().front().count;
  if (messages <= kMostMessages || !alike || count <= 2 * kRun) return run_all(meetings);
  std::int64_t times[2] = {};
  for (const std::uint32_t half : {0U, 1U}) {
    const auto shorter = shortened(lanes, half == 0 ? kRun / 2 : kRun);
    if (!shorter) return run_all(meetings);
    std::vector<Meeting> few;
    for (const Meeting* meeting : meetings) {
      few.push_back(*meeting);
      few.back().messages.lanes = shorter;
    }
    Set set;
    for (const Meeting& meeting : few) set.push_back(&meeting);
    const Result<Picoseconds> time = run_all(set);
    if (!time) return time;
    times[half] = time->count();
  }
  const double pace =
      static_cast<double>(times[1] - times[0]) / static_cast<double>(kRun - kRun / 2);
  return Picoseconds(times[1]) + Picoseconds(1) * (pace * (count - kRun));
}

Result<Picoseconds> Families::run_all(const Set& meetings) {
  graph::GraphBuilder builder;
  std::unordered_map<std::uint32_t, CapacityId> capacities;
  const NameId name = builder.intern("member");
  for (const Meeting* meeting : meetings) {
    std::vector<Way> ways;
    const std::optional<comm::Phases>& phases = meeting->messages.phases;
    for (const Lane& lane : meeting->lanes()) {
      const LinkPaths::Path& way =
          paths_.path(meeting->devices[lane.from], meeting->devices[lane.to]);
      graph::Demand demand{.rate_cap = meeting->messages.cap(ways.size()).bytes_per_s()};
      for (const std::uint32_t link : way.links) {
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
          phases ? Picoseconds::from(meeting->messages.start(ways.size())) : way.latency;
      ways.push_back({builder.add(std::move(demand)), start});
    }
    std::vector<OpId> members;
    for (std::uint32_t m = 0; m < meeting->messages.lanes->members(); ++m)
      members.push_back(builder.add(
          graph::Op{.name = name,
                    .category = Category::kCommunication,
                    .duration = phases ? Picoseconds::from(phases->launch) : Picoseconds(0)}));
    builder.add(graph::Transfer{meeting->messages.lanes,
                                std::make_shared<const std::vector<Way>>(std::move(ways)),
                                std::move(members), meeting->size.b()});
  }
  const Result<graph::Graph> graph = std::move(builder).build();
  if (!graph) return forward(graph);
  const Result<graph::Timeline> timeline = run_(*graph);
  if (!timeline) return forward(timeline);
  return timeline->makespan();
}

Result<std::optional<Picoseconds>> Families::time(std::span<const Meeting> family) {
  REHEARSE_CHECK(!family.empty());
  std::optional<Picoseconds> least, most;
  for (const Set& set : apart(family)) {
    for (const Meeting* meeting : set)
      for (const Lane& lane : meeting->lanes())
        if (!paths_.path(meeting->devices[lane.from], meeting->devices[lane.to]).steady)
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
