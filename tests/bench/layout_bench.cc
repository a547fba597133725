// Laying out a plan, which a search of plans does thousands of times.
#include <benchmark/benchmark.h>

#include "sim/base/check.h"
#include "strategies/lay_out.h"
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

}  // namespace
}  // namespace rehearse::strategies
