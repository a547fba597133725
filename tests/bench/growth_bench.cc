// The growth of the time to predict a job with its ranks, layers and microbatches: a GPT with
// layers of width 12288 on 12 stages of tensor 8. Starting from 96 layers and 48 microbatches on
// 1536 ranks, each number in turn is doubled. growth.gp plots it together with
// engine/64_streams/100000 of the same run.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "models/job/fold.h"
#include "sim/base/check.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"
#include "strategies/job_of_layout.h"
#include "strategies/lay_out.h"
#include "strategies/step/closed_step.h"
#include "strategies/step/collective_prices.h"
#include "tests/support/layouts.h"
#include "tests/support/tiny_models.h"

namespace rehearse::bench {
namespace {

struct Size {
  std::uint32_t ranks = 1536, layers = 96, microbatches = 48;
};

enum class How : std::uint8_t { kPlan, kClosed, kMessage };

template <class T>
T must(Result<T> result) {
  REHEARSE_CHECK(result, "{}", to_string(result.error()));
  return std::move(*result);
}

Result<graph::Timeline> run_engine(const graph::Graph& graph) { return engine::run(graph); }

/// The step time of one plan, including its layout.
void predict(benchmark::State& state, How how, const Size& size) {
  constexpr std::uint32_t kTensor = 8, kPipeline = 12;
  const std::uint32_t data = size.ranks / (kTensor * kPipeline);
  const workload::Workload gpt = test::tiny_gpt({.hidden = 12288,
                                                 .heads = 96,
                                                 .sequence = 2048,
                                                 .vocabulary = 51200,
                                                 .layers = size.layers,
                                                 .flash = false});
  const strategies::Training training{.global_batch = static_cast<double>(size.microbatches * data),
                                      .recompute = strategies::Recompute::kFull};
  const strategies::Plan plan{.data = data, .tensor = kTensor, .pipeline = kPipeline};
  const cluster::Cluster cluster = must(cluster::parse_cluster(
      fmt::format("cluster: {{device: a100_sxm4_80, devices_per_node: 8, nodes: {}, inter_node: "
                  "{{kind: switch, links: 8, rate: 200 Gbit/s, latency: 5 us}}}}\n",
                  size.ranks / 8),
      "cluster"));
  const bool closed = how != How::kMessage;
  const job::Rules rules{.fidelity = closed ? job::Fidelity::kClosed : job::Fidelity::kMessage,
                         .calibrated = closed};
  step::CollectivePrices known(cluster, rules);
  const step::StepPrices prices = known.step_prices(test::roofline_price);
  for (auto _ : state) {
    const workload::Layout layout = must(strategies::lay_out(gpt, training, plan));
    if (how == How::kPlan) {
      benchmark::DoNotOptimize(must(step::closed_step(layout, prices, {})));
      continue;
    }
    const program::Program job = must(strategies::job_of(layout, test::roofline_price, {}));
    const auto lowered = must(job::fold(job, cluster, rules, run_engine));
    REHEARSE_CHECK(lowered);
    benchmark::DoNotOptimize(must(engine::run(lowered->graph)));
  }
}

void add(const char* what, std::uint32_t value, const Size& size) {
  constexpr const char* kNames[] = {"plan", "closed", "messages"};
  for (const How how : {How::kPlan, How::kClosed, How::kMessage})
    benchmark::RegisterBenchmark(
        fmt::format("growth/{}/{}/{}", what, kNames[static_cast<int>(how)], value).c_str(), predict,
        how, size)
        ->Unit(benchmark::kMillisecond);
}

const bool added = [] {
  for (std::uint32_t data = 1; data <= 256; data *= 2)
    add("ranks", 96 * data, {.ranks = 96 * data});
  for (std::uint32_t layers = 12; layers <= 768; layers *= 2)
    add("layers", layers, {.layers = layers});
  for (std::uint32_t microbatches = 12; microbatches <= 1536; microbatches *= 2)
    add("microbatches", microbatches, {.microbatches = microbatches});
  return true;
}();

}  // namespace
}  // namespace rehearse::bench
