// Closed forms of collectives per second on one core: a search of plans prices thousands of plans
// with them.
#include <benchmark/benchmark.h>

#include "models/comm/transfer.h"

namespace rehearse {
namespace {

using comm::CollectiveCost;

/// Sizes from 1 KiB to 1 GiB, each different from the last.
Bytes next_size(std::uint32_t& state) {
  state = state * 1664525 + 1013904223;
  return Bytes::b(static_cast<double>(1U << (10 + state % 21)) + static_cast<double>(state >> 22));
}

void price(benchmark::State& run, const char* device, CollectiveKind kind) {
  const comm::Calibrated calibrated = *comm::calibration_for(device);
  const CollectiveCost cost = *CollectiveCost::resolve(calibrated, {.kind = kind, .ranks = 8});
  std::uint32_t state = 1;
  for (auto _ : run) benchmark::DoNotOptimize(cost.at(next_size(state)));
  run.SetItemsProcessed(run.iterations());
}
BENCHMARK_CAPTURE(price, all_reduce_h100, "h100_sxm5_80", CollectiveKind::kAllReduce)
    ->Name("collective/price/all_reduce_h100");
BENCHMARK_CAPTURE(price, all_reduce_b200, "b200_sxm_180", CollectiveKind::kAllReduce)
    ->Name("collective/price/all_reduce_b200");
BENCHMARK_CAPTURE(price, all_to_all_h100, "h100_sxm5_80", CollectiveKind::kAllToAll)
    ->Name("collective/price/all_to_all_h100");

/// Resolves anew for every price, with another group each time.
void resolve_and_price(benchmark::State& run) {
  const comm::Calibrated calibrated = *comm::calibration_for("h100_sxm5_80");
  std::uint32_t state = 1;
  for (auto _ : run) {
    const Bytes size = next_size(state);
    const auto cost = CollectiveCost::resolve(
        calibrated, {.kind = CollectiveKind::kAllReduce, .ranks = 2 + state % 7});
    benchmark::DoNotOptimize(cost->at(size));
  }
  run.SetItemsProcessed(run.iterations());
}
BENCHMARK(resolve_and_price)->Name("collective/resolve_and_price");

}  // namespace
}  // namespace rehearse
