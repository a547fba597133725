// The speed and the memory of running collectives message by message.
#include <random>

#include <benchmark/benchmark.h>

#include "sim/engine/engine.h"
#include "tests/bench/peak_memory.h"
#include "tests/support/closed_time.h"
#include "tests/support/star.h"

namespace rehearse::bench {
namespace {

constexpr cluster::PointToPoint kPath{Seconds::us(2), ByteRate::gb_per_s(50)};

/// A ring all-reduce of 1 GiB. With `spread` 0.1, the port of each rank is up to 10 % slower than
/// the others.
graph::Graph ring_all_reduce(std::uint32_t ranks, double spread) {
  graph::GraphBuilder builder;
  const comm::Schedule ring =
      *comm::schedule(CollectiveKind::kAllReduce, Algorithm::kRing, {ranks, ranks});
  test::Star star(builder, ranks, kPath);
  auto routes = std::make_shared<std::vector<graph::FlowRoute>>(*star.routes(*ring.flows));
  std::mt19937 rng(7);
  for (graph::FlowRoute& route : *routes)
    route.latency =
        route.latency * std::uniform_real_distribution<double>(1 - spread, 1 + spread)(rng);
  test::add_transfer(builder, ring.flows, routes, Bytes::gib(1).b());
  return *std::move(builder).build();
}

void ring(benchmark::State& state, double spread, engine::Division division) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  const graph::Graph graph = ring_all_reduce(ranks, spread);
  const auto run = [&] { benchmark::DoNotOptimize(engine::run(graph, {.division = division})); };
  for (auto _ : state) run();
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(graph.transfers()[0].flows->messages()));
  if (const auto peak = peak_memory(run))
    state.counters["peak_MiB"] = static_cast<double>(*peak) / 1048576.0;
}

void fair(benchmark::State& state) { ring(state, 0, engine::Division::kFair); }
void jittered(benchmark::State& state) { ring(state, 0.1, engine::Division::kFair); }
void first_come(benchmark::State& state) { ring(state, 0, engine::Division::kFirstCome); }
BENCHMARK(fair)
    ->Name("messages/ring")
    ->RangeMultiplier(4)
    ->Range(64, 4096)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(jittered)->Name("messages/ring_jittered")->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(first_come)->Name("messages/ring_first_come")->Arg(1024)->Unit(benchmark::kMillisecond);

/// All messages at once, with random sizes: bandwidth is divided in a large component once per
/// message.
void all_to_all(benchmark::State& state) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  std::mt19937 rng(7);
  std::vector<std::vector<double>> shares(ranks, std::vector<double>(ranks, 0));
  for (auto& row : shares)
    for (double& share : row) share = std::uniform_real_distribution<double>(0.5, 1.5)(rng) / ranks;
  const comm::Schedule schedule = comm::uneven_all_to_all(shares);
  graph::GraphBuilder builder;
  test::Star star(builder, ranks, kPath);
  test::add_transfer(builder, schedule.flows, star.routes(*schedule.flows), Bytes::gib(1).b());
  const graph::Graph graph = *std::move(builder).build();
  for (auto _ : state) benchmark::DoNotOptimize(engine::run(graph));
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(schedule.flows->messages()));
}
BENCHMARK(all_to_all)
    ->Name("messages/uneven_all_to_all")
    ->Arg(8)
    ->Arg(32)
    ->Arg(64)
    ->Unit(benchmark::kMillisecond);

/// Closed forms of schedules that are built once.
void closed(benchmark::State& state) {
  const comm::Schedule ring =
      *comm::schedule(CollectiveKind::kAllReduce, Algorithm::kRing, {1024, 8});
  double bytes = 1024;
  for (auto _ : state) {
    bytes = bytes < 1e9 ? bytes * 1.1 : 1024;
    benchmark::DoNotOptimize(test::closed_time(ring, Bytes::b(bytes), kPath));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(closed)->Name("messages/closed_form");

}  // namespace
}  // namespace rehearse::bench
