// Our own flows against SimGrid's on the same graphs.
#include <csignal>
#include <fstream>
#include <random>
#include <thread>

#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <unistd.h>

#include "models/comm/schedule.h"
#include "sim/engine/engine.h"
#include "sim/engine/simgrid.h"
#include "tests/support/networks.h"
#include "tests/support/random_graph.h"
#include "tests/support/star.h"

namespace rehearse::engine {
namespace {

using graph::Capacity;
using graph::Category;
using graph::Demand;
using graph::Graph;
using graph::GraphBuilder;
using graph::Op;
using graph::Timeline;

#define SKIP_WITHOUT_SIMGRID()                                       \
  if (!simgrid_available()) {                                        \
    WARN("skipped: built without SimGrid (install libsimgrid-dev)"); \
    return;                                                          \
  }

constexpr unsigned kWorkers = 2;

std::string error_of(const Result<Timeline>& timeline) {
  return timeline ? std::string() : to_string(timeline.error());
}

/// Ends of all ops, equal up to a relative 1e-9 and `slack` picoseconds.
void require_equal(const Timeline& ours, const Result<Timeline>& theirs, std::int64_t slack) {
  INFO(error_of(theirs));
  REQUIRE(theirs);
  REQUIRE(theirs->ops.size() == ours.ops.size());
  for (std::size_t i = 0; i < ours.ops.size(); ++i) {
    INFO("op " << i);
    const auto a = ours.ops[i].end.count(), b = theirs->ops[i].end.count();
    const double most = static_cast<double>(slack) + 1e-9 * static_cast<double>(a);
    REQUIRE(std::abs(static_cast<double>(a - b)) <= most);
  }
}

TEST_CASE("SimGrid's start-up check passes") {
  SKIP_WITHOUT_SIMGRID();
  const Status ok = check_simgrid();
  INFO((ok ? "" : to_string(ok.error())));
  CHECK(ok);
}

TEST_CASE("SimGrid agrees on random graphs with weights, caps and links that change") {
  SKIP_WITHOUT_SIMGRID();
  std::vector<Graph> graphs;
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    graphs.push_back(test::random_graph(
        seed, {.max_ops = 15, .instant_ops = false, .flow_priorities = false, .transfers = 3}));
  const auto theirs = run_on_simgrid(graphs, kWorkers);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    INFO("seed " << i + 1);
    const auto ours = run(graphs[i]);
    REQUIRE(ours);
    // These last microseconds: rounding to a picosecond per flow is more than 1e-9.
    std::uint64_t flows = graphs[i].size();
    for (const graph::Transfer& t : graphs[i].transfers()) flows += t.flows->messages();
    require_equal(*ours, theirs[i], static_cast<std::int64_t>(flows));
  }
}

struct Case {
  std::string name;
  Graph graph;
};

/// Two collectives at once among all ranks of a network, every rank beginning at a random time,
/// with ops that move work along some of the paths. So long that a picosecond per message is below
/// 1e-9.
Case random_case(const test::Network& network, const comm::Schedule& schedule, std::string name,
                 std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  const auto up_to = [&](double most) {
    return std::uniform_real_distribution<double>(0, most)(rng);
  };
  GraphBuilder builder;
  const std::uint32_t ranks = schedule.flows->members();
  const test::Path path = network.make(test::LinkMaker(builder, 50e9), ranks);
  const auto routes =
      test::routes_on(path, *schedule.flows, Picoseconds::from(Seconds::us(2)), builder);
  for (int collective = 0; collective < 2; ++collective)
    for (const OpId member :
         test::add_transfer(builder, schedule.flows, routes, 1e11 * (1 + up_to(1))))
      builder.set_duration(member, Picoseconds::from(Seconds::s(up_to(2))));
  for (std::uint32_t rank = 1; rank < ranks; rank += 3)
    builder.add(Op{.name = builder.intern("copy"),
                   .category = Category::kCommunication,
                   .duration = Picoseconds::from(Seconds::s(up_to(2))),
                   .demand = builder.add(Demand{.capacities = path(rank, 0)}),
                   .work = 1e11 * up_to(1)});
  Result<Graph> graph = std::move(builder).build();
  REQUIRE(graph);
  return {fmt::format("{} on a {}", name, network.name), std::move(*graph)};
}

TEST_CASE("SimGrid agrees on collectives over networks whose links are shared") {
  SKIP_WITHOUT_SIMGRID();
  struct Collective {
    CollectiveKind kind;
    Algorithm algorithm;
    std::uint32_t ranks;
  };
  const Collective collectives[] = {
      {CollectiveKind::kAllReduce, Algorithm::kRing, 16},
      {CollectiveKind::kAllReduce, Algorithm::kHalvingDoubling, 16},
      {CollectiveKind::kAllReduce, Algorithm::kHierarchical, 12},
      {CollectiveKind::kAllReduce, Algorithm::kTree, 12},
      {CollectiveKind::kAllToAll, Algorithm::kLinear, 8},
      {CollectiveKind::kAllToAll, Algorithm::kPairwise, 12},
  };
  std::vector<Case> cases;
  std::uint64_t seed = 0;
  for (const test::Network& network : test::kNetworks) {
    for (const Collective& c : collectives) {
      const auto schedule = comm::schedule(c.kind, c.algorithm, {c.ranks, 4});
      REQUIRE(schedule);
      cases.push_back(random_case(network, *schedule,
                                  fmt::format("{} {}", to_string(c.algorithm), to_string(c.kind)),
                                  ++seed));
    }
    constexpr std::uint32_t kRanks = 8;
    std::mt19937_64 rng(++seed);
    std::vector<std::vector<double>> shares(kRanks, std::vector<double>(kRanks, 0));
    for (std::uint32_t from = 0; from < kRanks; ++from)
      for (std::uint32_t to = 0; to < kRanks; ++to)
        if (from != to) shares[from][to] = std::uniform_real_distribution<double>(0, 0.2)(rng);
    cases.push_back(
        random_case(network, comm::uneven_all_to_all(shares), "uneven all_to_all", seed));
  }
  std::vector<Graph> graphs;
  for (const Case& c : cases) graphs.push_back(c.graph);
  const auto theirs = run_on_simgrid(graphs, kWorkers);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].name);
    const auto ours = run(cases[i].graph);
    REQUIRE(ours);
    require_equal(*ours, theirs[i], 0);
  }
}

TEST_CASE("graphs with one platform share it, and each gives its own result") {
  SKIP_WITHOUT_SIMGRID();
  const auto schedule = comm::schedule(CollectiveKind::kAllReduce, Algorithm::kRing, {8, 8});
  REQUIRE(schedule);
  const Case base = random_case(test::kNetworks[2], *schedule, "ring", 1);
  std::vector<Graph> graphs;
  for (int i = 0; i < 5; ++i) {
    GraphBuilder builder(base.graph);
    builder.set_duration(OpId(0), Picoseconds::from(Seconds::s(i)));
    graphs.push_back(*std::move(builder).build());
  }
  const auto together = run_on_simgrid(graphs, kWorkers);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    INFO("graph " << i);
    const auto alone = run_on_simgrid(graphs[i]);
    REQUIRE(alone);
    REQUIRE(together[i]);
    for (std::size_t k = 0; k < alone->ops.size(); ++k)
      REQUIRE(alone->ops[k].end == together[i]->ops[k].end);
  }
}

/// Messages of 1 GB on one link, the first of them with a standing of its own.
Result<Graph> messages(std::uint32_t count, const Demand& link_share, double rate = 1e9) {
  GraphBuilder builder;
  const CapacityId link = builder.add(Capacity{.name = builder.intern("nic 3"), .rate = rate});
  Demand demand = link_share;
  demand.capacities = {link};
  std::vector<graph::MessageFlow> all(count, graph::MessageFlow{0, 1, 1, 1});
  auto flows = std::make_shared<graph::MessageFlows>(2, all, std::vector<graph::Wait>{});
  auto routes = std::make_shared<std::vector<graph::FlowRoute>>(
      count, graph::FlowRoute{builder.add(Demand{.capacities = {link}}), Picoseconds(0)});
  routes->front().demand = builder.add(std::move(demand));
  test::add_transfer(builder, flows, routes, 1e9);
  return std::move(builder).build();
}

TEST_CASE(
    "graphs that SimGrid cannot carry are refused in one line, and a run that never ends is "
    "ended") {
  SKIP_WITHOUT_SIMGRID();
  const auto error = [](const Result<Graph>& graph) {
    REQUIRE(graph);
    return error_of(run_on_simgrid(*graph));
  };
  CHECK(error(messages(2, {.priority = 3})) ==
        "flows of priorities 0 and 3; one priority for SimGrid; use --fidelity message");
  CHECK(error(messages(2, {.weight = 1.5})) ==
        "a flow of weight 1.5; for SimGrid a whole number up to 16; use --fidelity message");
  CHECK(
      error(messages(5001, {})) ==
      "more than 5000 concurrent flows; fewer: SimGrid's run time grows faster than their square; "
      "use --fidelity message");
  CHECK(error(messages(1, {}, 1e-3)) == "the run lasts longer than 104 days of simulated time");
  const Result<Graph> down = messages(1, {}, 0);
  REQUIRE(down);
  CHECK(error_of(run_on_simgrid(*down)) == error_of(run(*down)));
  CHECK(error(down).find("capacity 'nic 3', whose rate is zero") != std::string::npos);
}

TEST_CASE("a process that dies leaves an error") {
  SKIP_WITHOUT_SIMGRID();
  const std::string children = fmt::format("/proc/self/task/{}/children", ::getpid());
  if (!std::ifstream(children)) {
    WARN("skipped: this system does not tell the children of a process");
    return;
  }
  REQUIRE(check_simgrid());
  const auto schedule = comm::schedule(CollectiveKind::kAllReduce, Algorithm::kRing, {256, 256});
  REQUIRE(schedule);
  const Case slow = random_case(test::kNetworks[0], *schedule, "ring", 1);
  std::thread killer([&] {
    pid_t child = 0;
    while (!(std::ifstream(children) >> child)) std::this_thread::yield();
    ::kill(child, SIGKILL);
  });
  const Result<Timeline> timeline = run_on_simgrid(slow.graph);
  killer.join();
  CHECK(error_of(timeline) ==
        "SimGrid ended without a result (signal 9, Killed); use --fidelity message");
}

}  // namespace
}  // namespace rehearse::engine
