// Tiers of states: bytes by hand, what NVMe adds, and what a node can hold.

#include <catch2/catch.hpp>

#include "sim/cluster/read_cluster.h"
#include "strategies/offload.h"
#include "strategies/states.h"
#include "strategies/step/host_memory.h"
#include "strategies/step/predict.h"
#include "tests/support/a100_nodes.h"

namespace rehearse::step {
namespace {

using strategies::Offload;
using strategies::StateTiers;
using strategies::Tier;

constexpr strategies::Training kHalf = {
    .global_batch = 16, .microbatch = 1, .dtype = workload::Dtype::kBf16};
constexpr double kParameters = 1000;
constexpr strategies::Parameters kHeld = {.dense = kParameters};

/// On one rank, with two microbatches and 600 bytes of saved activations.
strategies::HostCopies copies(const StateTiers& tiers) {
  return strategies::host_copies(kHalf, {.tiers = tiers}, kHeld, 600, {}, 2);
}

cluster::Cluster node_with(const std::string& host) {
  const Result<cluster::Cluster> made = cluster::parse_cluster(
      "cluster: {device: v100_sxm2_32, devices_per_node: 16, intra_node: nvswitch" + host + "}\n",
      "cluster.yaml");
  REQUIRE(made);
  return *made;
}

Spec gpt_medium(const StateTiers& tiers) {
  return test::zoo_spec("gpt2_medium", {.global_batch = 32, .microbatch = 1},
                        {.data = 16, .zero = 3, .tiers = tiers});
}

}  // namespace

TEST_CASE("a share of the optimizer's states leaves the device, and its gradients are copied") {
  // BF16 with Adam has 2 + 4 + 12 bytes per parameter, and sums gradients in 4.
  const StateTiers quarter = {.optimizer = {.tier = Tier::kHost, .share = 0.25}};
  const workload::StateBytes on_device = states_of(kHalf, {.tiers = quarter}, kHeld, {});
  CHECK(on_device.weights == 2);
  CHECK(on_device.gradient == 4);
  CHECK(on_device.optimizer == 9);
  const workload::Away away = away_of(kHalf, {.tiers = quarter}, kHeld, {});
  CHECK(away.host.b() == 3 * kParameters);
  CHECK(away.nvme.b() == 0);
  const strategies::HostCopies moved = copies(quarter);
  CHECK(moved.updated == 0.25);
  CHECK(moved.gradients.bytes == 4 * 250);
  CHECK(moved.weights.bytes == 2 * 250);
  CHECK(moved.forward.bytes == 0);
  CHECK(moved.present == 0);
}

TEST_CASE("NVMe drives move what is kept on them, and nothing else") {
  const StateTiers tiers = {.weights = {.tier = Tier::kNvme},
                            .optimizer = {.tier = Tier::kNvme},
                            .activations = {.tier = Tier::kHost, .share = 0.5},
                            .gradients = Tier::kNvme};
  const strategies::HostCopies moved = copies(tiers);
  // Each pass reads 2 bytes of weights per parameter, and half of the activations move too.
  CHECK(moved.forward.bytes == 2 * kParameters + 300);
  CHECK(moved.forward.nvme == 2 * kParameters);
  // Each of two microbatches writes its gradients, in 4 bytes.
  CHECK(moved.backward.bytes == 4 * kParameters);
  CHECK(moved.backward.nvme == 4 * kParameters);
  // What the host has updated stays with it.
  CHECK(moved.weights.bytes == 0);
  // The update reads and writes 12 bytes, reads 4 of gradients and writes 2 of weights.
  CHECK(moved.update_nvme == (2 * 12 + 4 + 2) * kParameters);
  const workload::Away away = away_of(kHalf, {.tiers = tiers}, kHeld, {});
  CHECK(away.nvme.b() == (2 + 4 + 12) * kParameters);
  CHECK(away.host.b() == 0);
}

TEST_CASE("weights that the device updates go back to the host") {
  const strategies::HostCopies moved = copies({.weights = {.tier = Tier::kHost}});
  CHECK(moved.updated == 0);
  CHECK(moved.weights.bytes == 2 * kParameters);
  CHECK(moved.gradients.bytes == 0);
}

TEST_CASE("each share of a state between none and all takes a time and a memory between theirs") {
  const cluster::Cluster cluster = test::a100_nodes(1);
  for (auto state : {&StateTiers::optimizer, &StateTiers::weights, &StateTiers::activations}) {
    double last_time = 0, last_memory = 1e18;
    for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      StateTiers tiers;
      if (share > 0) tiers.*state = {.tier = Tier::kHost, .share = share};
      const Step step = test::predicted(
          test::zoo_spec("gpt2_medium", {.global_batch = 8, .microbatch = 1}, {.tiers = tiers}),
          cluster, Fidelity::kClosed);
      const double memory = memory::fullest(step.memory).peak.value.b();
      INFO("share " << share);
      CHECK(step.time.value.s() >= last_time);
      CHECK(memory <= last_memory);
      last_time = step.time.value.s();
      last_memory = memory;
    }
  }
}

TEST_CASE("state on drives needs their rate, and a step waits for slow ones") {
  const StateTiers tiers = {.optimizer = {.tier = Tier::kNvme}};
  const Result<Step> unknown = predict(gpt_medium(tiers), node_with(""), {});
  REQUIRE_FALSE(unknown);
  CHECK(to_string(unknown.error()).find("nvme_rate") != std::string::npos);

  const auto seconds = [&](const std::string& host) {
    const Result<Step> step = predict(gpt_medium(tiers), node_with(host), {});
    REQUIRE(step);
    return step->time.value.s();
  };
  const double fast = seconds(", host: {nvme_rate: 400 GB/s}"),
               slow = seconds(", host: {nvme_rate: 4 GB/s}"),
               slower = seconds(", host: {nvme_rate: 2 GB/s}");
  // ZeRO-3 keeps 8 bytes per parameter in the optimizer, which an update reads and writes.
  const double moved = 2 * 8 * gpt_medium(tiers).workload.parameters();
  CHECK(slow > fast);
  CHECK(slower - slow == Approx(moved / 2e9 - moved / 4e9).epsilon(0.02));
}

TEST_CASE("what a node keeps off its devices is compared with what it has") {
  const StateTiers tiers = tiers_of(Offload::kOptimizer);
  const double bytes = 8 * gpt_medium(tiers).workload.parameters();
  const auto of = [&](const std::string& host) {
    const Result<Step> step = predict(gpt_medium(tiers), node_with(host), {});
    REQUIRE(step);
    REQUIRE(step->host_memory);
    return *step->host_memory;
  };
  const HostMemory unknown = of("");
  CHECK(unknown.need.host.b() == Approx(bytes).epsilon(0.01));
  CHECK_FALSE(unknown.too_much());
  CHECK(unknown.share() == 0);
  CHECK_FALSE(of(", host: {memory: 1 TiB}").too_much());
  const HostMemory small = of(", host: {memory: 1 GiB}");
  REQUIRE(small.too_much());
  CHECK(small.share() == Approx(bytes / 1073741824.0).epsilon(0.01));
  CHECK_FALSE(host_memory(test::predicted(gpt_medium({}), node_with(""), Fidelity::kClosed).layout,
                          node_with("")));
}

}  // namespace rehearse::step
