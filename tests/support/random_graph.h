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
  bool capacities = true;      ///< some ops carry work
  bool fixed_servers = false;  ///< only servers whose order does not depend on when ops ask: one
                               ///< slot and a chain through all its ops
  bool first_m = true;         ///< some ops wait for the first m
  bool instant_ops = true;     ///< some ops take no time
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
  for (int i = 0; i < links; ++i)
    link.push_back(builder.add(
        Capacity{.name = builder.intern("link"), .rate = static_cast<double>(pick(1, 50)) * 1e10}));

  const int n = pick(1, options.max_ops);
  std::vector<std::optional<OpId>> last(static_cast<std::size_t>(servers));
  for (int i = 0; i < n; ++i) {
    Demand demand;
    double work = 0;
    const int s = pick(-1, servers - 1);
    if (s >= 0) {
      demand.server = server[static_cast<std::size_t>(s)];
      demand.priority = pick(0, 2);
    }
    if (links > 0 && pick(0, 2) == 0) {
      for (const CapacityId c : link)
        if (pick(0, 1)) demand.capacities.push_back(c);
      if (!demand.capacities.empty()) work = pick(1, 4'000'000);
      demand.weight = pick(1, 3);
    }
    const bool carries = work > 0;
    if (!carries) demand.capacities.clear();
    const OpId op = builder.add(Op{
        .name = name,
        .category = Category::kCompute,
        .duration = Picoseconds(options.instant_ops && pick(0, 9) == 0 ? 0 : pick(1, 20'000'000)),
        .demand = builder.add(std::move(demand)),
        .work = work});
    std::uint32_t before = 0;
    for (int j = 0; j < i; ++j) {
      const bool chained =
          options.fixed_servers && s >= 0 && last[static_cast<std::size_t>(s)] == OpId(j);
      if (chained || pick(0, 5) == 0) {
        builder.add_edge(OpId(j), op);
        ++before;
      }
    }
    if (options.first_m && !options.fixed_servers && before > 1 && pick(0, 7) == 0)
      builder.wait_for_first(op, static_cast<std::uint32_t>(pick(1, static_cast<int>(before))));
    if (s >= 0) last[static_cast<std::size_t>(s)] = op;
  }
  Result<Graph> graph = std::move(builder).build();
  REHEARSE_CHECK(graph.has_value(), "{}", to_string(graph.error()));
  return std::move(*graph);
}

}  // namespace rehearse::test
