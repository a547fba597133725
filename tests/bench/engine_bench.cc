// The speed of the event loop, compared with a memory copy of the data that it must touch.
#include <cstring>

#include <benchmark/benchmark.h>

#include "sim/engine/engine.h"
#include "tests/bench/graphs.h"
#include "tests/bench/peak_memory.h"

namespace rehearse::bench {
namespace {

/// Bytes that a copy of the graph holds; 0 where the system does not report it.
std::size_t bytes_of(const graph::Graph& graph) {
  return peak_memory([&] {
           graph::Graph copy = graph;
           benchmark::DoNotOptimize(copy);
         })
      .value_or(0);
}

/// Memory at rest and additional memory during a run, per op with its edges (1.2 of them here).
void count_memory(benchmark::State& state, const graph::Graph& graph) {
  const auto ops = static_cast<double>(graph.size());
  state.counters["bytes_per_op"] = static_cast<double>(bytes_of(graph)) / ops;
  if (const auto peak = peak_memory([&] { benchmark::DoNotOptimize(engine::run(graph)); }))
    state.counters["run_bytes_per_op"] = static_cast<double>(*peak) / ops;
}

void run(benchmark::State& state, const graph::Graph& graph) {
  for (auto _ : state) benchmark::DoNotOptimize(engine::run(graph));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(graph.size()));
}

void engine(benchmark::State& state) {
  const graph::Graph graph = training_step(static_cast<std::size_t>(state.range(0)), 64);
  run(state, graph);
  count_memory(state, graph);
}
BENCHMARK(engine)
    ->Name("engine/64_streams")
    ->RangeMultiplier(10)
    ->Range(1'000, 10'000'000)
    ->Unit(benchmark::kMicrosecond);

void engine_streams(benchmark::State& state) {
  run(state, training_step(1'000'000, static_cast<std::size_t>(state.range(0))));
}
BENCHMARK(engine_streams)
    ->Name("engine/1M_ops/streams")
    ->RangeMultiplier(8)
    ->Range(1, 4096)
    ->Unit(benchmark::kMicrosecond);

void queues(benchmark::State& state) {
  const auto policy = state.range(1) ? graph::Policy::kPriority : graph::Policy::kFifo;
  run(state, long_queues(static_cast<std::size_t>(state.range(0)), 64, policy));
}
BENCHMARK(queues)
    ->Name("engine/long_queues/ops/priority")
    ->Args({10'000, 0})
    ->Args({10'000, 1})
    ->Args({1'000'000, 0})
    ->Args({1'000'000, 1})
    ->Unit(benchmark::kMicrosecond);

/// The minimum work of any engine: read the graph once and write two instants and a cause per op.
void copy(benchmark::State& state) {
  const graph::Graph graph = training_step(1'000'000, 64);
  const std::size_t read = bytes_of(graph), written = graph.size() * sizeof(graph::OpTimes);
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

/// All flows in flight at once; time per flow must grow only with the number of classes, not of
/// flows.
void sharing(benchmark::State& state) {
  const graph::Graph graph = shared_links(static_cast<std::size_t>(state.range(0)),
                                          static_cast<std::size_t>(state.range(1)), 8);
  run(state, graph);
}
BENCHMARK(sharing)
    ->Name("sharing/flows/classes")
    ->Args({1'000, 10})
    ->Args({10'000, 10})
    ->Args({100'000, 10})
    ->Args({10'000, 100})
    ->Args({10'000, 1'000})
    ->Unit(benchmark::kMicrosecond);

void build(benchmark::State& state) {
  const graph::Graph graph = training_step(1'000'000, 64);
  for (auto _ : state) benchmark::DoNotOptimize(graph::GraphBuilder(graph).build());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(graph.size()));
}
BENCHMARK(build)->Name("graph/build_and_verify_1M_ops")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rehearse::bench
