// Random graphs for property tests. The same seed gives the same graph. Durations are so many
// picoseconds that two unrelated ops hardly ever end at one instant, where the order of what they
// release would be a matter of taste.
#pragma once

#include <cstdint>
#include <random>

#include "sim/graph/graph.h"

namespace rehearse::test {

struct RandomGraphOptions {
  int max_ops = 40;
  bool capacities = true;       ///< some ops carry work
  bool fixed_servers = false;   ///< only servers whose order does not depend on when ops ask: one
                                ///< slot and a chain through all its ops
  bool first_m = true;          ///< some ops wait for the first m
  bool instant_ops = true;      ///< some ops take no time
  bool flow_priorities = true;  ///< some flows go before others
  bool slot_demands = false;    ///< the slots of some servers have capacities of their own
  bool shared_device = false;   ///< ops with work take shares of the links, and turns at some
  int transfers = 0;            ///< maximum number; their messages share the links with ops; links
                                ///< then change over time and some flows are capped
};

inline graph::Graph random_graph(std::uint64_t seed, const RandomGraphOptions& options = {}) {
  using namespace graph;
  std::mt19937_64 rng(seed);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(rng);
  };
  GraphBuilder builder;
  const NameId name = builder.intern("op");
  const int servers = pick(1, 4), links = options.capacities ? pick(1, 4) : 0;
  std::vector<ServerId> server;
  for (int i = 0; i < servers; ++i) {
    Server s{.name = builder.intern("server")};
    if (!options.fixed_servers) {
      s.slots = static_cast<std::uint32_t>(pick(1, 3));
      s.policy = pick(0, 2) == 0 ? Policy::kPriority : Policy::kFifo;
    }
    s.turnaround = Picoseconds(pick(0, 1) * pick(0, 2'000'000));
    server.push_back(builder.add(s));
  }
  std::vector<CapacityId> link;
  for (int i = 0; i < links; ++i) {
    Capacity c{.name = builder.intern("link"), .rate = pick(1, 50) * 1e10};
    if (options.transfers > 0 && pick(0, 2) == 0)
      c.changes = {{Picoseconds(pick(1, 30'000'000)), pick(0, 50) * 1e10},
                   {Picoseconds(pick(30'000'000, 60'000'000)), pick(1, 50) * 1e10}};
    if (options.shared_device && pick(0, 1) == 0)
      c.turns =
          Turns{Picoseconds(pick(100'000, 5'000'000)), Picoseconds(pick(0, 1) * pick(1, 500'000))};
    link.push_back(builder.add(std::move(c)));
  }

  const auto random_path = [&] {
    std::vector<CapacityId> path;
    for (const CapacityId c : link)
      if (pick(0, 1)) path.push_back(c);
    return path;
  };
  std::vector<char> of_slots(static_cast<std::size_t>(servers), 0);
  if (options.slot_demands && links > 0)
    for (int i = 0; i < servers; ++i) {
      if (pick(0, 2) == 0) continue;
      of_slots[static_cast<std::size_t>(i)] = 1;
      Server s{.name = builder.intern("bound"), .slots = static_cast<std::uint32_t>(pick(1, 4))};
      for (std::uint32_t slot = 0; slot < s.slots; ++slot)
        s.slot_demands.push_back(
            builder.add(Demand{.capacities = {link[static_cast<std::size_t>(pick(0, links - 1))]},
                               .weight = static_cast<double>(pick(1, 3)),
                               .rate_cap = pick(1, 40) * 1e10}));
      server[static_cast<std::size_t>(i)] = builder.add(std::move(s));
    }

  // A transfer among ops that end before any op added later begins. Each member is followed by a
  // delay of its own: messages end both their members at one instant, and which of them asks first
  // for a server is a matter of taste.
  std::vector<OpId> before_me;  // what a later op may wait for
  const auto add_random_transfer = [&] {
    const auto members = static_cast<std::uint32_t>(pick(2, 5));
    std::vector<MessageFlow> flows;
    std::vector<Wait> waits;
    const bool ring = pick(0, 2) == 0;
    const int flow_count = ring ? static_cast<int>(members) : pick(1, 8);
    for (std::uint32_t l = 0; l < static_cast<std::uint32_t>(flow_count); ++l) {
      const std::uint32_t from =
          ring ? l : static_cast<std::uint32_t>(pick(0, static_cast<int>(members) - 1));
      const auto further = static_cast<std::uint32_t>(pick(1, static_cast<int>(members) - 1));
      flows.push_back({.from = from,
                       .to = (from + (ring ? 1 : further)) % members,
                       .count = ring ? members - 1 : static_cast<std::uint32_t>(pick(1, 4)),
                       .share = pick(0, 7) == 0 ? 0 : 0.05 * pick(1, 20)});
      if (ring)
        waits.push_back({l, (l + members - 1) % members, 0, true});
      else
        for (std::uint32_t on = 0; on < l; ++on)
          if (pick(0, 2) == 0)
            waits.push_back({l, on, static_cast<std::uint32_t>(pick(0, 5)), pick(0, 1) == 0});
    }
    auto routes = std::make_shared<std::vector<FlowRoute>>();
    for (int l = 0; l < flow_count; ++l) {
      Demand demand{.capacities = random_path()};
      if (pick(0, 3) == 0) demand.weight = pick(1, 3);
      if (pick(0, 5) == 0) demand.rate_cap = pick(1, 10) * 1e10;
      if (options.flow_priorities && pick(0, 5) == 0) demand.priority = pick(0, 2);
      routes->push_back(
          {builder.add(std::move(demand)), Picoseconds(pick(0, 2) == 0 ? 0 : pick(1, 2'000'000))});
    }
    std::vector<OpId> ops;
    const std::vector<OpId> earlier = before_me;
    for (std::uint32_t m = 0; m < members; ++m) {
      Demand demand;  // a server that no other op asks for, or none
      if (pick(0, 1)) demand.server = builder.add(Server{.name = name});
      ops.push_back(builder.add(Op{.name = name,
                                   .category = Category::kCommunication,
                                   .duration = Picoseconds(pick(0, 2) ? pick(1, 20'000'000) : 0),
                                   .demand = builder.add(std::move(demand))}));
      if (!earlier.empty() && pick(0, 2) == 0)
        builder.add_edge(
            earlier[static_cast<std::size_t>(pick(0, static_cast<int>(earlier.size()) - 1))],
            ops.back());
    }
    for (const OpId member : ops) {
      before_me.push_back(builder.add(Op{.name = name,
                                         .category = Category::kCompute,
                                         .duration = Picoseconds(pick(1, 20'000'000))}));
      builder.add_edge(member, before_me.back());
    }
    builder.add(
        Transfer{std::make_shared<MessageFlows>(members, std::move(flows), std::move(waits)),
                 std::move(routes), std::move(ops), static_cast<double>(pick(1, 4'000'000))});
  };
  const int n = pick(1, options.max_ops);
  std::vector<std::optional<OpId>> last(static_cast<std::size_t>(servers));
  int transfers = options.transfers;
  for (int i = 0; i < n; ++i) {
    if (transfers > 0 && pick(0, n) < 2 * options.transfers) {
      --transfers;
      add_random_transfer();
    }
    Demand demand;
    double work = 0;
    const int s = pick(-1, servers - 1);
    if (s >= 0) {
      demand.server = server[static_cast<std::size_t>(s)];
      demand.priority = pick(0, 2);
    }
    if (links > 0 && pick(0, 2) == 0) {
      demand.capacities = random_path();
      if (!demand.capacities.empty()) work = pick(1, 4'000'000);
      demand.weight = pick(1, 3);
      if (!options.flow_priorities) demand.priority = 0;
      if (options.shared_device) {
        demand.group = FlowGroupId(pick(0, 2));
        demand.rate_cap = pick(1, 40) * 1e10;
        for (std::size_t c = 0; c < demand.capacities.size(); ++c)
          demand.units_per_work.push_back(0.05 * pick(1, 40));
      }
    }
    if (s >= 0 && of_slots[static_cast<std::size_t>(s)] && pick(0, 3) > 0)
      work = pick(1, 4'000'000);
    const bool carries = work > 0;
    if (!carries) {
      demand.capacities.clear();
      demand.units_per_work.clear();
    }
    const OpId op = builder.add(Op{
        .name = name,
        .category = Category::kCompute,
        .duration = Picoseconds(options.instant_ops && pick(0, 9) == 0 ? 0 : pick(1, 20'000'000)),
        .demand = builder.add(std::move(demand)),
        .work = work});
    std::uint32_t before = 0;
    for (const OpId earlier : before_me) {
      const bool chained =
          options.fixed_servers && s >= 0 && last[static_cast<std::size_t>(s)] == earlier;
      if (chained || pick(0, 5) == 0) {
        builder.add_edge(earlier, op);
        ++before;
      }
    }
    if (options.first_m && !options.fixed_servers && before > 1 && pick(0, 7) == 0)
      builder.wait_for_first(op, static_cast<std::uint32_t>(pick(1, static_cast<int>(before))));
    before_me.push_back(op);
    if (s >= 0) last[static_cast<std::size_t>(s)] = op;
  }
  Result<Graph> graph = std::move(builder).build();
  REHEARSE_CHECK(graph.has_value(), "{}", to_string(graph.error()));
  return std::move(*graph);
}

}  // namespace rehearse::test
