// How fast the event loop is, beside a memory copy of what it must touch.
#include <benchmark/benchmark.h>

#include <cstring>

#include "sim/engine/engine.h"
#include "tests/bench/graphs.h"

namespace rehearse::bench {
namespace {

void engine(benchmark::State& state) {
  const graph::Graph graph = training_step(static_cast<std::size_t>(state.range(0)), 64);
  for (auto _ : state) benchmark::DoNotOptimize(engine::run(graph));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(graph.size()));
  state.counters["bytes_per_op"] =
      static_cast<double>(graph.bytes_at_rest()) / static_cast<double>(graph.size());
}
BENCHMARK(engine)->Name("engine/64_streams")->RangeMultiplier(10)->Range(1'000, 1'000'000)->Unit(
    benchmark::kMicrosecond);

void engine_streams(benchmark::State& state) {
  const graph::Graph graph = training_step(1'000'000, static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(engine::run(graph));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(graph.size()));
}
BENCHMARK(engine_streams)->Name("engine/1M_ops/streams")->Arg(8)->Arg(1024)->Unit(
    benchmark::kMicrosecond);

/// The least any engine must do: read the graph once and write two instants and a cause per op.
void copy(benchmark::State& state) {
  const graph::Graph graph = training_step(1'000'000, 64);
  const std::size_t read = graph.bytes_at_rest(), written = graph.size() * sizeof(graph::OpTimes);
  std::vector<char> from(read, 1);
  for (auto _ : state) {
    std::vector<char> to(written);
    for (std::size_t at = 0; at < read; at += written)
      std::memcpy(to.data(), from.data() + at, std::min(written, read - at));
    benchmark::DoNotOptimize(to.data());
  }
  state.SetItemsProcessed(state.iterations() * 1'000'000);
}
BENCHMARK(copy)->Name("reference/memory_copy_of_1M_ops")->Unit(benchmark::kMicrosecond);

/// All flows in flight at once; time per flow must not grow with their number, only with classes.
void sharing(benchmark::State& state) {
  const graph::Graph graph = shared_links(static_cast<std::size_t>(state.range(0)),
                                          static_cast<std::size_t>(state.range(1)), 8);
  for (auto _ : state) benchmark::DoNotOptimize(engine::run(graph));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(graph.size()));
}
BENCHMARK(sharing)
    ->Name("sharing/flows/classes")
    ->Args({1'000, 10})
    ->Args({10'000, 10})
    ->Args({100'000, 10})
    ->Args({10'000, 100})
    ->Unit(benchmark::kMicrosecond);

void build(benchmark::State& state) {
  const graph::Graph graph = training_step(1'000'000, 64);
  for (auto _ : state) benchmark::DoNotOptimize(graph::GraphBuilder(graph).build());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(graph.size()));
}
BENCHMARK(build)->Name("graph/build_and_verify_1M_ops")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rehearse::bench
