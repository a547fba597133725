// The host of a rank as a thread of its program: how far it runs ahead, and where it waits.
#include <catch2/catch.hpp>

#include "models/job/lower.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"
#include "strategies/step/closed_step.h"
#include "strategies/step/collective_prices.h"
#include "tests/support/layouts.h"

namespace rehearse::step {
namespace {

using workload::Layer;
using workload::Layout;

/// A block of one kernel forward and one backward; times in milliseconds.
Layer block(double forward, double backward, double host_work = 1) {
  Layer layer{.name = "block",
              .forward = {test::seconds_op(forward * 1e-3)},
              .backward = {test::seconds_op(backward * 1e-3)}};
  layer.host_work = host_work;
  return layer;
}

/// Time of a step in milliseconds by the engine, which the closed form must equal. `host`: of a
/// block, forward and backward, which are as 1 to 1.3.
double ms(const Layout& layout, double host, bool blocking = false) {
  const auto cluster = cluster::parse_cluster(
      "cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 1, intra_node: {kind: nvswitch, "
      "rate: 400 GB/s, latency: 0 us}}\n",
      "cluster");
  INFO((cluster ? "" : to_string(cluster.error())));
  REQUIRE(cluster);
  const job::Rules rules{.fidelity = job::Fidelity::kClosed};
  StepOptions options;
  const Seconds time = Seconds::ms(host);
  options.job = {.host = {.layer = time, .layer_tensor = time, .layer_pipeline = time},
                 .blocking = blocking};
  const auto job = strategies::job_of(layout, test::seconds_price, options.job);
  REQUIRE(job);
  const auto lowered = job::lower(*job, *cluster, rules);
  REQUIRE(lowered);
  const auto timeline = engine::run(lowered->graph);
  REQUIRE(timeline);
  CollectivePrices prices(*cluster, rules);
  const auto closed = closed_step(layout, prices.step_prices(test::seconds_price), options);
  REQUIRE(closed);
  CHECK(closed->step.s() == Approx(timeline->makespan().seconds().s()).epsilon(1e-9));
  return timeline->makespan().seconds().s() * 1e3;
}

TEST_CASE(
    "launches: a device that takes no time waits for its host, and a free host changes nothing") {
  for (const std::uint32_t stages : {1U, 2U})
    for (const bool blocking : {false, true}) {
      INFO(stages << " stages, blocking " << blocking);
      const auto layout = [&](const Layer& layer) {
        return test::layout_of({.stages = stages, .layers = 3, .microbatches = 4}, layer);
      };
      // A pipeline of two takes 5 passes forward and backward in place of 4.
      const double passes = stages == 1 ? 4 : 5;
      CHECK(ms(layout(block(0, 0)), 2.3, blocking) == Approx(passes * 3 * 2.3).epsilon(1e-9));
      CHECK(ms(layout(block(1, 2)), 0, blocking) == Approx(passes * 3 * 3).epsilon(1e-9));
      CHECK(ms(layout(block(1, 2)), 1e-6, false) == Approx(passes * 3 * 3).epsilon(1e-6));
    }
}

TEST_CASE("launches: a host that runs ahead gains in one pass what it loses in another") {
  // Forward the host takes 3 ms and the device 1 ms, backward 3.9 and 6: alone 3 + 6, together 7.
  const Layout layout = test::layout_of({.layers = 4, .microbatches = 20}, block(1, 6));
  CHECK(ms(layout, 6.9) == Approx(20 * 4 * 7).epsilon(0.02));
  // In a pipeline the host waits for what its stage receives, before each pass: 3 + 6.
  const Layout stages =
      test::layout_of({.stages = 2, .layers = 4, .microbatches = 20}, block(1, 6));
  CHECK(ms(stages, 6.9) == Approx(21 * 4 * 9).epsilon(0.01));
  // A layer whose host is not known takes as long on the host as on the device.
  Layout head = test::layout_of({.layers = 4, .microbatches = 20}, block(1, 2));
  head.stages[0].chunks[0].layers.push_back(block(2, 2, 0));
  CHECK(ms(head, 6.9) == Approx(20 * (4 * 6.9 + 4)).epsilon(0.02));
}

TEST_CASE("launches: the queue holds about 1,100") {
  // 8 passes forward, of 1 ms on the host and 3 on the device, then 8 of 1.3 and 0.4 backward.
  Layer layer = block(3, 0.4);
  const auto step = [&](double kernels) {
    layer.forward[0].kernels = layer.backward[0].kernels = kernels;
    return ms(test::layout_of({.layers = 1, .microbatches = 8, .gpipe = true}, layer), 2.3);
  };
  // With few launches the host is done before the device: 24 + 8 · 0.4.
  CHECK(step(10) == Approx(24 + 3.2));
  // If a pass fills the queue, the host begins a pass when the last but one has ended: at 21 ms the
  // first pass backward, and at 24 the second, from which on the device waits for it.
  CHECK(step(1100) == Approx(24 + 7 * 1.3));
}

TEST_CASE("launches that block take turns with their kernels") {
  for (const std::uint32_t stages : {1U, 2U}) {
    const Layout layout =
        test::layout_of({.stages = stages, .layers = 3, .microbatches = 4}, block(1, 2));
    CHECK(ms(layout, 2.3, true) == Approx((stages == 1 ? 4 : 5) * 3 * (2.3 + 3)));
  }
}

}  // namespace
}  // namespace rehearse::step
