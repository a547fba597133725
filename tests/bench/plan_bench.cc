// Searching plans of GPT-3 with 175 billion parameters on A100: plans that a core evaluates per
// second, compared with the same without the data that plans share and without bounds.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "sim/base/check.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/search/search.h"
#include "strategies/search/space.h"
#include "strategies/step/plan_costs.h"
#include "tests/support/tiny_models.h"

namespace rehearse {
namespace {

using strategies::Candidate;
using strategies::Figures;

struct PlanJob {
  step::Spec spec;
  cluster::Cluster cluster;
  strategies::Space space;
};

/// 1,536 samples per step, nodes of eight GPUs.
PlanJob gpt_175b_on(std::uint32_t gpus) {
  Result<cluster::Cluster> cluster = cluster::parse_cluster(
      fmt::format("cluster: {{device: a100_sxm4_80, devices_per_node: 8, nodes: {}, intra_node: "
                  "nvswitch, inter_node: {{links: 8, rate: 200 Gbit/s, latency: 5 us}}}}",
                  gpus / 8),
      "cluster");
  REHEARSE_CHECK(cluster);
  const Result<const cluster::Gpu*> gpu = cluster::find_gpu("a100_sxm4_80");
  REHEARSE_CHECK(gpu);
  step::Spec spec{
      .workload = test::tiny_gpt(
          {.hidden = 12288, .heads = 96, .sequence = 2048, .vocabulary = 51200, .layers = 96}),
      .training = {.global_batch = 1536},
      .plan = {},
      .conditions = step::conditions_for(**gpu, workload::Elementwise::kEager)};
  Result<strategies::Space> space =
      strategies::Space::of(spec.workload, spec.training, spec.plan, gpus, {});
  REHEARSE_CHECK(space);
  return {std::move(spec), std::move(*cluster), std::move(*space)};
}

constexpr Bytes kEverything = Bytes::gib(1e9);

/// This many plans of the space, evenly spaced.
std::vector<Candidate> sample_of(const PlanJob& job, std::size_t count) {
  std::vector<Candidate> sample;
  for (std::size_t i = 0; i < count; ++i)
    sample.push_back(job.space.at(i * job.space.size() / count));
  return sample;
}

/// Computes layout, memory and step time of each plan.
void evaluate(benchmark::State& state) {
  const PlanJob job = gpt_175b_on(1024);
  const std::vector<Candidate> sample = sample_of(job, 4000);
  for (auto _ : state) {
    step::PlanCosts costs(job.spec, job.cluster);
    for (const Candidate& c : sample)
      benchmark::DoNotOptimize(costs.of(c.training, c.plan, kEverything));
    state.SetItemsProcessed(state.items_processed() + static_cast<std::int64_t>(sample.size()));
  }
}
BENCHMARK(evaluate)->Name("plans/evaluate")->Unit(benchmark::kMillisecond);

/// The same, with each plan evaluated as if it were the only one.
void evaluate_alone(benchmark::State& state) {
  const PlanJob job = gpt_175b_on(1024);
  const std::vector<Candidate> sample = sample_of(job, 100);
  for (auto _ : state) {
    for (const Candidate& c : sample)
      benchmark::DoNotOptimize(
          step::PlanCosts(job.spec, job.cluster).of(c.training, c.plan, kEverything));
    state.SetItemsProcessed(state.items_processed() + static_cast<std::int64_t>(sample.size()));
  }
}
BENCHMARK(evaluate_alone)->Name("plans/evaluate_alone")->Unit(benchmark::kMillisecond);

void bound(benchmark::State& state) {
  const PlanJob job = gpt_175b_on(1024);
  const std::vector<Candidate> sample = sample_of(job, 80000);
  for (auto _ : state) {
    step::PlanCosts costs(job.spec, job.cluster);
    for (const Candidate& c : sample) benchmark::DoNotOptimize(costs.at_least(c.training, c.plan));
    state.SetItemsProcessed(state.items_processed() + static_cast<std::int64_t>(sample.size()));
  }
}
BENCHMARK(bound)->Name("plans/bound")->Unit(benchmark::kMillisecond);

/// The best ten and the Pareto front of a whole space.
void search(benchmark::State& state) {
  const PlanJob job = gpt_175b_on(static_cast<std::uint32_t>(state.range(0)));
  strategies::Question question;
  question.at_most[static_cast<std::size_t>(strategies::Figure::kMemory)] =
      0.95 * step::PlanCosts(job.spec, job.cluster).usable().b();
  const auto new_judge = [&] {
    const auto costs = std::make_shared<step::PlanCosts>(job.spec, job.cluster);
    const auto figures = [](const std::optional<step::PlanCost>& cost) -> std::optional<Figures> {
      if (!cost) return std::nullopt;
      return Figures{cost->step.s(), cost->memory.b(), 0, 0, 0};
    };
    return strategies::Judge{
        .bound =
            [=, &job](std::uint64_t index) {
              const Candidate c = job.space.at(index);
              return figures(costs->at_least(c.training, c.plan));
            },
        .evaluate =
            [=, &job](std::uint64_t index) {
              const Candidate c = job.space.at(index);
              return figures(costs->of(c.training, c.plan, 0.95 * costs->usable()));
            }};
  };
  strategies::Found found;
  for (auto _ : state) {
    Result<strategies::Found> one = strategies::search(job.space.size(), question, new_judge,
                                                       {static_cast<unsigned>(state.range(1)), {}});
    REHEARSE_CHECK(one && !one->best.empty());
    found = std::move(*one);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(found.seen * state.iterations()));
  state.counters["seen"] = static_cast<double>(found.seen);
  state.counters["evaluated"] = static_cast<double>(found.evaluated);
  state.counters["front"] = static_cast<double>(found.front.size());
}
// One thread is timed in processor time, two in wall time.
BENCHMARK(search)
    ->Name("plans/search")
    ->Args({1024, 1})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);
BENCHMARK(search)
    ->Name("plans/search_threads")
    ->Args({4096, 2})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
}  // namespace rehearse
