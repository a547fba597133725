// Comparison of two runs: the growth of its time with ops and with steps.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "profiler/compare/compare_runs.h"
#include "sim/base/check.h"
#include "tests/support/compare_random.h"

namespace rehearse::bench {
namespace {

compare::Run make_run(std::size_t ops, std::size_t steps, std::uint64_t seed) {
  compare::Random random(seed);
  compare::Run run{.source = "made up",
                   .ranks = 1,
                   .devices = {"GPU"},
                   .steps_from = "",
                   .step_time = std::vector<double>(steps)};
  for (std::size_t op = 0; op < ops; ++op) {
    compare::OpSlot slot{.kind = compare::OpKind::kKernel,
                         .name = fmt::format("kernel {}", op),
                         .from = fmt::format("operator {}", op % 50),
                         .layer = {},
                         .shapes = fmt::format("[{}]", op),
                         .grid = {},
                         .calls = 1,
                         .times = {}};
    for (std::size_t s = 0; s < steps; ++s) {
      slot.times.push_back(1e-4 * (1 + 0.01 * random.normal()));
      run.step_time[s] += slot.times.back();
    }
    run.slots.push_back(std::move(slot));
  }
  return run;
}

void compare_two_runs(benchmark::State& state) {
  const auto ops = static_cast<std::size_t>(state.range(0));
  const auto steps = static_cast<std::size_t>(state.range(1));
  const compare::Run a = make_run(ops, steps, 1), b = make_run(ops, steps, 2);
  for (auto _ : state) {
    const auto compared = compare::compare_runs(a, b, {});
    REHEARSE_CHECK(compared && compared->ops.size() == ops);
    benchmark::DoNotOptimize(compared);
  }
  state.counters["per_op_and_step"] = benchmark::Counter(
      static_cast<double>(ops * steps),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(compare_two_runs)
    ->ArgNames({"ops", "steps"})
    ->Args({100, 20})
    ->Args({100, 200})
    ->Args({800, 20})
    ->Args({800, 200})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::bench
