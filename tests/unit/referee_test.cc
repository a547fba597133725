// SimGrid's opinion of steps: how large a run is, what contention adds, and when it is left out.
#include "models/step/referee.h"

#include <catch2/catch.hpp>

#include "cli/planning/referee_plans.h"
#include "models/job/lower.h"
#include "models/step/predict.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/simgrid.h"
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

step::Step step_of(const strategies::Plan& plan, const cluster::Cluster& cluster,
                   double global_batch = 64) {
  const step::Spec spec{
      .workload = test::tiny_gpt(
          {.hidden = 1024, .heads = 16, .sequence = 1024, .vocabulary = 32000, .layers = 8}),
      .training = {.global_batch = global_batch, .microbatch = 4},
      .plan = plan,
      .conditions = {}};
  Result<step::Step> step = step::predict(spec, cluster, {.counterfactuals = false});
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

TEST_CASE("The size of a run is that of all ranks, counted without building it") {
  const cluster::Cluster cluster = nodes(1);
  for (const strategies::Plan& plan : kPlans) {
    const step::Step step = step_of(plan, cluster);
    const Result<step::RunSize> size = step::run_size(step.job, cluster);
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

TEST_CASE("SimGrid agrees with messages but for what kinds of communication do to each other") {
  if (!engine::simgrid_available()) {
    WARN("skipped: built without SimGrid");
    return;
  }
  const cluster::Cluster cluster = nodes(1);
  // One kind of communication: nothing to contend with.
  const step::Step alone = step_of(kPlans[0], cluster);
  const Result<step::Refereed> same = step::referee(alone, cluster);
  REQUIRE(same);
  CHECK(same->simgrid / same->messages == Approx(1).epsilon(1e-6));
  CHECK(same->messages <= alone.time.value);
  // Sums of gradients beside those of tensor parallelism, on the same links.
  const step::Step mixed = step_of(kPlans[1], cluster);
  const Result<step::Refereed> contended = step::referee(mixed, cluster);
  REQUIRE(contended);
  CHECK(contended->simgrid > contended->messages * (1 + 1e-6));
  const Result<Seconds> messages = step::time_by_messages(mixed, cluster);
  REQUIRE(messages);
  CHECK(*messages == contended->messages);
}

TEST_CASE("Plans are confirmed from the best on, as many as their counts allow") {
  const auto plan_of = [](step::Step step) {
    cli::FoundPlan plan;
    plan.times.message = step.time.value;
    plan.step = std::move(step);
    return plan;
  };
  const cluster::Cluster cluster = nodes(1);
  std::vector<cli::FoundPlan> plans;
  for (const strategies::Plan& plan : kPlans) plans.push_back(plan_of(step_of(plan, cluster)));
  // Sums of tensor parallelism in 4 096 microbatches.
  step::Step large = step_of({.tensor = 8}, cluster, 16384);
  const Result<step::RunSize> size = step::run_size(large.job, cluster);
  REQUIRE(size);
  REQUIRE(size->on_simgrid() > cli::kRefereeTime);
  plans.insert(plans.begin() + 2, plan_of(std::move(large)));

  const Result<cli::Confirmed> confirmed =
      cli::referee_plans(plans, cluster, step::Fidelity::kMessage, 2, {});
  REQUIRE(confirmed);
  if (!engine::simgrid_available()) {
    CHECK(confirmed->plans == 0);
    CHECK(confirmed->left_out == "this build has no SimGrid");
    return;
  }
  CHECK(confirmed->plans == 2);
  CHECK(confirmed->left_out.find(" messages among 8 ranks would make it some ") !=
        std::string::npos);
  CHECK(confirmed->left_out.find("--fidelity simgrid runs all the same") != std::string::npos);
  for (std::size_t i = 0; i < plans.size(); ++i)
    CHECK(plans[i].times.refereed.has_value() == (i < 2));

  // As many threads as one likes: the same times.
  const step::Refereed before = *plans[1].times.refereed;
  REQUIRE(cli::referee_plans(plans, cluster, step::Fidelity::kMessage, 1, {}));
  CHECK(plans[1].times.refereed->simgrid == before.simgrid);
  // Asked to stop.
  CHECK_FALSE(cli::referee_plans(plans, cluster, step::Fidelity::kMessage, 1,
                                 [](double) { return false; }));
}

}  // namespace rehearse
