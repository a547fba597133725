// A ring all-reduce message by message on a star, by our own flows and by SimGrid on the same
// graph.
#include <cmath>
#include <cstdlib>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "models/comm/schedule.h"
#include "sim/engine/engine.h"
#include "sim/engine/simgrid.h"
#include "tests/support/star.h"

namespace rehearse::bench {
namespace {

/// With `messages`, or with only the same links, which measures the cost of starting SimGrid.
graph::Graph ring(std::uint32_t ranks, bool messages) {
  graph::GraphBuilder builder;
  const auto schedule =
      comm::schedule(CollectiveKind::kAllReduce, Algorithm::kRing, {ranks, ranks});
  test::Star star(builder, ranks, {Seconds::us(2), ByteRate::gb_per_s(50)});
  const auto routes = star.routes(*schedule->flows);
  if (messages) test::add_transfer(builder, schedule->flows, routes, Bytes::gib(1).b());
  return *std::move(builder).build();
}

std::int64_t messages_of(const graph::Graph& graph) {
  return static_cast<std::int64_t>(graph.transfers().front().flows->messages());
}

void native(benchmark::State& state) {
  const graph::Graph graph = ring(static_cast<std::uint32_t>(state.range(0)), true);
  for (auto _ : state) benchmark::DoNotOptimize(engine::run(graph));
  state.SetItemsProcessed(state.iterations() * messages_of(graph));
}
BENCHMARK(native)
    ->Name("ring/native/ranks")
    ->Arg(64)
    ->Arg(256)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);

/// Processor time of the child processes in which SimGrid has run.
double seconds_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void simgrid(benchmark::State& state) {
  if (!engine::simgrid_available() || !engine::check_simgrid())
    return state.SkipWithError("no SimGrid");
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  const graph::Graph graph = ring(ranks, true), nothing = ring(ranks, false);
  const auto seconds_for = [](const graph::Graph& g, double& makespan) {
    const double before = seconds_of_children();
    if (const auto timeline = engine::run_on_simgrid(g))
      makespan = timeline->makespan().seconds().s();
    return seconds_of_children() - before;
  };
  double makespan = 0, empty = 0;
  const double start_up = seconds_for(nothing, empty);
  for (auto _ : state) state.SetIterationTime(seconds_for(graph, makespan) - start_up);
  const double ours = engine::run(graph)->makespan().seconds().s();
  // Each step is rounded to a picosecond.
  if (std::abs(makespan - ours) > 1e-9 * ours + 2e-12 * ranks)
    state.SkipWithError("SimGrid finds another end time");
  state.SetItemsProcessed(state.iterations() * messages_of(graph));
}
BENCHMARK(simgrid)
    ->Name("ring/simgrid/ranks")
    ->Arg(64)
    ->Arg(256)
    ->Arg(1024)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::bench
