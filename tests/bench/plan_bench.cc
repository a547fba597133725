// Searching plans: how many a core judges in a second, beside the same without what plans share and
// without bounds.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "models/step/closed_step.h"
#include "models/step/collective_prices.h"
#include "models/step/devices.h"
#include "models/step/plan_costs.h"
#include "sim/base/check.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/lay_out.h"
#include "tests/bench/plan_jobs.h"
#include "tests/support/tiny_models.h"

namespace rehearse::bench {

using strategies::Candidate;
using strategies::Figure;
using strategies::Figures;

PlanJob gpt_175b_on(std::uint32_t gpus, const strategies::Axes& axes) {
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
      strategies::Space::of(spec.workload, spec.training, spec.plan, gpus, axes);
  REHEARSE_CHECK(space);
  return {std::move(spec), std::move(*cluster), std::move(*space)};
}

namespace {

Figures figures_of(const step::PlanCost& cost) { return {cost.step.s(), cost.memory.b(), 0, 0, 0}; }

strategies::Judge judge_of(const PlanJob& job, Bytes most, bool bounds) {
  const auto costs = std::make_shared<step::PlanCosts>(job.spec, job.cluster);
  const auto figures = [](const std::optional<step::PlanCost>& cost) -> std::optional<Figures> {
    if (!cost) return std::nullopt;
    return figures_of(*cost);
  };
  return {
      .bound = [=](const Candidate& c) -> std::optional<Figures> {
        if (!bounds) return Figures{};
        return figures(costs->at_least(c.training, c.plan));
      },
      .evaluate = [=](const Candidate& c) { return figures(costs->of(c.training, c.plan, most)); }};
}

/// Every k-th plan of the space.
std::vector<Candidate> sample_of(const PlanJob& job, std::size_t count) {
  std::vector<Candidate> sample;
  for (std::size_t i = 0; i < count; ++i)
    sample.push_back(job.space.at(i * job.space.size() / count));
  return sample;
}

constexpr std::size_t kSample = 4000;

void evaluate_plans(benchmark::State& state) {
  const PlanJob job = gpt_175b_on(static_cast<std::uint32_t>(state.range(0)));
  const std::vector<Candidate> sample = sample_of(job, kSample);
  std::size_t run = 0;
  for (auto _ : state) {
    step::PlanCosts costs(job.spec, job.cluster);
    run = 0;
    for (const Candidate& c : sample) {
      const auto cost = costs.of(c.training, c.plan, Bytes::gib(1e9));
      run += cost && cost->step > Seconds::s(0);
    }
  }
  state.counters["plans/s"] =
      benchmark::Counter(static_cast<double>(run), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(evaluate_plans)->Arg(1024)->Unit(benchmark::kMillisecond);

void bound_plans(benchmark::State& state) {
  const PlanJob job = gpt_175b_on(static_cast<std::uint32_t>(state.range(0)));
  const std::vector<Candidate> sample = sample_of(job, 20 * kSample);
  for (auto _ : state) {
    step::PlanCosts costs(job.spec, job.cluster);
    for (const Candidate& c : sample) benchmark::DoNotOptimize(costs.at_least(c.training, c.plan));
  }
  state.counters["plans/s"] = benchmark::Counter(static_cast<double>(sample.size()),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(bound_plans)->Arg(1024)->Unit(benchmark::kMillisecond);

void search_plans(benchmark::State& state) {
  const auto begin = std::chrono::steady_clock::now();
  const PlanJob job = gpt_175b_on(static_cast<std::uint32_t>(state.range(0)));
  const std::chrono::duration<double> listing = std::chrono::steady_clock::now() - begin;
  const auto threads = static_cast<unsigned>(state.range(1));
  strategies::Question question;
  question.at_most[1] = 0.95 * Bytes::gib(79.2).b();
  strategies::Found found;
  for (auto _ : state) {
    Result<strategies::Found> one = strategies::search(
        job.space, {0, job.space.size()}, question,
        [&] { return judge_of(job, Bytes::b(question.at_most[1]), true); }, {threads, {}});
    REHEARSE_CHECK(one && !one->best.empty());
    found = std::move(*one);
  }
  state.counters["listing s"] = listing.count();
  state.counters["seen"] = static_cast<double>(found.seen);
  state.counters["evaluated"] = static_cast<double>(found.evaluated);
  state.counters["front"] = static_cast<double>(found.front.size());
  state.counters["best s"] = found.best.front().figures[0];
}
BENCHMARK(search_plans)
    ->Args({1024, 1})
    ->Args({4096, 2})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
}  // namespace rehearse::bench
