// Jobs with models of the zoo, on nodes of eight A100s.
#pragma once

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/step/predict.h"
#include "tests/support/zoo_model.h"

namespace rehearse::test {

inline cluster::Cluster a100_nodes(int nodes) {
  Result<cluster::Cluster> cluster = cluster::parse_cluster(
      fmt::format("cluster: {{device: a100_sxm4_80, devices_per_node: 8, nodes: {}, intra_node: "
                  "nvswitch, inter_node: {{links: 8, rate: 200 Gbit/s, latency: 5 us}}}}",
                  nodes),
      "cluster.yaml");
  INFO((cluster ? "" : to_string(cluster.error())));
  REQUIRE(cluster);
  return std::move(*cluster);
}

/// With a host that launches nothing later than the device needs it.
inline step::Conditions a100_conditions() {
  step::Conditions conditions =
      step::conditions_for(**cluster::find_gpu("a100_sxm4_80"), workload::Elementwise::kEager);
  conditions.host = {};
  return conditions;
}

inline step::Spec zoo_spec(std::string_view model, const strategies::Training& training,
                           const strategies::Plan& plan) {
  Result<workload::Workload> workload =
      test::zoo_model(model, {.dtype = training.dtype, .attention = workload::Attention::kFlash});
  REQUIRE(workload);
  return {.workload = std::move(*workload),
          .training = training,
          .plan = plan,
          .conditions = a100_conditions()};
}

/// The predicted step; the prediction must not fail.
inline step::Step predicted(const step::Spec& spec, const cluster::Cluster& cluster,
                            step::Fidelity fidelity = step::Fidelity::kClosed) {
  Result<step::Step> step = step::predict(spec, cluster, {.fidelity = fidelity});
  INFO((step ? "" : to_string(step.error())));
  REQUIRE(step);
  return std::move(*step);
}

}  // namespace rehearse::test
