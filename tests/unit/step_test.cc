// Steps of models of the zoo: parts, intervals, counterfactuals, conditions.
#include <catch2/catch.hpp>

#include "models/workload/zoo.h"
#include "sim/base/yaml.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/step/predict.h"
#include "strategies/step/work.h"
#include "tests/support/a100_nodes.h"

namespace rehearse::step {
namespace {

Seconds sum(const program::Occupancy& of) {
  return of.compute + of.exposed_communication + of.memory + of.bubble + of.launch + of.host +
         of.idle;
}

std::vector<Spec> jobs() {
  const strategies::Training gpt{.global_batch = 64, .microbatch = 2};
  strategies::Training full = gpt;
  full.recompute = strategies::Recompute::kFull;
  return {test::zoo_spec("gpt2_medium", gpt, {}), test::zoo_spec("gpt2_medium", gpt, {.data = 8}),
          test::zoo_spec("gpt2_medium", full, {.data = 2, .tensor = 2, .pipeline = 4}),
          test::zoo_spec("gpt2_medium", gpt, {.data = 16, .zero = 3}),
          test::zoo_spec("resnet50", {.global_batch = 512, .microbatch = 64}, {.data = 8})};
}

TEST_CASE("copies between device and host take exposed time") {
  const cluster::Cluster cluster = test::a100_nodes(1);
  const strategies::Training training{.global_batch = 8, .microbatch = 1};
  const Step plain =
      test::predicted(test::zoo_spec("gpt2_medium", training, {}), cluster, Fidelity::kClosed);
  for (const strategies::Offload offload :
       {strategies::Offload::kOptimizer, strategies::Offload::kWeights,
        strategies::Offload::kActivations, strategies::Offload::kGradients}) {
    const Step step = test::predicted(
        test::zoo_spec("gpt2_medium", training, {.tiers = strategies::tiers_of(offload)}), cluster,
        Fidelity::kClosed);
    INFO("offload " << strategies::kOffloadNames[static_cast<std::size_t>(offload)]);
    CHECK(step.time.value > plain.time.value);
    CHECK(memory::fullest(step.memory).peak.value < memory::fullest(plain.memory).peak.value);
    CHECK(sum(step.occupancy).s() == Approx(step.time.value.s()).epsilon(1e-6));
    REQUIRE(step.counterfactuals.size() == 1);
    CHECK(step.counterfactuals[0].change == "copies to and from the host free");
  }
}

TEST_CASE("both fidelities have one interval, wider without measurements of the links") {
  const Spec spec =
      test::zoo_spec("gpt2_medium", {.global_batch = 64, .microbatch = 1}, {.tensor = 8});
  const auto step_over = [&](const std::string& intra_node, Fidelity fidelity) {
    const Result<cluster::Cluster> cluster = cluster::parse_cluster(
        "cluster: {device: a100_sxm4_80, devices_per_node: 8, nodes: 1, intra_node: " + intra_node +
            "}\n",
        "cluster.yaml");
    REQUIRE(cluster);
    const Step step = test::predicted(spec, *cluster, fidelity);
    REQUIRE(step.occupancy.exposed_communication > step.time.value * 0.1);
    return step.time;
  };
  const auto width = [](const Estimate<Seconds>& time) {
    return (time.high - time.low) / time.value;
  };
  const std::string unmeasured = "{kind: nvswitch, rate: 240 GB/s, latency: 5 us}";
  for (const std::string& links : {std::string("nvswitch"), unmeasured}) {
    const Estimate<Seconds> closed = step_over(links, Fidelity::kClosed),
                            message = step_over(links, Fidelity::kMessage);
    INFO(links);
    CHECK(width(message) == Approx(width(closed)).epsilon(1e-3));
    CHECK(message.provenance == closed.provenance);
  }
  for (const Fidelity fidelity : {Fidelity::kClosed, Fidelity::kMessage}) {
    const Estimate<Seconds> on_measured = step_over("nvswitch", fidelity),
                            on_others = step_over(unmeasured, fidelity);
    CHECK(width(on_others) > width(on_measured) * 1.05);
    CHECK(on_others.provenance >= Provenance::kExtrapolated);
  }
}

TEST_CASE("communication hidden by computing widens the interval if links may be slow") {
  const auto step_over = [](const std::string& inter_node, Fidelity fidelity) {
    const Result<cluster::Cluster> cluster = cluster::parse_cluster(
        "cluster: {device: t4, nodes: 2, inter_node: {" + inter_node + "}}\n", "cluster.yaml");
    REQUIRE(cluster);
    return test::predicted(
        test::zoo_spec("resnet50", {.global_batch = 128, .microbatch = 64}, {.data = 2}), *cluster,
        fidelity);
  };
  for (const Fidelity fidelity : {Fidelity::kClosed, Fidelity::kMessage}) {
    const Step named = step_over("link: tcp_50g", fidelity),
               roce = step_over("rate: 50 Gbit/s, latency: 5 us", fidelity);
    CHECK(named.time.high > roce.time.high);
  }
  // A rate that was given is taken, but for the slow end.
  const Step given = step_over("rate: 50 Gbit/s, latency: 30 us", Fidelity::kClosed),
             named = step_over("link: tcp_50g", Fidelity::kClosed);
  CHECK(given.time.value < named.time.value);
  CHECK(given.time.high.s() == Approx(named.time.high.s()).epsilon(0.1));
}

TEST_CASE("over TCP the interval has both ends of its range, also on calibrated devices") {
  const Result<cluster::Cluster> cluster = cluster::parse_cluster(
      "cluster: {device: a100_sxm4_40, devices_per_node: 4, nodes: 2, intra_node: nvswitch, "
      "inter_node: {links: 1, link: tcp_50g}}\n",
      "cluster.yaml");
  REQUIRE(cluster);
  const Spec spec =
      test::zoo_spec("gpt2_medium", {.global_batch = 64, .microbatch = 8}, {.data = 8});
  const Step closed = test::predicted(spec, *cluster, Fidelity::kClosed);
  const Step message = test::predicted(spec, *cluster, Fidelity::kMessage);
  CHECK(closed.time.low < message.time.value);
  CHECK(closed.time.high > 2 * closed.time.value);
}

TEST_CASE("the fixed time of a step has no interval if it is given") {
  Spec spec = test::zoo_spec("resnet50", {.global_batch = 32, .microbatch = 32}, {});
  const Step usual = test::predicted(spec, test::a100_nodes(1), Fidelity::kClosed);
  CHECK(usual.time.high - usual.time.value >= spec.conditions.most_fixed - spec.conditions.fixed);
  CHECK(usual.time.value - usual.time.low >= spec.conditions.fixed - spec.conditions.least_fixed);
  const Result<YamlFile> file = YamlFile::parse("fixed: 20 ms\n", "c.yaml");
  REQUIRE(file);
  read_conditions(file->root(), {&spec.conditions, 1});
  const Step given = test::predicted(spec, test::a100_nodes(1), Fidelity::kClosed);
  CHECK(given.time.value == usual.time.value);
  CHECK(given.time.high < usual.time.high);
  CHECK(given.time.low > usual.time.low);
}

TEST_CASE("parts add up to the step, at either fidelity, and stay within it") {
  const cluster::Cluster cluster = test::a100_nodes(2);
  for (const Spec& spec : jobs())
    for (const Fidelity fidelity : {Fidelity::kClosed, Fidelity::kMessage}) {
      INFO(spec.workload.name << " on " << spec.plan.data * spec.plan.tensor * spec.plan.pipeline
                              << ", fidelity " << static_cast<int>(fidelity));
      const Step step = test::predicted(spec, cluster, fidelity);
      const program::Occupancy& b = step.occupancy;
      CHECK(sum(b).s() == Approx(step.time.value.s()).epsilon(1e-6));
      for (const Seconds part : {b.compute - b.recompute - b.optimizer, b.recompute, b.optimizer,
                                 b.exposed_communication, b.bubble, b.launch, b.idle})
        CHECK(part >= Seconds::s(0));
      CHECK((b.recompute > Seconds::s(0)) ==
            (spec.training.recompute != strategies::Recompute::kNone));
      CHECK((b.bubble > Seconds::s(0.01) * step.time.value.s()) == (spec.plan.pipeline > 1));
      CHECK(step.time.low < step.time.value);
      CHECK(step.time.value < step.time.high);
      // Above the value there is more room than below it: real runs only get slower.
      CHECK(step.time.high - step.time.value > step.time.value - step.time.low);
      const Estimate<double> rate = step.samples_per_s();
      CHECK(rate.value == Approx(spec.training.global_batch / step.time.value.s()));
      CHECK(rate.low < rate.value);
      CHECK(rate.value < rate.high);
      CHECK(step.model_utilization() <= step.hardware_utilization());
      CHECK(step.hardware_utilization() < 1);
    }
}

TEST_CASE("a value alone is that of the whole prediction, with its memory and its devices") {
  const cluster::Cluster cluster = test::a100_nodes(2);
  for (const Spec& spec : jobs())
    for (const Fidelity fidelity : {Fidelity::kClosed, Fidelity::kMessage}) {
      const Step whole = test::predicted(spec, cluster, fidelity);
      const Result<Step> alone = predict(spec, cluster, {.fidelity = fidelity, .value_only = true});
      REQUIRE(alone);
      CHECK(alone->time.value == whole.time.value);
      CHECK(alone->time.low == alone->time.high);
      CHECK(memory::fullest(alone->memory).peak.value == memory::fullest(whole.memory).peak.value);
      CHECK(alone->devices.front().busy == whole.devices.front().busy);
      CHECK(alone->counterfactuals.empty());
    }
}

TEST_CASE("the host's launches determine small passes, and the step is marked host-bound") {
  const cluster::Cluster cluster = test::a100_nodes(1);
  for (const std::uint32_t tensor : {1U, 4U})
    for (const Fidelity fidelity : {Fidelity::kClosed, Fidelity::kMessage}) {
      INFO("tensor " << tensor << ", fidelity " << static_cast<int>(fidelity));
      Spec spec =
          test::zoo_spec("gpt2_medium", {.global_batch = 8, .microbatch = 1}, {.tensor = tensor});
      const Step alone = test::predicted(spec, cluster, fidelity);
      CHECK(alone.host_share == 0);
      spec.conditions.host = host::implementation_named("eager");
      const Step step = test::predicted(spec, cluster, fidelity);
      // 24 blocks of 0.6 of a Llama block, 8 microbatches; embedding, head and update take the rest.
      const Seconds block = Seconds::ms(0.6 * (tensor > 1 ? 4.17 : 3.4));
      CHECK(step.block.launches.s() == Approx(block.s()));
      CHECK(step.block.kernels < block);
      CHECK(step.time.value > block * (24 * 8));
      CHECK(step.time.value < block * (24 * 8) + alone.time.value);
      CHECK(step.host_share == Approx(block * (24 * 8) / step.time.value).epsilon(1e-3));
      const program::Occupancy& b = step.occupancy;
      CHECK(sum(b).s() == Approx(step.time.value.s()).epsilon(1e-6));
      CHECK(b.compute.s() == Approx(alone.occupancy.compute.s()));
      // The host launches a block while the device communicates, and then computes, for the head.
      CHECK(b.launch + b.exposed_communication > block * (24 * 8) - b.compute);
      if (tensor == 1)
        CHECK(b.launch.s() ==
              Approx(((block - step.block.kernels) * (24 * 8) + alone.occupancy.launch).s()));
      // A slower host makes the step longer.
      for (Seconds host::Implementation::*time :
           {&host::Implementation::layer, &host::Implementation::layer_tensor})
        spec.conditions.host.*time = spec.conditions.host.*time * 1.5;
      CHECK(test::predicted(spec, cluster, fidelity).time.value > step.time.value * 1.4);
    }
}

TEST_CASE("a block that takes longer than its launches hides them") {
  const cluster::Cluster cluster = test::a100_nodes(1);
  Spec spec = test::zoo_spec("gpt3_6.7b", {.global_batch = 8, .microbatch = 4}, {.data = 2});
  const Step alone = test::predicted(spec, cluster);
  spec.conditions.host = host::implementation_named("eager");
  const Step step = test::predicted(spec, cluster);
  CHECK(step.time.value == alone.time.value);
  CHECK(step.host_share == 0);
}

TEST_CASE("no step without one component is slower than the step") {
  const cluster::Cluster cluster = test::a100_nodes(2);
  std::size_t found = 0;
  for (const Spec& spec : jobs()) {
    const Step step = test::predicted(spec, cluster, Fidelity::kClosed);
    Seconds last = Seconds::s(0);
    for (const Counterfactual& c : step.counterfactuals) {
      INFO(spec.workload.name << ": " << c.change);
      CHECK(c.step <= step.time.value);
      CHECK(c.step >= step.time.value - step.communication - Seconds::us(1));
      CHECK(c.step >= last);  // the most effective first
      last = c.step;
      ++found;
    }
  }
  CHECK(found >= 5);
}

TEST_CASE("the scale stretches compute, and nothing else") {
  const cluster::Cluster cluster = test::a100_nodes(1);
  Spec spec = jobs()[1];
  spec.conditions.overlap_penalty = 0;
  const Step one = test::predicted(spec, cluster, Fidelity::kClosed);
  spec.conditions.scale = 2;
  const Step two = test::predicted(spec, cluster, Fidelity::kClosed);
  CHECK(two.occupancy.compute.s() == Approx(2 * one.occupancy.compute.s()));
  CHECK(two.occupancy.optimizer.s() == Approx(2 * one.occupancy.optimizer.s()));
  CHECK(two.occupancy.idle.s() == Approx(one.occupancy.idle.s()));
  CHECK(two.time.value > one.time.value * 1.8);
  CHECK(two.time.value < one.time.value * 2);
}

TEST_CASE(
    "the interval of a convolution is not narrower than the law's, that of a product the job's") {
  const Conditions conditions = test::a100_conditions();
  const compute::OpCost cost = *compute::OpCost::on("a100_sxm4_80", conditions.sustained);
  const OpPrice price(cost, conditions);
  workload::Op op{.name = "op", .kind = workload::OpKind::kGemm};
  op.m = op.n = op.k = 4096;
  const Estimate<Seconds> product = price.estimate(op);
  CHECK(product.low == product.value * conditions.fastest);
  CHECK(product.high == product.value * conditions.slowest);
  op.kind = workload::OpKind::kConvolution;
  const Estimate<Seconds> law = cost.time(op), convolution = price.estimate(op);
  CHECK(convolution.value == law.value);
  CHECK(convolution.low == law.low);
  CHECK(convolution.high == law.high);
  CHECK(convolution.high > convolution.value * 2);
}

TEST_CASE("a recorded operation has its own interval, times that of the job's surroundings") {
  const compute::OpCost cost = *compute::OpCost::on("h100_sxm5_80", {});
  workload::Op op{.name = "linear", .kind = workload::OpKind::kGemm, .m = 64, .n = 64, .k = 64};
  op.measured = {Seconds::us(10), Seconds::us(9), Seconds::us(12), Provenance::kRecorded};
  Conditions conditions;
  CHECK(OpPrice(cost, conditions).estimate(op) == *op.measured);
  conditions.recorded = {0.9, 1.5};
  const Estimate<Seconds> around = OpPrice(cost, conditions).estimate(op);
  CHECK(around.value == Seconds::us(10));
  CHECK(around.low.s() == Approx(8.1e-6));
  CHECK(around.high.s() == Approx(18e-6));
}

TEST_CASE("the idle time of recorded kernels is launch, not compute") {
  const cluster::Cluster cluster = test::a100_nodes(1);
  Spec spec = jobs()[0];
  spec.conditions.host_per_kernel = Seconds::s(0);
  const Step busy = test::predicted(spec, cluster, Fidelity::kClosed);
  CHECK(busy.occupancy.launch == Seconds::s(0));
  spec.conditions.idle_per_kernel = Seconds::us(10);
  const Step idle = test::predicted(spec, cluster, Fidelity::kClosed);
  CHECK(idle.occupancy.compute.s() == Approx(busy.occupancy.compute.s()));
  CHECK(idle.occupancy.launch > Seconds::s(0));
  CHECK((idle.time.value - busy.time.value).s() == Approx(idle.occupancy.launch.s()).epsilon(1e-6));
}

TEST_CASE("conditions override those of the device, and values out of range are errors") {
  Conditions conditions = test::a100_conditions();
  const double gemm = *conditions.sustained.gemm;
  const Result<YamlFile> file =
      YamlFile::parse("scale: 1.2\nfixed: 3 ms\nhost_per_kernel: 4 us\nfastest: 0.96\n", "c.yaml");
  REQUIRE(file);
  read_conditions(file->root(), std::span(&conditions, 1));
  REQUIRE(file->status());
  CHECK(conditions.scale == 1.2);
  CHECK(conditions.fixed == Seconds::ms(3));
  CHECK(conditions.host_per_kernel == Seconds::us(4));
  CHECK(conditions.fastest == 0.96);
  CHECK(*conditions.sustained.gemm == gemm);
  CHECK(conditions.source == "given in the job");

  const Result<YamlFile> wrong = YamlFile::parse("scale: 4\nfixed: -1 s\nslowes: 2\n", "c.yaml");
  REQUIRE(wrong);
  read_conditions(wrong->root(), std::span(&conditions, 1));
  REQUIRE_FALSE(wrong->status());
  CHECK(to_string(wrong->status().error()) ==
        "c.yaml:1:8: scale: 4 is out of range; a number from 0.5 to 3\n"
        "c.yaml:2:8: fixed: a time is not negative\n"
        "c.yaml:3:1: slowes: unknown key; did you mean 'slowest'?");
}

TEST_CASE(
    "unfused kernels take a smaller share of the memory rate, and GeForce cards keep their clock") {
  const auto sustained = [](const char* device, workload::Elementwise elementwise) {
    return conditions_for(**cluster::find_gpu(device), elementwise).sustained;
  };
  using enum workload::Elementwise;
  CHECK(*sustained("a100_sxm4_80", kUnfused).memory == 0.52);
  CHECK(*sustained("a100_sxm4_80", kEager).memory == 0.76);
  CHECK(*sustained("rtx_a6000", kEager).gemm == 1.2);
  CHECK(*sustained("rtx3090", kEager).gemm == 1);
}

TEST_CASE("the host is an implementation of the catalog, or its time for a block") {
  const cluster::Gpu& gpu = **cluster::find_gpu("a100_sxm4_80");
  CHECK(conditions_for(gpu, workload::Elementwise::kEager).host.name == "eager");
  CHECK(conditions_for(gpu, workload::Elementwise::kUnfused).host.name == "eager");
  Conditions conditions = conditions_for(gpu, workload::Elementwise::kCompiled);
  CHECK(conditions.host.name == "compiled");
  const auto read = [&](const std::string& text) {
    const Result<YamlFile> file = YamlFile::parse(text, "c.yaml");
    REQUIRE(file);
    read_conditions(file->root(), std::span(&conditions, 1));
    return file->status() ? "" : to_string(file->status().error());
  };
  CHECK(read("implementation: nanotron\n").empty());
  CHECK(conditions.host.layer_tensor == Seconds::ms(4.17));
  CHECK(read("host_per_layer: 3 ms\nlaunch_blocking: true\n").empty());
  for (const Seconds time : {conditions.host.layer, conditions.host.layer_tensor,
                             conditions.host.layer_pipeline, Seconds::ms(3)})
    CHECK(time == Seconds::ms(3));
  CHECK(conditions.blocking);
  CHECK(conditions.idle_per_kernel.us() == Approx(8.5));
  CHECK(read("cores_per_rank: 0.5\n").empty());
  CHECK(conditions.host.layer == Seconds::ms(6));
  CHECK(read("implementation: nanotorn\nhost_per_layer: -1 ms\n") ==
        "c.yaml:1:17: implementation: unknown value 'nanotorn'; did you mean 'nanotron'?\n"
        "c.yaml:2:17: host_per_layer: a time is not negative");
}

TEST_CASE("plans with more ranks than the cluster are refused") {
  const Result<Step> step = predict(jobs()[3], test::a100_nodes(1), {});
  REQUIRE_FALSE(step);
  CHECK(to_string(step.error()) ==
        "the plan needs 16 ranks, but the cluster has 8 devices; data × tensor × pipeline × "
        "context of at most the devices");
}

}  // namespace
}  // namespace rehearse::step
