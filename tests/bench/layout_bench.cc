// Laying a plan out and running a pipeline's orders: what a search of plans does thousands of
// times.
#include <benchmark/benchmark.h>

#include "sim/base/check.h"
#include "strategies/bubble.h"
#include "strategies/lay_out.h"
#include "strategies/schedule.h"
#include "tests/support/tiny_models.h"

namespace rehearse::strategies {
namespace {

void lay_out_gpt_175b(benchmark::State& state) {
  const workload::Workload gpt = test::tiny_gpt({.hidden = 12288,
                                                 .heads = 96,
                                                 .sequence = 2048,
                                                 .vocabulary = 51200,
                                                 .layers = 96,
                                                 .flash = false});
  const Training training{.global_batch = 1536, .recompute = Recompute::kFull};
  const Plan plan{.data = 32, .tensor = 8, .pipeline = 12};
  for (auto _ : state) {
    const Result<workload::Layout> layout = lay_out(gpt, training, plan);
    REHEARSE_CHECK(layout && layout->ranks() == 3072);
    benchmark::DoNotOptimize(layout->model_flops);
  }
}
BENCHMARK(lay_out_gpt_175b)->Unit(benchmark::kMicrosecond);

void run_100k_slots(benchmark::State& state) {
  const PipelineShape shape{.stages = 16, .microbatches = 784, .chunks = 4};
  std::vector<std::vector<workload::Slot>> orders;
  std::vector<std::span<const workload::Slot>> spans;
  for (std::uint32_t s = 0; s < shape.stages; ++s)
    orders.push_back(order_of(Schedule::kInterleaved, shape, s));
  for (const std::vector<workload::Slot>& order : orders) spans.emplace_back(order);
  const PassTimes times{.forward = Seconds::ms(1), .backward = Seconds::ms(2)};
  const std::vector<std::vector<PassTimes>> all(shape.stages, {shape.chunks, times});
  for (auto _ : state) benchmark::DoNotOptimize(run_pipeline(spans, all, shape.microbatches));
}
BENCHMARK(run_100k_slots)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rehearse::strategies
