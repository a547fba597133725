// A training iteration of 512 ranks, end to end: from the job in memory to the timeline.
#include <benchmark/benchmark.h>

#include "models/job/lower.h"
#include "sim/base/check.h"
#include "sim/engine/engine.h"
#include "tests/bench/iteration.h"

namespace rehearse::bench {
namespace {

void simulate(benchmark::State& state, const Iteration& iteration, job::Fidelity fidelity) {
  const program::Program job = make_job(iteration);
  const cluster::Cluster cluster = make_iteration_cluster(iteration);
  const job::Rules rules{.fidelity = fidelity};
  std::uint64_t messages = 0;
  std::size_t ops = 0;
  for (auto _ : state) {
    Result<job::LoweredJob> lowered = job::lower(job, cluster, rules);
    REHEARSE_CHECK(lowered, "{}", to_string(lowered.error()));
    const Result<graph::Timeline> timeline = engine::run(lowered->graph);
    REHEARSE_CHECK(timeline, "{}", to_string(timeline.error()));
    benchmark::DoNotOptimize(timeline->makespan());
    messages = lowered->messages;
    ops = lowered->graph.size();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ops));
  state.counters["messages"] = static_cast<double>(messages);
}

void message_level(benchmark::State& state) {
  simulate(state, {.jitter = static_cast<double>(state.range(0)) / 100}, job::Fidelity::kMessage);
}
BENCHMARK(message_level)
    ->Name("iteration/512_ranks/messages/jitter_percent")
    ->Arg(0)
    ->Arg(10)
    ->Unit(benchmark::kMillisecond);

void closed_form(benchmark::State& state) { simulate(state, {}, job::Fidelity::kClosed); }
BENCHMARK(closed_form)->Name("iteration/512_ranks/closed")->Unit(benchmark::kMillisecond);

void folded(benchmark::State& state) {
  const Iteration iteration;
  const program::Program job = make_job(iteration);
  const cluster::Cluster cluster = make_iteration_cluster(iteration);
  std::size_t ops = 0;
  for (auto _ : state) {
    const auto lowered = job::fold(job, cluster, {.fidelity = job::Fidelity::kClosed});
    REHEARSE_CHECK(lowered && *lowered);
    benchmark::DoNotOptimize(engine::run((*lowered)->graph));
    ops = job.ops();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ops));
}
BENCHMARK(folded)->Name("iteration/512_ranks/folded")->Unit(benchmark::kMillisecond);

/// The parts of the message-level run.
void lowering(benchmark::State& state) {
  const Iteration iteration;
  const program::Program job = make_job(iteration);
  const cluster::Cluster cluster = make_iteration_cluster(iteration);
  for (auto _ : state) benchmark::DoNotOptimize(job::lower(job, cluster, {}));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(job.ops()));
}
BENCHMARK(lowering)->Name("iteration/512_ranks/lowering")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::bench
