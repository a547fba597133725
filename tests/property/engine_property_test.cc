// Properties of the engine on random graphs. A failure prints the seed; run it alone with
// `property_tests "[seed]"` after setting REHEARSE_SEED.
#include <cmath>
#include <cstdlib>
#include <random>
#include <thread>

#include <catch2/catch.hpp>

#include "sim/engine/engine.h"
#include "sim/graph/critical_path.h"
#include "sim/program/attribution.h"
#include "tests/support/graph_text.h"
#include "tests/support/naive_engine.h"
#include "tests/support/random_graph.h"

namespace rehearse {
namespace {

using namespace graph;
using test::random_graph;
using test::RandomGraphOptions;

/// Seeds 1 to `count`, or the one that REHEARSE_SEED names.
template <class Check>
void for_seeds(int count, Check check) {
  const char* only = std::getenv("REHEARSE_SEED");
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(count); ++seed) {
    const std::uint64_t s = only ? std::strtoull(only, nullptr, 10) : seed;
    INFO("seed " << s);
    check(s);
    if (only) return;
  }
}

Timeline run(const Graph& graph) {
  Result<Timeline> timeline = engine::run(graph);
  INFO(to_text(graph));
  INFO((timeline ? "" : to_string(timeline.error())));
  REQUIRE(timeline);
  return *timeline;
}

TEST_CASE("the engine agrees with the naive one") {
  for_seeds(1500, [](std::uint64_t seed) {
    // Which of two ops asks first when an instant op lies between is a matter of taste.
    const Graph graph = random_graph(seed, {.instant_ops = false});
    const Timeline fast = run(graph), naive = test::naive_run(graph);
    for (std::size_t i = 0; i < graph.size(); ++i) {
      INFO("op " << i);
      // Both round the end of a flow to a picosecond, from sums in another order; what differs adds
      // up along a chain.
      const std::int64_t slack = graph.without_work() ? 0 : static_cast<std::int64_t>(graph.size());
      REQUIRE(std::abs(fast.ops[i].start.count() - naive.ops[i].start.count()) <= slack);
      REQUIRE(std::abs(fast.ops[i].end.count() - naive.ops[i].end.count()) <= slack);
    }
  });
}

TEST_CASE("the engine agrees with the naive one on devices that groups share") {
  for_seeds(500, [](std::uint64_t seed) {
    const Graph graph =
        random_graph(seed, {.max_ops = 25, .instant_ops = false, .shared_device = true});
    const Timeline fast = run(graph), naive = test::naive_run(graph);
    for (std::size_t i = 0; i < graph.size(); ++i) {
      INFO("op " << i);
      const std::int64_t slack =
          graph.without_work() ? 0 : 4 * static_cast<std::int64_t>(graph.size());
      REQUIRE(std::abs(fast.ops[i].start.count() - naive.ops[i].start.count()) <= slack);
      REQUIRE(std::abs(fast.ops[i].end.count() - naive.ops[i].end.count()) <= slack);
    }
  });
}

TEST_CASE("the engine agrees with the naive one on slots with capacities of their own") {
  for_seeds(800, [](std::uint64_t seed) {
    const Graph graph =
        random_graph(seed, {.max_ops = 20, .instant_ops = false, .slot_demands = true});
    const Timeline fast = run(graph), naive = test::naive_run(graph);
    for (std::size_t i = 0; i < graph.size(); ++i) {
      INFO("op " << i);
      const auto slack = static_cast<std::int64_t>(graph.size());
      REQUIRE(std::abs(fast.ops[i].start.count() - naive.ops[i].start.count()) <= slack);
      REQUIRE(std::abs(fast.ops[i].end.count() - naive.ops[i].end.count()) <= slack);
    }
  });
}

TEST_CASE("the engine agrees with the naive one on transfers") {
  for_seeds(600, [](std::uint64_t seed) {
    const Graph graph = random_graph(seed, {.max_ops = 15, .instant_ops = false, .transfers = 3});
    const Timeline fast = run(graph), naive = test::naive_run(graph);
    std::uint64_t flows = graph.size();  // each rounds its end
    for (const Transfer& t : graph.transfers()) flows += t.flows->messages();
    for (std::size_t i = 0; i < graph.size(); ++i) {
      INFO("op " << i);
      const auto slack = static_cast<std::int64_t>(flows);
      REQUIRE(std::abs(fast.ops[i].start.count() - naive.ops[i].start.count()) <= slack);
      REQUIRE(std::abs(fast.ops[i].end.count() - naive.ops[i].end.count()) <= slack);
    }
  });
}

/// 20 to 60 flows on 8 links, in one to three waves, some with equal demands. With `inexact`, sums of
/// their weights depend on the order.
Graph many_flows(std::uint64_t seed, bool inexact) {
  std::mt19937_64 rng(seed);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(rng);
  };
  GraphBuilder builder;
  const NameId name = builder.intern("flow");
  std::vector<CapacityId> links;
  for (int i = 0; i < 8; ++i)
    links.push_back(
        builder.add(Capacity{.name = builder.intern("link"), .rate = pick(1, 20) * 1e10}));
  std::vector<DemandId> demands;
  const int flows = pick(20, 60), waves = pick(1, 3);
  for (int i = 0; i < flows; ++i) {
    if (demands.empty() || pick(0, 4) > 0) {
      Demand demand{.weight = pick(1, 3) * (inexact ? 0.1 : 1)};
      const int first = pick(0, 7), second = pick(0, 7);
      demand.capacities.push_back(links[static_cast<std::size_t>(first)]);
      if (second != first) demand.capacities.push_back(links[static_cast<std::size_t>(second)]);
      if (pick(0, 5) == 0)
        demand.units_per_work.assign(demand.capacities.size(), 0.25 * pick(1, 8));
      if (pick(0, 5) == 0) demand.rate_cap = pick(1, 10) * 1e10;
      demands.push_back(builder.add(std::move(demand)));
    }
    const auto last = static_cast<int>(demands.size()) - 1;
    builder.add(
        Op{.name = name,
           .category = Category::kCommunication,
           .duration = Picoseconds(pick(0, waves - 1) * 7'000'000),
           .demand = demands[static_cast<std::size_t>(pick(0, 3) > 0 ? last : pick(0, last))],
           .work = static_cast<double>(pick(1, 4'000'000))});
  }
  return *std::move(builder).build();
}

TEST_CASE("the engine agrees with the naive one on many flows that end one after the other") {
  for_seeds(300, [](std::uint64_t seed) {
    const Graph graph = many_flows(seed, seed % 4 == 0);
    const Timeline fast = run(graph), naive = test::naive_run(graph);
    const auto slack = static_cast<std::int64_t>(graph.size());
    for (std::size_t i = 0; i < graph.size(); ++i) {
      INFO("op " << i);
      REQUIRE(std::abs(fast.ops[i].end.count() - naive.ops[i].end.count()) <= slack);
    }
  });
}

TEST_CASE("no op starts before its predecessors have ended") {
  for_seeds(500, [](std::uint64_t seed) {
    const Graph graph = random_graph(seed, {.first_m = false});
    const Timeline t = run(graph);
    for (std::size_t i = 0; i < graph.size(); ++i)
      for (const OpId to : graph.successors(OpId(i))) REQUIRE(t[to].start >= t[OpId(i)].end);
  });
}

TEST_CASE("the makespan is no less than any chain of durations, nor than any server's busy time") {
  for_seeds(500, [](std::uint64_t seed) {
    const Graph graph = random_graph(seed, {.capacities = false, .first_m = false});
    const Timeline t = run(graph);
    std::vector<Picoseconds> chain(graph.size(), Picoseconds(0));
    std::vector<std::int64_t> busy(graph.servers().size(), 0);
    for (std::size_t i = 0; i < graph.size(); ++i) {
      chain[i] += graph.duration(OpId(i));
      REQUIRE(t.makespan() >= chain[i]);
      for (const OpId to : graph.successors(OpId(i)))
        chain[to.index()] = std::max(chain[to.index()], chain[i]);
      if (const auto s = graph.demand(OpId(i)).server)
        busy[s->index()] += graph.duration(OpId(i)).count();
    }
    for (std::size_t s = 0; s < busy.size(); ++s)
      REQUIRE(t.makespan().count() * graph.servers()[s].slots >= busy[s]);
  });
}

TEST_CASE("a server never serves more ops than it has slots, nor a capacity more than its rate") {
  for_seeds(500, [](std::uint64_t seed) {
    const Graph graph = random_graph(seed);
    const Timeline t = run(graph);
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const auto server = graph.demand(OpId(i)).server;
      if (!server || t.ops[i].start == t.ops[i].end) continue;
      std::uint32_t together = 0;
      for (std::size_t j = 0; j < graph.size(); ++j)
        if (graph.demand(OpId(j)).server == server && t.ops[j].start <= t.ops[i].start &&
            t.ops[i].start < t.ops[j].end)
          ++together;
      REQUIRE(together <= graph.servers()[server->index()].slots);
    }
    // Bytes through a link between the first start and the last end are at most rate x time.
    for (std::size_t c = 0; c < graph.capacities().size(); ++c) {
      double work = 0;
      for (std::size_t i = 0; i < graph.size(); ++i)
        for (const CapacityId used : graph.demand(OpId(i)).capacities)
          if (used.index() == c) work += graph.work(OpId(i));
      REQUIRE(work <= graph.capacities()[c].rate * (t.makespan().seconds().s() + 1e-10));
    }
  });
}

TEST_CASE("scaling every time by k and every rate by 1/k scales the run by k") {
  for_seeds(300, [](std::uint64_t seed) {
    const Graph graph = random_graph(seed);
    std::string text = to_text(graph);
    // By way of the text form: every "…ps" times 3, every capacity's rate by a third.
    std::string scaled;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t line_end = text.find('\n', at);
      std::string line = text.substr(at, line_end - at);
      at = line_end + 1;
      if (line.starts_with("capacity")) {
        const std::size_t space = line.rfind(' ');
        line = line.substr(0, space + 1) + std::to_string(std::stod(line.substr(space)) / 3);
      }
      if (const std::size_t ps = line.find("ps"); ps != std::string::npos) {
        const std::size_t number = line.rfind(' ', ps) + 1;
        line = line.substr(0, number) +
               std::to_string(3 * std::stoll(line.substr(number, ps - number))) + line.substr(ps);
      }
      scaled += line + "\n";
    }
    const Result<Graph> tripled = parse_graph(scaled, "scaled");
    REQUIRE(tripled);
    const double once = run(graph).makespan().seconds().s(),
                 thrice = run(*tripled).makespan().seconds().s();
    REQUIRE(thrice == Approx(3 * once).epsilon(1e-6).margin(1e-10));
  });
}

TEST_CASE("repeated runs give identical timelines, regardless of concurrent runs") {
  for_seeds(20, [](std::uint64_t seed) {
    const Graph graph = random_graph(seed, {.max_ops = 200});
    const Timeline first = run(graph);
    std::vector<Timeline> others(4);
    std::vector<std::thread> threads;
    for (Timeline& other : others) threads.emplace_back([&] { other = *engine::run(graph); });
    for (std::thread& thread : threads) thread.join();
    for (const Timeline& other : others)
      for (std::size_t i = 0; i < graph.size(); ++i) {
        REQUIRE(other.ops[i].start == first.ops[i].start);
        REQUIRE(other.ops[i].end == first.ops[i].end);
        REQUIRE(other.ops[i].cause == first.ops[i].cause);
      }
  });
}

TEST_CASE("the critical path covers the run without gaps") {
  for_seeds(500, [](std::uint64_t seed) {
    const Graph graph = random_graph(seed);
    const Timeline t = run(graph);
    const std::vector<PathStep> path = critical_path(t);
    REQUIRE(!path.empty());
    REQUIRE(path.front().begin == Picoseconds(0));
    REQUIRE(path.back().end == t.makespan());
    for (std::size_t k = 1; k < path.size(); ++k) REQUIRE(path[k].begin == path[k - 1].end);
    Seconds sum = Seconds::s(0);
    for (const Seconds part : program::path_times(graph, path).by_category) sum += part;
    REQUIRE(sum.s() == Approx(t.makespan().seconds().s()));
  });
}

TEST_CASE("the text form is lossless on random graphs") {
  for_seeds(300, [](std::uint64_t seed) {
    const Graph graph = random_graph(seed, {.slot_demands = seed % 2 == 0});
    const std::string text = to_text(graph);
    const Result<Graph> again = parse_graph(text, "again");
    REQUIRE(again);
    REQUIRE(to_text(*again) == text);
    const Timeline a = run(graph), b = run(*again);
    for (std::size_t i = 0; i < graph.size(); ++i) REQUIRE(a.ops[i].end == b.ops[i].end);
  });
}

}  // namespace
}  // namespace rehearse
