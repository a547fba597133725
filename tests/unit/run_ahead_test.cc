// How far a host is ahead of its device.
#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "models/workload/transformer.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/step/devices.h"
#include "tests/support/laid_out.h"

namespace rehearse::step {
namespace {

using memory::RunAhead;

RunAhead ahead(const strategies::Plan& plan, double microbatch) {
  workload::Transformer model;
  model.hidden = 3072;
  model.layers = 16;
  model.heads = model.kv_heads = 32;
  model.head_size = 96;
  model.feed_forward = 8192;
  model.gated = true;
  model.sequence = 4096;
  model.vocabulary = 32000;
  const Result<workload::Workload> workload = workload::transformer(model, {});
  REQUIRE(workload);
  const strategies::Training training = {.global_batch = 8 * microbatch * plan.data,
                                         .microbatch = microbatch};
  const std::uint32_t nodes = plan.data * plan.tensor * plan.pipeline / 8;
  const Result<cluster::Cluster> cluster = cluster::parse_cluster(
      fmt::format("cluster: {{device: h100_sxm5_80, devices_per_node: 8, nodes: {}{}}}\n", nodes,
                  nodes > 1 ? ", inter_node: {links: 8, rate: 400 Gbit/s, latency: 15 us, network: "
                              "efa}"
                            : ""),
      "c.yaml");
  REQUIRE(cluster);
  const workload::Layout layout = test::laid_out(*workload, training, plan);
  return run_ahead(layout, layout.stages.front(), *cluster, **cluster::find_gpu("h100_sxm5_80"));
}

strategies::Plan plan_of(std::uint32_t data, std::uint32_t tensor, std::uint32_t pipeline) {
  strategies::Plan plan;
  plan.data = data;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.zero = 1;
  plan.sequence_parallel = true;
  return plan;
}

// Forward of a block of one sequence has 4096 · 2 · (4h² + 3hf) = 0.93 TFLOP in its products and
// 0.1 in attention: 3 ms of an H100 at 0.35 of 989 TFLOP/s, and less, divided by tensor parallelism.
// The host takes 4.9 / 2.3 = 2.1 ms inside a node, and (4.17 + 8 · 2.39) / 2.3 = 10 ms over EFA.
TEST_CASE("run ahead: a host is ahead of kernels that last longer than its launches") {
  CHECK(ahead(plan_of(2, 2, 2), 4) == RunAhead::kAll);      // 6 against 2.1 ms
  CHECK(ahead(plan_of(2, 2, 2), 1) == RunAhead::kWarmUp);   // 1.5
  CHECK(ahead(plan_of(2, 8, 2), 16) == RunAhead::kWarmUp);  // 6 against 10 ms
  CHECK(ahead(plan_of(2, 8, 2), 64) == RunAhead::kAll);     // 24
  CHECK(ahead(plan_of(2, 4, 1), 1) == RunAhead::kAll);  // without a pipeline no message stops it
}

TEST_CASE("run ahead: a host that waits at stalled exchanges is not ahead") {
  // Tensor groups over four nodes, with a pipeline.
  CHECK(ahead(plan_of(1, 32, 2), 64) == RunAhead::kNone);
}

}  // namespace
}  // namespace rehearse::step
