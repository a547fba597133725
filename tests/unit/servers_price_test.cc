// What exchanges with servers of parameters cost without a graph, and a search that meets them.
#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "sim/cluster/read_cluster.h"
#include "strategies/step/collective_prices.h"
#include "strategies/step/plan_costs.h"
#include "strategies/step/predict.h"
#include "tests/support/layouts.h"
#include "tests/support/tiny_models.h"

namespace rehearse::step {
namespace {

cluster::Cluster one_per_node(std::uint32_t nodes) {
  const auto cluster = cluster::parse_cluster(
      fmt::format("cluster: {{device: a100_sxm4_40, devices_per_node: 1, nodes: {}, inter_node: "
                  "{{kind: switch, links: 1, rate: 1 GB/s, latency: 5 us}}}}\n",
                  nodes),
      "cluster");
  REQUIRE(cluster);
  return *cluster;
}

}  // namespace

TEST_CASE("4 GB of each worker go in equal parts to all servers, and the busiest port counts") {
  struct Row {
    std::uint32_t data, servers;
    double seconds;
  };
  // At 1 GB/s a worker's port is full for 4 s, and a server's for the parts of all workers.
  for (const Row& row : {Row{2, 4, 4}, Row{1, 8, 4}, Row{2, 2, 4}, Row{3, 2, 6}, Row{4, 1, 16}}) {
    INFO("data " << row.data << ", servers " << row.servers);
    const cluster::Cluster cluster = one_per_node(row.data + row.servers);
    const job::Rules rules{.fidelity = job::Fidelity::kClosed, .message_overhead = Seconds::s(0)};
    CollectivePrices prices(cluster, rules);
    const workload::Layout layout = test::layout_of({.degrees = {.data = row.data}}, {});
    workload::Servers servers{};
    servers.count = row.servers;
    servers.first_rank = row.data;
    const auto time = prices.to_servers(layout.stages[0], servers, Bytes::gb(4));
    REQUIRE(time);
    CHECK(time->value.s() == Approx(row.seconds).epsilon(1e-4));

    servers.count += 1;
    const auto too_many = prices.to_servers(layout.stages[0], servers, Bytes::gb(4));
    REQUIRE_FALSE(too_many);
    CHECK(to_string(too_many.error()) ==
          fmt::format("{} ranks on a cluster of {} devices; at least one device per rank",
                      row.data + row.servers + 1, row.data + row.servers));
  }
}

TEST_CASE("a search and a prediction agree on servers whose number does not divide the workers") {
  Spec spec{.workload = test::tiny_gpt({.hidden = 256, .heads = 4, .layers = 4}),
            .training = {.global_batch = 6},
            .plan = {.data = 3,
                     .synchronization = strategies::Synchronization::kParameterServer,
                     .parameter_server = {.servers = 2},
                     .overlap_gradients = false},
            .conditions = {}};
  const cluster::Cluster cluster = one_per_node(5);
  PlanCosts costs(spec, cluster);
  const auto cost = costs.of(spec.training, spec.plan, Bytes::gib(1000));
  INFO((cost ? "" : to_string(costs.why())));
  REQUIRE(cost);
  const auto step = predict(spec, cluster, {.fidelity = Fidelity::kClosed});
  INFO((step ? "" : to_string(step.error())));
  REQUIRE(step);
  CHECK(cost->step.s() == Approx(step->time.value.s()).epsilon(1e-6));
}

}  // namespace rehearse::step
