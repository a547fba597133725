// Jobs whose ranks run on several kinds of devices: worked examples.
#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "cost/step_account.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/lay_out.h"
#include "strategies/step/closed_step.h"
#include "strategies/step/devices.h"
#include "strategies/step/predict.h"
#include "tests/support/a100_nodes.h"
#include "tests/support/layouts.h"
#include "tests/support/tiny_models.h"

namespace rehearse::step {
namespace {

constexpr char kA100[] = "a100_sxm4_80", kV100[] = "v100_sxm2_32";

/// A node of each of these devices, and a network that takes next to no time.
cluster::Cluster cluster_of(const std::vector<std::string>& devices, int per_node = 1) {
  std::string text = "cluster:\n  nodes:\n";
  for (const std::string& device : devices)
    text += fmt::format(
        "    - {{device: {}, devices_per_node: {}, intra_node: {{kind: pcie, rate: 100 TB/s, "
        "latency: 1 ns}}}}\n",
        device, per_node);
  text +=
      "  inter_node: {links: 1, rate: 100 TB/s, latency: 1 ns, message_cost: 0 s, start_up: 0 s, "
      "half_rate_size: 0 B}\n";
  auto cluster = cluster::parse_cluster(text, "cluster.yaml");
  INFO((cluster ? "" : to_string(cluster.error())));
  REQUIRE(cluster);
  return *cluster;
}

/// Nothing but the ops: no launches, nothing once a step, no mutual slowdown.
Conditions bare(const char* device) {
  Conditions conditions =
      conditions_for(**cluster::find_gpu(device), workload::Elementwise::kEager);
  conditions.host_per_kernel = conditions.fixed = Seconds::s(0);
  conditions.host = {};
  conditions.overlap_penalty = 0;
  return conditions;
}

Spec spec_of(const strategies::Plan& plan, double microbatches = 8, double microbatch = 1) {
  const std::uint32_t data = plan.stages.empty() ? plan.data : plan.stages[0].data;
  return {.workload = test::tiny_gpt(
              {.hidden = 1024, .heads = 16, .sequence = 1024, .vocabulary = 50257, .layers = 24}),
          .training = {.global_batch = microbatches * data * microbatch,
                       .microbatch = microbatch,
                       .dtype = workload::Dtype::kFp16},
          .plan = plan,
          .conditions = bare(kA100),
          .conditions_on = {{kV100, bare(kV100)}}};
}

std::string error_of(const Spec& spec, const cluster::Cluster& cluster) {
  const Result<Step> step = predict(spec, cluster, {});
  REQUIRE_FALSE(step);
  return to_string(step.error());
}

TEST_CASE("a pipeline on two kinds takes its slowest stage m - 1 times, and all stages once") {
  // 1 s forward and 2 s backward on one kind, twice that on the other: 7 · 6 + 3 + 6 s.
  const workload::Layer layer{
      .name = "a", .forward = {test::seconds_op(1)}, .backward = {test::seconds_op(2)}};
  const workload::Layout layout =
      test::layout_of({.stages = 2, .layers = 1, .microbatches = 8}, layer);
  const auto free = [](const auto&...) -> Result<Seconds> { return Seconds::s(0); };
  const auto twice = [](const workload::Op& op) { return test::seconds_price(op) * 2; };
  const strategies::Prices prices({{test::seconds_price}, {twice}}, {0, 1});
  const auto step = closed_step(
      layout, {.op = prices, .collective = free, .message = free, .to_servers = free}, {});
  REQUIRE(step);
  CHECK(step->step.s() == Approx(51));
}

/// What the ops of a phase take on a stage: those of its layers at the price of its device.
Seconds time_on(const workload::Stage& stage, std::vector<workload::Op> workload::Layer::*phase,
                const OpPrice& price) {
  Seconds sum = Seconds::s(0);
  for (const workload::Layer& layer : stage.chunks.front().layers)
    for (const workload::Op& op : layer.*phase)
      if (!op.communicates()) sum += price(op) * layer.count;
  return sum;
}

TEST_CASE("each stage of A100 and V100 is priced on its own, and an uneven split pays") {
  const cluster::Cluster cluster = cluster_of({kA100, kV100});
  Seconds best = Seconds::s(1e9), even = best;
  std::uint32_t best_layers = 0;
  for (const std::uint32_t layers : {13U, 16U, 18U, 20U, 22U, 24U}) {
    INFO("layers " << layers);
    const Spec spec = spec_of({.stages = {{.layers = layers}, {}}});
    const Step step = test::predicted(spec, cluster);
    const auto devices = Devices::of(step.layout, cluster, spec);
    REQUIRE(devices);
    REQUIRE(devices->kinds().size() == 2);
    const OpPrice &a100 = devices->kinds()[0].price, &v100 = devices->kinds()[1].price;
    const workload::Stage &first = step.layout.stages[0], &last = step.layout.stages[1];
    using workload::Layer;
    const Seconds forward = time_on(first, &Layer::forward, a100),
                  a = forward + time_on(first, &Layer::backward, a100),
                  v = time_on(last, &Layer::forward, v100) + time_on(last, &Layer::backward, v100);
    const Seconds passes = std::max(a, v) * 7 + a + v;
    // Both update when they have done: the last stage that much earlier.
    const Seconds end = std::max(passes + time_on(first, &Layer::step, a100),
                                 passes - (a - forward) + time_on(last, &Layer::step, v100));
    if (v >= a)
      CHECK(step.time.value.s() == Approx(end.s()).epsilon(1e-4));
    else  // the first stage does not wait at the ends
      CHECK((step.time.value >= a * 8 && step.time.value <= end));
    if (layers == 13) even = step.time.value;
    if (step.time.value < best) {
      best = step.time.value;
      best_layers = layers;
    }
  }
  CHECK(best_layers > 16);
  CHECK(best < even * 0.75);
}

TEST_CASE("a mixed pipeline is between those of one kind") {
  const Spec spec = spec_of({.pipeline = 2});
  const Seconds a = test::predicted(spec, cluster_of({kA100, kA100})).time.value,
                av = test::predicted(spec, cluster_of({kA100, kV100})).time.value,
                va = test::predicted(spec, cluster_of({kV100, kA100})).time.value,
                v = test::predicted(spec, cluster_of({kV100, kV100})).time.value;
  CHECK(a < av);
  CHECK(a < va);
  CHECK(av < v);
  CHECK(va < v);
  for (const Fidelity fidelity : {Fidelity::kClosed, Fidelity::kMessage})
    CHECK(test::predicted(spec, cluster_of({kA100, kV100}), fidelity).time.value.s() ==
          Approx(av.s()).epsilon(1e-3));
}

TEST_CASE("replicas on faster devices wait, and the waiting shows") {
  const Spec spec = spec_of({.data = 4});
  const Step fast = test::predicted(spec, cluster_of({kA100, kA100}, 2)),
             slow = test::predicted(spec, cluster_of({kV100, kV100}, 2));
  for (const Fidelity fidelity : {Fidelity::kClosed, Fidelity::kMessage}) {
    const Step mixed = test::predicted(spec, cluster_of({kA100, kV100}, 2), fidelity);
    const program::Occupancy& b = mixed.occupancy;
    CHECK(mixed.time.value.s() == Approx(slow.time.value.s()).epsilon(0.01));
    CHECK(b.compute.s() == Approx((fast.occupancy.compute.s() + slow.occupancy.compute.s()) / 2));
    // Half of the ranks wait for what they are faster by.
    const Seconds waiting = (slow.occupancy.compute - fast.occupancy.compute) / 2;
    CHECK(b.bubble >= waiting * 0.99);
    CHECK(b.bubble <= waiting * 1.05);
    CHECK((b.compute + b.exposed_communication + b.bubble + b.launch + b.idle).s() ==
          Approx(mixed.time.value.s()).epsilon(1e-6));
  }
  CHECK(fast.occupancy.bubble < fast.time.value * 0.001);
}

TEST_CASE("a tensor-parallel group waits for its slower members") {
  const Spec spec = spec_of({.tensor = 2});
  // Collectives of V100 on several nodes have the start-ups of NCCL, whatever the network takes.
  const Step slow = test::predicted(spec, cluster_of({kV100}, 2)),
             mixed = test::predicted(spec, cluster_of({kA100, kV100}));
  CHECK(mixed.time.value.s() == Approx(slow.time.value.s()).epsilon(0.01));
  CHECK(mixed.occupancy.bubble > mixed.time.value * 0.1);
}

TEST_CASE("the peak is that of all devices together, and each computes for itself") {
  const Spec spec = spec_of({.pipeline = 2});
  const Step a = test::predicted(spec, cluster_of({kA100, kA100})),
             v = test::predicted(spec, cluster_of({kV100, kV100})),
             mixed = test::predicted(spec, cluster_of({kA100, kV100}));
  CHECK(mixed.peak.si() == Approx((a.peak.si() + v.peak.si()) / 2));
  CHECK(mixed.model_flops.flop() == Approx(a.model_flops.flop()));
  REQUIRE(mixed.devices.size() == 2);
  CHECK(mixed.devices[0].name == kA100);
  CHECK(mixed.devices[0].ranks == 1);
  CHECK(mixed.devices[1].name == kV100);
  const program::Occupancy& b = mixed.occupancy;
  CHECK((mixed.devices[0].busy + mixed.devices[1].busy).s() == Approx(2 * b.compute.s()));
}

TEST_CASE("each stage has to fit its own device") {
  const Spec spec = spec_of({.stages = {{.layers = 6}, {}}}, 8, 64);
  const Step large = test::predicted(spec, cluster_of({kV100, kA100})),
             small = test::predicted(spec, cluster_of({kA100, kV100}));
  REQUIRE(small.memory.size() == 2);
  CHECK(small.memory[0].device.name == kA100);
  CHECK(small.memory[1].device.name == kV100);
  CHECK(small.memory[1].device.usable < small.memory[0].device.usable);
  CHECK(large.memory[1].fit == memory::Fit::kFits);
  CHECK(small.memory[1].fit == memory::Fit::kDoesNotFit);
  const auto no_fit = [](const Warning& warning) {
    return warning.what.find(" on v100_sxm2_32: does not fit") != std::string::npos;
  };
  CHECK(std::count_if(small.warnings.begin(), small.warnings.end(), no_fit) == 1);
  // Of replicas of one stage the one on the smaller device counts.
  const Step replicas = test::predicted(spec_of({.data = 2}), cluster_of({kA100, kV100}));
  CHECK(replicas.memory[0].device.name == kV100);
}

TEST_CASE("parameter servers may run on hosts, stages may not") {
  strategies::Plan plan{.data = 2,
                        .synchronization = strategies::Synchronization::kParameterServer};
  plan.parameter_server.servers = 1;
  const cluster::Cluster hosts = cluster_of({kA100, kA100, "cpu"}),
                         gpus = cluster_of({kA100, kA100, kA100});
  const Step on_host = test::predicted(spec_of(plan), hosts),
             on_gpu = test::predicted(spec_of(plan), gpus);
  CHECK(on_host.time.value > on_gpu.time.value);
  CHECK(on_host.devices.back().name == "cpu");
  CHECK(on_host.peak.si() == Approx(on_gpu.peak.si() * 2 / 3));
  // The update moves its bytes at 50 GB/s of the host's memory.
  const auto devices = Devices::of(on_host.layout, hosts, spec_of(plan));
  REQUIRE(devices);
  const workload::Op& update = on_host.layout.servers->update;
  CHECK(devices->kinds()[1].price(update).s() == Approx(workload::bytes_of(update).b() / 50e9));
  CHECK(error_of(spec_of({.data = 3}), hosts) ==
        "stage 0 is on a 'cpu'; a GPU; only parameter servers may run on hosts");
}

TEST_CASE("a measurement on one device is scaled to another by its extents") {
  Spec spec = spec_of({.pipeline = 2});
  for (workload::Op& op : spec.workload.layers[1].forward)
    op.measured = {Seconds::us(10), Seconds::us(9), Seconds::us(11), Provenance::kRecorded};
  CHECK(error_of(spec, cluster_of({kA100, kV100})) ==
        "operations were measured on one device, but ranks are on a100_sxm4_80 and v100_sxm2_32; "
        "one kind "
        "of device, or a model whose operations have extents");
  spec.measured_on = kA100;
  const cluster::Cluster cluster = cluster_of({kA100, kV100});
  const Step step = test::predicted(spec, cluster);
  const auto devices = Devices::of(step.layout, cluster, spec);
  REQUIRE(devices);
  const auto a100 = compute::OpCost::on(kA100, {}), v100 = compute::OpCost::on(kV100, {});
  REQUIRE(a100);
  REQUIRE(v100);
  const workload::Op* matrix = nullptr;
  for (const workload::Op& op : step.layout.stages[1].chunks[0].layers[0].forward)
    if (op.kind == workload::OpKind::kGemm) matrix = &op;
  REQUIRE(matrix != nullptr);
  const OpPrice &on_a100 = devices->kinds()[0].price, &on_v100 = devices->kinds()[1].price;
  CHECK(on_a100(*matrix).us() == Approx(10));
  CHECK(on_v100(*matrix).us() ==
        Approx(10 * (v100->predicted(*matrix).value / a100->predicted(*matrix).value)));
  CHECK(on_v100.estimate(*matrix).provenance == Provenance::kExtrapolated);
}

TEST_CASE("energy is that of each kind at its own power, without hosts") {
  const Estimate<Seconds> step{Seconds::s(10), Seconds::s(9), Seconds::s(12),
                               Provenance::kExtrapolated};
  const cluster::Gpu &a = **cluster::find_gpu(kA100), &v = **cluster::find_gpu(kV100);
  const cost::PoweredDevices kinds[] = {
      {kA100, &a, 4, 0.9}, {kV100, &v, 8, 0.5}, {"cpu", nullptr, 1, 0}};
  const auto energy = [&](std::span<const cost::PoweredDevices> devices) {
    const cost::StepAccount account = cost::account_of(step, devices, {});
    REQUIRE(account.energy);
    return *account.energy;
  };
  const std::span all(kinds);
  const Estimate<Joules> sum = energy(all), first = energy(all.first(1)),
                         second = energy(all.subspan(1, 1));
  CHECK(sum.value.j() == Approx(first.value.j() + second.value.j()));
  CHECK(sum.high.j() == Approx(12 * (4 * a.power_limit->w() + 8 * v.power_limit->w())));
  CHECK(sum.low.j() == Approx(first.low.j() + second.low.j()));
}

TEST_CASE("the cost is the price of all instances, and absent if one has no price") {
  const Estimate<Seconds> step{Seconds::s(3600), Seconds::s(3600), Seconds::s(3600),
                               Provenance::kExtrapolated};
  const auto money = [&](std::vector<cost::Rented> rented) {
    return cost::account_of(step, {}, {.rented = std::move(rented), .region = {}}).money;
  };
  const auto a = money({{"p4d.24xlarge", 1}}), v = money({{"p3.16xlarge", 1}}),
             both = money({{"p4d.24xlarge", 1}, {"p3.16xlarge", 2}});
  REQUIRE(a);
  REQUIRE(v);
  REQUIRE(both);
  CHECK(both->value.usd() == Approx(a->value.usd() + 2 * v->value.usd()));
  CHECK_FALSE(money({{"p4d.24xlarge", 1}, {"no.such", 1}}));
}

}  // namespace
}  // namespace rehearse::step
