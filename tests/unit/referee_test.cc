// SimGrid's opinion of steps: how large a run is, what contention adds, and when it is left out.
#include "strategies/step/referee.h"

#include <catch2/catch.hpp>

#include "cli/planning/referee_plans.h"
#include "models/job/lower.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/simgrid.h"
#include "strategies/step/predict.h"
#include "tests/support/tiny_models.h"

namespace rehearse {
namespace {

cluster::Cluster nodes(int count) {
  Result<cluster::Cluster> cluster = cluster::parse_cluster(
      "cluster: {device: a100_sxm4_80, devices_per_node: 8, nodes: " + std::to_string(count) +
          ", intra_node: nvswitch, inter_node: {links: 8, rate: 200 Gbit/s, latency: 5 us}}",
      "cluster");
  REQUIRE(cluster);
  return std::move(*cluster);
}

step::Spec spec_of(const strategies::Plan& plan, double global_batch = 64) {
  return {.workload = test::tiny_gpt(
              {.hidden = 1024, .heads = 16, .sequence = 1024, .vocabulary = 32000, .layers = 8}),
          .training = {.global_batch = global_batch, .microbatch = 4},
          .plan = plan,
          .conditions = {}};
}

step::Step step_of(const strategies::Plan& plan, const cluster::Cluster& cluster) {
  Result<step::Step> step = step::predict(spec_of(plan), cluster, {.counterfactuals = false});
  INFO((step ? "" : to_string(step.error())));
  REQUIRE(step);
  return std::move(*step);
}

const strategies::Plan kPlans[] = {
    {.data = 8, .zero = 2},
    {.data = 4, .tensor = 2, .zero = 1, .sequence_parallel = true},
    {.data = 2, .tensor = 2, .pipeline = 2},
    {.data = 2, .context = 4},
};

}  // namespace

TEST_CASE("The size of a run with all ranks is counted without building it") {
  const cluster::Cluster cluster = nodes(1);
  for (const strategies::Plan& plan : kPlans) {
    const step::Step step = step_of(plan, cluster);
    const Result<step::RunSize> size = step::run_size(step.job, {}, cluster);
    REQUIRE(size);
    job::Rules rules;
    rules.calibrated = true;
    const Result<job::LoweredJob> all = job::lower(step.job, cluster, rules);
    REQUIRE(all);
    CHECK(size->ops == static_cast<double>(step.job.ops()));
    CHECK(size->messages == Approx(static_cast<double>(all->messages)));
    CHECK(size->ranks == 8);
    CHECK(size->on_simgrid() > Seconds::s(0));
  }
}

TEST_CASE("SimGrid agrees with messages of all ranks, in which kinds of communication contend") {
  if (!engine::simgrid_available()) {
    WARN("skipped: built without SimGrid");
    return;
  }
  const cluster::Cluster cluster = nodes(1);
  for (const strategies::Plan& plan : kPlans) {
    const step::Step step = step_of(plan, cluster);
    const Result<step::Refereed> refereed = step::referee(step.job, {}, cluster);
    REQUIRE(refereed);
    CHECK(refereed->simgrid / refereed->messages == Approx(1).epsilon(1e-8));
    const Result<Seconds> messages = step::time_by_messages(step.job, {}, cluster);
    REQUIRE(messages);
    CHECK(*messages == refereed->messages);
  }
}

TEST_CASE("Plans are ranked by their contention: stages of one PCIe tree slow each other") {
  // All stages send at the same time over the links between sockets and nodes; folded, each kind of
  // sending has them to itself.
  Result<cluster::Cluster> cluster = cluster::parse_cluster(
      "cluster: {device: a100_pcie_40, devices_per_node: 8, nodes: 2, intra_node: pcie, "
      "inter_node: {links: 1, rate: 100 Gbit/s, latency: 5 us}}",
      "cluster");
  REQUIRE(cluster);
  const step::Spec spec{
      .workload = test::tiny_gpt(
          {.hidden = 1024, .heads = 16, .sequence = 1024, .vocabulary = 32000, .layers = 8}),
      .training = {.global_batch = 64},
      .plan = {},
      .conditions = {}};
  const Result<cli::FoundPlans> found = cli::find_plans(
      spec, *cluster,
      {.axes = {.pipeline = {1, 4}, .context = {1}, .offload = {strategies::Offload::kNone}},
       .confirm = step::Fidelity::kMessage});
  REQUIRE(found);
  CHECK(found->all_ranks >= 10);
  CHECK(found->all_ranks <= found->confirmed);
  double most = 0;
  Seconds before = Seconds::s(0);
  for (const cli::FoundPlan& plan : found->best) {
    REQUIRE(plan.times.all_ranks);
    CHECK(*plan.times.all_ranks >= before);
    before = *plan.times.all_ranks;
    most = std::max(most, *plan.times.all_ranks / *plan.times.message);
  }
  step::Spec pipeline = spec;
  pipeline.training.microbatch = 1;
  pipeline.plan = {.data = 4,
                   .pipeline = 4,
                   .interleave = 2,
                   .schedule = strategies::Schedule::kInterleaved,
                   .placement = strategies::Placement::kTensorPipelineData};
  const Result<step::Step> folded = step::predict(pipeline, *cluster, {.counterfactuals = false});
  const Result<step::Step> all =
      step::predict(pipeline, *cluster, {.unfold = true, .counterfactuals = false});
  REQUIRE(folded);
  REQUIRE(all);
  CHECK(all->time.value.s() == Approx(folded->time.value.s()).epsilon(1e-3));
  CHECK(found->best.front().times.last() <= all->time.value);
}

TEST_CASE("Plans are confirmed in order, as many as their counts allow") {
  const cluster::Cluster cluster = nodes(1);
  const auto plan_of = [&](const step::Spec& spec) {
    // Without a run where there are many microbatches: its size is that of the whole step.
    Result<step::Step> step =
        step::predict(spec, cluster, {.value_only = true, .timeline = false, .size = true});
    REQUIRE(step);
    cli::FoundPlan plan{.training = spec.training, .plan = spec.plan, .figures = {}};
    plan.times.message = step->time.value;
    plan.size = *step->size;
    step->drop_run();
    plan.step = std::move(*step);
    return plan;
  };
  std::vector<cli::FoundPlan> plans;
  for (const strategies::Plan& plan : kPlans) plans.push_back(plan_of(spec_of(plan)));
  // Sums of tensor parallelism in 4 096 microbatches.
  const step::Spec many = spec_of({.tensor = 8}, 16384);
  const cli::FoundPlan large = plan_of(many);
  const Result<program::Program> program = step::program_of(many, cluster);
  REQUIRE(program);
  CHECK(large.size.ops == Approx(static_cast<double>(program->ops())));
  REQUIRE(large.size.on_simgrid() > cli::kRefereeTime);
  plans.insert(plans.begin() + 2, large);

  const step::Spec job = spec_of({});
  const Result<cli::Confirmed> confirmed =
      cli::referee_plans(plans, job, cluster, step::Fidelity::kMessage, cli::kRefereeTime, 2, {});
  REQUIRE(confirmed);
  if (!engine::simgrid_available()) {
    CHECK(confirmed->plans == 0);
    CHECK(confirmed->left_out == "this build has no SimGrid");
    return;
  }
  CHECK(confirmed->plans == 2);
  CHECK(confirmed->left_out.find(" messages among 8 ranks would take about ") != std::string::npos);
  CHECK(confirmed->left_out.find("--fidelity simgrid runs it anyway") != std::string::npos);
  for (std::size_t i = 0; i < plans.size(); ++i)
    CHECK(plans[i].times.refereed.has_value() == (i < 2));

  // As many threads as one likes: the same times.
  const step::Refereed before = *plans[1].times.refereed;
  REQUIRE(
      cli::referee_plans(plans, job, cluster, step::Fidelity::kMessage, cli::kRefereeTime, 1, {}));
  CHECK(plans[1].times.refereed->simgrid == before.simgrid);
  // Asked to stop.
  CHECK_FALSE(cli::referee_plans(plans, job, cluster, step::Fidelity::kMessage, cli::kRefereeTime,
                                 1, [](double) { return false; }));
}

}  // namespace rehearse
