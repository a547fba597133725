// GPT-175B on thousands of GPUs: from the layout to the step time, and its parts. Compare machines
// by engine/64_streams/1000000.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "models/job/fold.h"
#include "models/job/lower.h"
#include "sim/base/check.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"
#include "strategies/job_of_layout.h"
#include "strategies/step/closed_step.h"
#include "strategies/step/collective_prices.h"
#include "tests/support/layouts.h"

namespace rehearse::bench {
namespace {

struct Size {
  std::uint32_t pipeline, tensor, data, microbatches;
  std::uint32_t gpus() const { return pipeline * tensor * data; }
};
constexpr Size k1024{16, 8, 8, 192};
constexpr Size k3072{12, 8, 32, 48};
constexpr Size k16384{16, 8, 128, 32};

workload::Layout layout_of(const Size& size) {
  return test::gpt_175b(size.pipeline, size.tensor, size.data, size.microbatches);
}

cluster::Cluster cluster_of(const Size& size) {
  auto cluster = cluster::parse_cluster(
      fmt::format("cluster: {{device: a100_sxm4_80, devices_per_node: 8, nodes: {}, inter_node: "
                  "{{kind: switch, links: 8, rate: 200 Gbit/s, latency: 5 us}}}}\n",
                  size.gpus() / 8),
      "cluster");
  REHEARSE_CHECK(cluster, "{}", to_string(cluster.error()));
  return std::move(*cluster);
}

program::Program job_of(const workload::Layout& layout) {
  Result<program::Program> job = strategies::job_of(layout, test::roofline_price, {});
  REHEARSE_CHECK(job, "{}", to_string(job.error()));
  return std::move(*job);
}

Result<graph::Timeline> run_engine(const graph::Graph& graph) { return engine::run(graph); }

job::LoweredJob folded(const program::Program& job, const cluster::Cluster& cluster,
                       const job::Rules& rules) {
  Result<std::optional<job::LoweredJob>> lowered = job::fold(job, cluster, rules, run_engine);
  REHEARSE_CHECK(lowered, "{}", to_string(lowered.error()));
  REHEARSE_CHECK(*lowered);
  return std::move(**lowered);
}

void whole(benchmark::State& state, const Size& size, job::Fidelity fidelity) {
  const workload::Layout layout = layout_of(size);
  const cluster::Cluster cluster = cluster_of(size);
  const job::Rules rules{.fidelity = fidelity, .calibrated = fidelity == job::Fidelity::kClosed};
  double step = 0;
  std::size_t ops = 0;
  for (auto _ : state) {
    const program::Program job = job_of(layout);
    const job::LoweredJob lowered = folded(job, cluster, rules);
    const auto timeline = engine::run(lowered.graph);
    REHEARSE_CHECK(timeline);
    step = timeline->makespan().seconds().s();
    ops = lowered.graph.size();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ops));
  state.counters["step_s"] = step;
}

/// Not folded: the messages of all ranks are run, in 32 microbatches.
void every_rank(benchmark::State& state) {
  const Size size{16, 8, static_cast<std::uint32_t>(state.range(0)) / 128, 32};
  const cluster::Cluster cluster = cluster_of(size);
  const program::Program job = job_of(layout_of(size));
  std::size_t ops = 0;
  std::uint64_t messages = 0;
  double step = 0;
  for (auto _ : state) {
    const Result<job::LoweredJob> lowered = job::lower(job, cluster, {});
    REHEARSE_CHECK(lowered, "{}", to_string(lowered.error()));
    const auto timeline = engine::run(lowered->graph);
    REHEARSE_CHECK(timeline);
    ops = lowered->graph.size();
    messages = lowered->messages;
    step = timeline->makespan().seconds().s();
  }
  state.counters["step_s"] = step;
  state.counters["messages"] = static_cast<double>(messages);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ops));
}

void part_job(benchmark::State& state, const Size& size) {
  const workload::Layout layout = layout_of(size);
  for (auto _ : state) benchmark::DoNotOptimize(job_of(layout));
}
void part_symmetry(benchmark::State& state, const Size& size) {
  const program::Program job = job_of(layout_of(size));
  for (auto _ : state)
    benchmark::DoNotOptimize(job::symmetry_of(job, false, job::classes_of_programs(job)));
}
void part_fold(benchmark::State& state, const Size& size, job::Fidelity fidelity) {
  const program::Program job = job_of(layout_of(size));
  const cluster::Cluster cluster = cluster_of(size);
  const job::Rules rules{.fidelity = fidelity, .calibrated = fidelity == job::Fidelity::kClosed};
  for (auto _ : state) benchmark::DoNotOptimize(folded(job, cluster, rules));
}
void part_run(benchmark::State& state, const Size& size) {
  const program::Program job = job_of(layout_of(size));
  const job::LoweredJob lowered =
      folded(job, cluster_of(size), {.fidelity = job::Fidelity::kClosed});
  for (auto _ : state) benchmark::DoNotOptimize(engine::run(lowered.graph));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(lowered.graph.size()));
}

void plans(benchmark::State& state, const Size& size) {
  const workload::Layout layout = layout_of(size);
  const cluster::Cluster cluster = cluster_of(size);
  const job::Rules rules{.fidelity = job::Fidelity::kClosed, .calibrated = true};
  step::CollectivePrices known(cluster, rules);
  const step::StepPrices prices = known.step_prices(test::roofline_price);
  double step = 0;
  for (auto _ : state) {
    const auto time = step::closed_step(layout, prices, {});
    REHEARSE_CHECK(time, "{}", to_string(time.error()));
    step = time->step.s();
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["step_s"] = step;
}

constexpr auto kMs = benchmark::kMillisecond;
constexpr auto kClosed = job::Fidelity::kClosed;
constexpr auto kMessage = job::Fidelity::kMessage;

BENCHMARK_CAPTURE(whole, 3072, k3072, kClosed)->Name("gpt_175b/3072/closed")->Unit(kMs);
BENCHMARK_CAPTURE(whole, 3072m, k3072, kMessage)->Name("gpt_175b/3072/messages")->Unit(kMs);
BENCHMARK_CAPTURE(whole, 16384, k16384, kClosed)->Name("gpt_175b/16384/closed")->Unit(kMs);
BENCHMARK_CAPTURE(whole, 16384m, k16384, kMessage)->Name("gpt_175b/16384/messages")->Unit(kMs);
BENCHMARK(every_rank)->Name("gpt_175b/every_rank")->Arg(128)->Arg(2048)->Arg(16384)->Unit(kMs);
BENCHMARK_CAPTURE(part_job, 3072, k3072)->Name("gpt_175b/3072/part/job")->Unit(kMs);
BENCHMARK_CAPTURE(part_job, 16384, k16384)->Name("gpt_175b/16384/part/job")->Unit(kMs);
BENCHMARK_CAPTURE(part_symmetry, 3072, k3072)->Name("gpt_175b/3072/part/symmetry")->Unit(kMs);
BENCHMARK_CAPTURE(part_symmetry, 16384, k16384)->Name("gpt_175b/16384/part/symmetry")->Unit(kMs);
BENCHMARK_CAPTURE(part_fold, 3072, k3072, kClosed)->Name("gpt_175b/3072/part/fold")->Unit(kMs);
BENCHMARK_CAPTURE(part_fold, 16384, k16384, kClosed)->Name("gpt_175b/16384/part/fold")->Unit(kMs);
BENCHMARK_CAPTURE(part_run, 3072, k3072)->Name("gpt_175b/3072/part/run")->Unit(kMs);
BENCHMARK_CAPTURE(plans, 1024, k1024)->Name("gpt_175b/1024/plans")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rehearse::bench
