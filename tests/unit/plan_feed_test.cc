// Plans of a job that a pipeline feeds: what is never waited for less than, and what is found.
#include "cli/planning/plan_feed.h"

#include <catch2/catch.hpp>

#include "cli/config/job_input.h"
#include "cli/planning/find_plans.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/lay_out.h"
#include "strategies/step/predict.h"
#include "tests/support/tiny_models.h"

namespace rehearse::cli {
namespace {

using strategies::Figure;

cluster::Cluster two_nodes() {
  Result<cluster::Cluster> cluster = cluster::parse_cluster(
      "cluster: {device: a100_sxm4_40, devices_per_node: 4, nodes: 2, intra_node: nvswitch, "
      "inter_node: {links: 4, rate: 200 Gbit/s, latency: 5 us}}",
      "cluster");
  REQUIRE(cluster);
  return std::move(*cluster);
}

step::Spec job() {
  return {.workload = test::tiny_gpt(
              {.hidden = 1024, .heads = 16, .sequence = 1024, .vocabulary = 32000, .layers = 4}),
          .training = {.global_batch = 64},
          .plan = {},
          .conditions = {}};
}

/// One stage that makes samples, so long each.
input::Pipeline pipeline_of(double ms, std::uint32_t workers) {
  return {
      .stages = {{.name = "read", .workers = workers, .time = {.mean = Seconds::s(ms * 1e-3)}}}};
}

FoundPlans found(const PlanRequest& request) {
  const cluster::Cluster cluster = two_nodes();
  Result<FoundPlans> plans = find_plans(job(), cluster, request);
  INFO((plans ? "" : to_string(plans.error())));
  REQUIRE(plans);
  return std::move(*plans);
}

PlanRequest request_of(const input::Feed* input) {
  return {.axes = {.context = {1}, .offload = {strategies::Offload::kNone}},
          .keep = 4,
          .confirm = step::Fidelity::kMessage,
          .input = input};
}

}  // namespace

TEST_CASE("No plan is fed faster than its bound says") {
  const cluster::Cluster cluster = two_nodes();
  const step::Spec spec = job();
  for (const double ms : {0.1, 3.0, 40.0}) {
    const input::Pipeline pipeline = pipeline_of(ms, 4);
    const input::Feed by(pipeline);
    PlanFeed feed(pipeline, spec, cluster);
    for (const strategies::Plan& plan :
         {strategies::Plan{.data = 8},
          {.data = 4, .tensor = 2},
          {.data = 2, .pipeline = 4},
          {.data = 4, .pipeline = 2, .placement = strategies::Placement::kTensorPipelineData}}) {
      strategies::Training training = spec.training;
      training.microbatch = 4;
      const Result<workload::Layout> layout = strategies::lay_out(spec.workload, training, plan);
      REQUIRE(layout);
      Seconds before = Seconds::s(0);
      for (const double seconds : {0.01, 0.1, 0.5}) {
        const Seconds alone = Seconds::s(seconds);
        const Result<Seconds> fed = fed_time(by, cluster, *layout, alone);
        REQUIRE(fed);
        CHECK(feed.at_least(training, plan) <= *fed * 1.0001);
        // A longer step by itself is never a shorter one that is fed.
        const Seconds waits = alone + feed.waiting(training, plan, alone);
        CHECK(waits >= before);
        CHECK(waits >= alone);
        CHECK(waits <= *fed * (1 + 2 * kOwnTime));
        before = waits;
      }
    }
  }
}

TEST_CASE("The busiest node's samples bound a step: by hand") {
  // 64 samples on two nodes, all eight ranks data: 32 a node, 10 ms each on four threads: 80 ms.
  const cluster::Cluster cluster = two_nodes();
  const step::Spec spec = job();
  const input::Pipeline pipeline = pipeline_of(10, 4);
  PlanFeed feed(pipeline, spec, cluster);
  CHECK(feed.at_least(spec.training, {.data = 8}).s() == Approx(0.08));
  // A pipeline of two stages: the first is on one node, which loads all 64.
  CHECK(feed.at_least(spec.training, {.data = 4, .pipeline = 2}).s() == Approx(0.16));
  // With its stages together each node has half of the data ranks of the first.
  CHECK(feed.at_least(
                spec.training,
                {.data = 4, .pipeline = 2, .placement = strategies::Placement::kTensorPipelineData})
            .s() == Approx(0.08));
  CHECK(feed.waiting(spec.training, {.data = 8}, Seconds::s(0.2)).s() ==
        Approx(0.08 * kOwnTime).margin(1e-12));
}

TEST_CASE("Plans that wait for their samples are found with their waiting time") {
  const FoundPlans free = found(request_of(nullptr));
  const input::Feed fast(pipeline_of(0.001, 16));
  const FoundPlans fed = found(request_of(&fast));
  REQUIRE(fed.best.size() == free.best.size());
  for (std::size_t i = 0; i < free.best.size(); ++i)
    CHECK(of(fed.best[i].figures, Figure::kStepTime) ==
          Approx(of(free.best[i].figures, Figure::kStepTime)).epsilon(1e-3));

  const input::Feed slow(pipeline_of(100, 4));  // 32 samples of a node in 0.8 s
  const FoundPlans starved = found(request_of(&slow));
  REQUIRE(starved.best.size() == 4);
  const FoundPlan& best = starved.best.front();
  CHECK(of(best.figures, Figure::kStepTime) >= 0.8 * (1 - 1e-4));
  REQUIRE(best.step);
  CHECK(best.step->occupancy.input > best.step->time.value * 0.5);
  CHECK(best.step->time.value.s() == of(best.figures, Figure::kStepTime));
  CHECK(best.times.last().s() + best.step->occupancy.input.s() ==
        Approx(best.step->time.value.s()));
  // Where all wait, one that is fast by itself is the first.
  CHECK(best.times.last() <= starved.best.back().times.last());
  CHECK(best.times.last().s() < of(free.best.front().figures, Figure::kStepTime) * 1.5);
  // The same on three threads, and by closed forms no sooner either.
  PlanRequest request = request_of(&slow);
  request.threads = 3;
  const FoundPlans again = found(request);
  for (std::size_t i = 0; i < 4; ++i) CHECK(again.best[i].figures == starved.best[i].figures);
  request.confirm = step::Fidelity::kClosed;
  const FoundPlans closed = found(request);
  CHECK(of(closed.best.front().figures, Figure::kStepTime) >= 0.8 * (1 - 1e-4));
  REQUIRE(closed.best.front().times.closed);
}

TEST_CASE("The cost of requests to storage is part of the cost of plans that were only searched") {
  // 64 samples a step, a request each: 0.064 USD, for one that loads; twice that where each sample
  // is loaded on two nodes.
  const Result<cluster::Cluster> cluster =
      cluster::parse_cluster("cluster: {instance: p4d.24xlarge, count: 2}", "cluster");
  REQUIRE(cluster);
  input::Pipeline pipeline = pipeline_of(0.001, 16);
  pipeline.sources.push_back({.name = "s3", .request_price = Usd::usd(0.001)});
  pipeline.stages.front().source = 0;
  const auto front = [&](const input::Pipeline& by) {
    const input::Feed feed(by);
    PlanRequest request = request_of(&feed);
    request.axes.tensor = {1, 16};
    request.axes.pipeline = {1};
    request.place.rented = {{"p4d.24xlarge", 2}};
    request.confirm.reset();
    request.objective = Figure::kCost;
    Result<FoundPlans> plans = find_plans(job(), *cluster, request);
    INFO((plans ? "" : to_string(plans.error())));
    REQUIRE(plans);
    return std::move(*plans);
  };
  const FoundPlans asked = front(pipeline);
  pipeline.sources.front().request_price = Usd::usd(0);
  const FoundPlans free = front(pipeline);
  REQUIRE_FALSE(asked.front.empty());
  REQUIRE(asked.front.size() == free.front.size());
  for (std::size_t i = 0; i < asked.front.size(); ++i) {
    const double loaded = asked.front[i].plan.tensor == 16 ? 2 : 1;
    CHECK(of(asked.front[i].figures, Figure::kCost) ==
          Approx(of(free.front[i].figures, Figure::kCost) + 0.064 * loaded));
  }
  REQUIRE_FALSE(asked.best.empty());
  CHECK(of(asked.best.front().figures, Figure::kCost) > 0.064);
}

TEST_CASE("A limit that no fed plan keeps is out of reach") {
  const input::Feed slow(pipeline_of(100, 4));
  PlanRequest request = request_of(&slow);
  request.at_most[0] = 0.5;
  const cluster::Cluster cluster = two_nodes();
  const Result<FoundPlans> plans = find_plans(job(), cluster, request);
  REQUIRE_FALSE(plans);
  CHECK(to_string(plans.error()).find("no plan has a step_time of at most 500.0 ms") !=
        std::string::npos);
}

}  // namespace rehearse::cli
