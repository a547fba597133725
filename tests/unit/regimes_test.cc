// Regimes of steps: which one a situation is in, and what it does to an interval.
#include "strategies/step/regimes.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "strategies/step/conditions.h"
#include "tests/support/laid_out.h"
#include "tests/support/tiny_models.h"

namespace rehearse::step {
namespace {

using comm::NetworkKind;

const Regime& of(std::optional<NetworkKind> network, std::uint32_t nodes, bool tensor,
                 bool pipeline, Situation s = {}) {
  s.nodes = nodes;
  s.network = network;
  s.tensor_nodes = tensor ? std::max(s.tensor_nodes, 2U) : 1;
  s.pipeline_over_nodes = pipeline;
  return regime_of(s);
}

TEST_CASE("regimes: the network between nodes and what crosses it decide") {
  CHECK(of({}, 1, false, false).name == "kernels");
  CHECK(of({}, 1, false, false, {.host_share = 0.6}).name == "host-bound");
  CHECK(of(NetworkKind::kEfa, 4, false, false).name == "kernels");
  CHECK(of(NetworkKind::kEfa, 4, true, false).name == "tensor parallelism over nodes, EFA");
  CHECK(of(NetworkKind::kEfa, 4, true, false, {.samples_in_tensor_group = 128}).stalled == 0.5);
  CHECK(of(NetworkKind::kEfa, 4, false, true).name == "pipeline over nodes, EFA");
  CHECK(of(NetworkKind::kEfa, 4, false, true, {.whole_gradients = true}).stalled == 0.17);
  CHECK(of(NetworkKind::kEfa, 16, false, true).stalled == 0.17);
  const Situation many{.whole_gradients = true, .microbatches = 16};
  CHECK(of(NetworkKind::kEfa, 4, false, true, many).nearly_all_stall());
  CHECK(of(NetworkKind::kEfa, 4, true, true, many).nearly_all_stall());
  CHECK(of(NetworkKind::kEfa, 2, false, true, many).stalled == 0.17);
  const Situation divided{.divided_update = true, .data = 32};
  CHECK(of(NetworkKind::kEfa, 32, false, true, divided).nearly_all_stall());
  CHECK_FALSE(of(NetworkKind::kEfa, 16, false, true, divided).nearly_all_stall());
  CHECK(of(NetworkKind::kEfa, 8, true, true, {.tensor_nodes = 4}).nearly_all_stall());
  CHECK_FALSE(of(NetworkKind::kEfa, 8, true, false, {.tensor_nodes = 4}).nearly_all_stall());
  Situation passed{.stages = 4, .passed = Bytes::mb(101)};
  CHECK(of(NetworkKind::kEfa, 2, false, true, passed).nearly_all_stall());
  passed.passed = Bytes::mb(50);
  CHECK(of(NetworkKind::kEfa, 2, false, true, passed).stalled == 0.02);
  CHECK(of(NetworkKind::kEfa, 4, false, false, many).name == "kernels");
  CHECK(of(NetworkKind::kEfa, 33, false, false).name == "above 32 nodes, EFA");
  CHECK(of(NetworkKind::kInfiniband, 32, false, true).name == "kernels");
  CHECK(of(NetworkKind::kInfiniband, 33, false, true).name == "above 32 nodes");
  CHECK(of(NetworkKind::kRoce, 128, false, false).name == "above 32 nodes");
  CHECK(of(NetworkKind::kInfiniband, 4, true, false).name == "tensor parallelism over nodes");
  // No published job has these.
  CHECK_FALSE(of(NetworkKind::kTcp, 2, true, false).known());
  CHECK_FALSE(of(NetworkKind::kTcp, 2, false, true).known());
  CHECK_FALSE(of({}, 2, true, false).known());
  CHECK(of(NetworkKind::kTcp, 2, false, false).known());
}

// A step of 2 s, 1.8 to 2.4 s: a range of factors from 0.8 to 1.6 makes it 1.6 to 3.2 s.
TEST_CASE("regimes: a regime never narrows an interval, and never changes the value") {
  const Estimate<Seconds> step{Seconds::s(2), Seconds::s(1.8), Seconds::s(2.4),
                               Provenance::kExtrapolated};
  const Estimate<Seconds> wide = widened(step, of(NetworkKind::kEfa, 4, true, false).factors);
  CHECK(wide.low.s() == Approx(1.6));
  CHECK(wide.high.s() == Approx(3.2));
  for (const Regime& regime : regimes()) {
    INFO(regime.name);
    const Estimate<Seconds> in = widened(step, regime.factors);
    CHECK(in.value == step.value);
    CHECK(in.low <= step.low);
    CHECK(in.high >= step.high);
    CHECK((regime.stalled >= 0 && regime.stalled < 1));
    CHECK((regime.stalled == 0) == (regime.stall == Seconds::s(0)));
  }
  CHECK(widened(step, of({}, 1, false, false).factors).high == step.high);
}

// Three quarters of a step of 4 s are launches of a host that takes 0.65 to 1.6 times as long:
// 4 · (1 - 0.75 · 0.35) = 2.95 s to 4 · (1 + 0.75 · 0.6) = 5.8 s.
TEST_CASE("regimes: an unmeasured host widens the interval by its share of the step") {
  const Estimate<Seconds> step{Seconds::s(4), Seconds::s(3.6), Seconds::s(4.4),
                               Provenance::kExtrapolated};
  const host::Implementation& eager = host::implementation_named("eager");
  const Estimate<Seconds> in = with_host(step, 0.75, eager);
  CHECK(in.value == step.value);
  CHECK(in.low.s() == Approx(2.95));
  CHECK(in.high.s() == Approx(5.8));
  CHECK(with_host(step, 0, eager).low == step.low);
  CHECK(with_host(step, 0.1, eager).high == step.high);  // 4.24 s
  CHECK(with_host(step, 1, {}).low == step.low);         // a host that is given
}

// 8 microbatches through 4 stages take 11 slots of 1.1 s each.
TEST_CASE("regimes: a stall is for each microbatch and each further stage") {
  workload::Layout layout{.names = {},
                          .stages = {},
                          .microbatches = 8,
                          .samples_per_step = 8,
                          .tokens_per_sample = 1,
                          .model_flops = Flops::flop(1),
                          .applied = {}};
  layout.stages.resize(4);
  // 17 % of the runs stall, and 5 % may take longer than the upper end: 1 − 5 / 17 of the stalled ones
  // are up to it, and 0.95 up to 12.1 s.
  CHECK(stall_of(of(NetworkKind::kEfa, 16, false, true), layout).s() ==
        Approx(12.1 * (1 - 0.05 / 0.17) / 0.95));
  CHECK(stall_of(of(NetworkKind::kEfa, 4, false, true), layout) == Seconds::s(0));
  CHECK(stall_of(of({}, 1, false, false), layout) == Seconds::s(0));
  // Their lengths are uniform from 0 to 12.1 s / 0.95, and those of 17 % of the runs are half of that.
  Situation over{.nodes = 16, .network = NetworkKind::kEfa, .pipeline_over_nodes = true};
  CHECK(mean_stall(over, layout, {}).s() == Approx(12.1 / 0.95 / 2 * 0.17));
  over.nodes = 4;
  CHECK(mean_stall(over, layout, {}) == Seconds::s(0));
  // The median run stalls above 32 nodes: 8 microbatches and 0.35 · 3 further stages, and each
  // waits for two neighbours for 0.56 s.
  const Regime& many = of(NetworkKind::kEfa, 64, false, true);
  const host::Implementation& measured = host::implementation_named("nanotron");
  CHECK(median_stall(many, layout, measured, false).s() == Approx(10.136));
  CHECK(median_stall(many, layout, host::implementation_named("eager"), true) == Seconds::s(0));
  CHECK(median_stall(of(NetworkKind::kEfa, 16, false, true), layout, measured, true) ==
        Seconds::s(0));
  layout.stages.resize(2);
  CHECK(median_stall(many, layout, measured, false).s() == Approx(4.676));
  // The sum of whole gradients is one more exchange.
  CHECK(median_stall(many, layout, measured, true).s() == Approx(5.236));
}

// With sequence parallelism a block gathers and scatters ten times: four in forward, and six in
// backward, which gathers its inputs again. 16 ranks are 15 steps of 43 us in each.
TEST_CASE("regimes: waits of rings over EFA follow the floor of stages") {
  const workload::Layout layout =
      test::laid_out(test::tiny_gpt({.heads = 16, .layers = 2}), {.global_batch = 4},
                     {.data = 1, .tensor = 16, .pipeline = 2, .sequence_parallel = true});
  Conditions conditions;
  conditions.host = host::implementation_named("nanotron");
  Situation over{
      .nodes = 4, .network = NetworkKind::kEfa, .tensor_nodes = 2, .pipeline_over_nodes = true};
  const auto floor = [&] { return job_options(conditions, over, layout).host.rank_over_efa * 16; };
  const Seconds with = floor();
  over.tensor_nodes = 1;
  const Seconds without = floor();
  CHECK(without == conditions.host.rank_over_efa * 16);
  CHECK((with - without).us() == Approx(10 * 15 * 43));
  over.tensor_nodes = 2;
  conditions.host = host::implementation_named("eager");
  CHECK(floor() == Seconds::s(0));
}

TEST_CASE("regimes: the range of kernels is that of conditions") {
  CHECK(Conditions().fastest == kKernelBound.low);
  CHECK(Conditions().slowest == kKernelBound.high);
  Conditions fp8;
  widen_kernels(fp8);
  CHECK(fp8.fastest == kOtherKernelBound.low);
  CHECK(fp8.slowest == kOtherKernelBound.high);
  Conditions wide;
  wide.fastest = 0.5;
  wide.slowest = 2;
  widen_kernels(wide);
  CHECK(wide.fastest == 0.5);
  CHECK(wide.slowest == 2);
}

}  // namespace
}  // namespace rehearse::step
