// Finding plans: figures, what is confirmed, chances, and what is said where nothing is found.
#include "cli/planning/find_plans.h"

#include <catch2/catch.hpp>

#include "cli/planning/emit.h"
#include "cli/planning/plan_words.h"
#include "cli/planning/robustness.h"
#include "cli/planning/run_budget.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/step/predict.h"
#include "tests/support/tiny_models.h"

namespace rehearse::cli {
namespace {

using strategies::Figure;
using strategies::Offload;
using strategies::Recompute;

cluster::Cluster cluster_of(const std::string& text) {
  Result<cluster::Cluster> cluster = cluster::parse_cluster("cluster: {" + text + "}", "cluster");
  REQUIRE(cluster);
  return std::move(*cluster);
}

cluster::Cluster eight_a100() {
  return cluster_of("device: a100_sxm4_40, devices_per_node: 8, nodes: 1, intra_node: nvswitch");
}

step::Spec job(double hidden = 1024) {
  return {.workload = test::tiny_gpt(
              {.hidden = hidden, .heads = 16, .sequence = 1024, .vocabulary = 32000, .layers = 12}),
          .training = {.global_batch = 64},
          .plan = {},
          .conditions = {}};
}

FoundPlans found(const step::Spec& spec, const cluster::Cluster& cluster,
                 const PlanRequest& request) {
  Result<FoundPlans> plans = find_plans(spec, cluster, request);
  INFO((plans ? "" : to_string(plans.error())));
  REQUIRE(plans);
  return std::move(*plans);
}

std::string refusal(const step::Spec& spec, const cluster::Cluster& cluster,
                    const PlanRequest& request) {
  const Result<FoundPlans> plans = find_plans(spec, cluster, request);
  REQUIRE_FALSE(plans);
  REQUIRE(plans.error().diagnostics.size() == 1);
  return to_string(plans.error());
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("The best plans are ordered, fit, and equal their predictions") {
  const cluster::Cluster cluster = eight_a100();
  const PlanRequest request{.axes = {.context = {1}, .offload = {Offload::kNone}},
                            .keep = 4,
                            .confirm = step::Fidelity::kMessage};
  const FoundPlans plans = found(job(), cluster, request);
  REQUIRE(plans.best.size() == 4);
  CHECK(plans.candidates_seen > plans.candidates_evaluated);
  CHECK(plans.candidates_per_s > 0);
  for (std::size_t i = 0; i < plans.best.size(); ++i) {
    const FoundPlan& plan = plans.best[i];
    REQUIRE(plan.step);
    if (i > 0)
      CHECK(of(plans.best[i - 1].figures, Figure::kStepTime) <=
            of(plan.figures, Figure::kStepTime));
    CHECK(memory::fullest(plan.step->memory).fit == memory::Fit::kFits);
    const auto step = step::predict(spec_of(job(), plan), cluster, {.unfold = true});
    REQUIRE(step);
    CHECK(step->time.value.s() == of(plan.figures, Figure::kStepTime));
    CHECK(step->layout.ranks() == 8);
    CHECK(plan.times.all_ranks == step->time.value);
    const auto folded = step::predict(spec_of(job(), plan), cluster, {});
    REQUIRE(folded);
    CHECK(plan.times.message == folded->time.value);
    const auto closed =
        step::predict(spec_of(job(), plan), cluster, {.fidelity = step::Fidelity::kClosed});
    REQUIRE(closed);
    REQUIRE(plan.times.closed);
    CHECK(plan.times.closed->s() == Approx(closed->time.value.s()).epsilon(0.02));
  }
  // In the front time rises as memory falls.
  for (std::size_t i = 1; i < plans.front.size(); ++i) {
    CHECK(of(plans.front[i - 1].figures, Figure::kStepTime) <
          of(plans.front[i].figures, Figure::kStepTime));
    CHECK(of(plans.front[i - 1].figures, Figure::kMemory) >
          of(plans.front[i].figures, Figure::kMemory));
  }
}

TEST_CASE("With a risk, plans are ranked and limited by what they stay below") {
  const cluster::Cluster cluster = eight_a100();
  PlanRequest request{.risk = 0.95, .keep = 6, .confirm = step::Fidelity::kClosed};
  const FoundPlans plans = found(job(), cluster, request);
  REQUIRE(plans.best.size() > 1);
  for (std::size_t i = 1; i < plans.best.size(); ++i)
    CHECK(plans.best[i - 1].step->time.high.s() <=
          plans.best[i].step->time.high.s() * (1 + kNoise));
  const Estimate<Seconds> first = plans.best.front().step->time;
  CHECK(plans.best.front().slower == Approx(first.high / first.value));
  // No plan's upper end is below the first's value.
  request.at_most[static_cast<std::size_t>(Figure::kStepTime)] = first.value.s() * 1.001;
  CHECK(has(refusal(job(), cluster, request), "none meets them when simulated"));
}

// Sixteen nodes of one GPU each on links that no calibration covers, 200 us apart: a ring takes 30
// steps for a sum of gradients, recursive halving and doubling 8.
TEST_CASE("Algorithms of collectives are tried on the best plans, unless the plan names them") {
  const cluster::Cluster cluster = cluster_of(
      "device: rtx3090, devices_per_node: 1, nodes: 16, "
      "inter_node: {kind: switch, links: 1, rate: 100 Gbit/s, latency: 200 us}");
  PlanRequest request{.axes = {.data = {16},
                               .context = {1},
                               .microbatch = {4},
                               .zero = {0},
                               .offload = {Offload::kNone}},
                      .keep = 3,
                      .confirm = step::Fidelity::kClosed};
  const FoundPlans plans = found(job(256), cluster, request);
  const FoundPlan& first = plans.best.front();
  CHECK(first.plan.collectives[CollectiveKind::kAllReduce] == Algorithm::kHalvingDoubling);
  CHECK_FALSE(first.plan.collectives[CollectiveKind::kAllGather]);  // not used
  request.axes.all_reduce = {std::nullopt};
  const FoundPlans usual = found(job(256), cluster, request);
  CHECK_FALSE(usual.best.front().plan.collectives[CollectiveKind::kAllReduce]);
  CHECK(of(first.figures, Figure::kStepTime) * (1 + kNoise) <
        of(usual.best.front().figures, Figure::kStepTime));
  CHECK(usual.candidates_evaluated == plans.candidates_evaluated);
}

// 16 nodes of eight A100: a rank sends 120 small messages to other nodes pairwise, 15 in two
// dimensions, and each occupies its NIC for 1.4 us (comm_cost_test.cc has 512 ranks).
TEST_CASE("Small exchanges of tokens over many nodes are two-dimensional") {
  const cluster::Cluster cluster = cluster_of(
      "device: a100_sxm4_80, devices_per_node: 8, nodes: 16, intra_node: nvswitch, "
      "inter_node: {kind: switch, links: 8, rate: 200 Gbit/s, network: infiniband}");
  const step::Spec spec{.workload = test::tiny_gpt({.hidden = 256, .layers = 2, .experts = 128}),
                        .training = {.global_batch = 128},
                        .plan = {},
                        .conditions = {}};
  PlanRequest request{.axes = {.data = {128},
                               .expert = {128},
                               .zero = {0},
                               .recompute = {Recompute::kNone},
                               .offload = {Offload::kNone},
                               .placement = {strategies::Placement::kTensorDataPipeline},
                               .ranks_per_node = 8},
                      .keep = 1};
  const FoundPlans plans = found(spec, cluster, request);
  const FoundPlan& first = plans.best.front();
  CHECK(first.plan.collectives[CollectiveKind::kAllToAll] == Algorithm::kTwoDimensional);
  request.axes.all_to_all = {std::nullopt};
  const FoundPlans pairwise = found(spec, cluster, request);
  CHECK(of(first.figures, Figure::kStepTime) * (1 + kNoise) <
        of(pairwise.best.front().figures, Figure::kStepTime));
}

TEST_CASE("Algorithms of collectives stay NCCL's choice on measured devices") {
  const FoundPlans plans = found(job(), eight_a100(),
                                 {.axes = {.context = {1}, .offload = {Offload::kNone}},
                                  .keep = 4,
                                  .confirm = step::Fidelity::kClosed});
  for (const FoundPlan& plan : plans.best) CHECK(plan.plan.collectives == Algorithms{});
}

TEST_CASE("Searching alone runs nothing, and does not depend on threads") {
  const cluster::Cluster cluster = eight_a100();
  PlanRequest request{.axes = {.context = {1}}, .keep = 3};
  const FoundPlans one = found(job(), cluster, request);
  request.threads = 3;
  const FoundPlans three = found(job(), cluster, request);
  REQUIRE(one.best.size() == 3);
  CHECK(one.candidates_evaluated == three.candidates_evaluated);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK_FALSE(one.best[i].step);
    CHECK(one.best[i].figures == three.best[i].figures);
  }
}

// Chances 0.5, 0.3, 0.1, 0.08 and 0.02. The second runs the first's kernels in its groups, so its
// error is the same; the last is unlikely.
TEST_CASE("Measurements are suggested for likely plans whose errors differ") {
  const auto plan = [](std::uint32_t tensor, std::uint32_t zero) {
    FoundPlan p{.training = {}, .plan = {}, .figures = {}};
    p.plan.tensor = tensor;
    p.plan.zero = zero;
    return p;
  };
  const std::vector<FoundPlan> plans = {plan(1, 0), plan(1, 1), plan(2, 0), plan(4, 0), plan(8, 0)};
  CHECK(worth_measuring(plans, {0.5, 0.3, 0.1, 0.08, 0.02}) == std::vector<std::size_t>{0, 2, 3});
  // By chance, not by rank; and one alone decides nothing.
  CHECK(worth_measuring(plans, {0.1, 0, 0.1, 0, 0.8}) == std::vector<std::size_t>{4, 0, 2});
  CHECK(worth_measuring(plans, {0.97, 0, 0.03, 0, 0}).empty());
}

// Transformers of few layers on one node: every plan has a twin with ZeRO or with a state on the host.
TEST_CASE("Of plans within the noise, the first has the fewest settings") {
  const PlanRequest request{.keep = 10, .confirm = step::Fidelity::kClosed};
  const FoundPlans plans = found(job(), eight_a100(), request);
  const auto time = [](const FoundPlan& plan) { return plan.step->time.value; };
  const auto settings = [](const FoundPlan& plan) {
    return named_settings(plan.training, plan.plan);
  };
  const FoundPlan& first = plans.best.front();
  REQUIRE(memory::fullest(first.step->memory).peak.high <= Bytes::gib(40) * kMostMemory);
  const Seconds fastest = time(*std::ranges::min_element(plans.best, {}, time));
  CHECK(time(first) <= fastest * (1 + kNoise));
  for (const FoundPlan& plan : plans.best)
    if (time(plan) <= fastest * (1 + kNoise)) CHECK(settings(first) <= settings(plan));
  CHECK(settings(first) < settings(*std::ranges::max_element(plans.best, {}, settings)));
  CHECK(std::ranges::is_sorted(plans.best.begin() + 1, plans.best.end(), {}, time));
  CHECK(named_settings({}, {.data = 8, .zero = 1}) == named_settings({}, {.data = 8}) + 1);
}

// Two stages over two nodes are the fastest if no run stalls; one in six does, on EFA.
TEST_CASE("Plans are ranked by their mean, in which some runs stall") {
  const auto on = [](const char* network) {
    const cluster::Cluster nodes = cluster_of(
        std::string("device: a100_sxm4_40, devices_per_node: 8, nodes: 2, intra_node: nvswitch, "
                    "inter_node: {links: 4, rate: 100 Gbit/s, latency: 20 us, network: ") +
        network + "}");
    PlanRequest request;
    request.confirm = step::Fidelity::kMessage;
    request.keep = 10;
    request.axes.tensor = {1};
    request.axes.zero = {0};
    step::Spec spec = job();
    spec.training.global_batch = 16;
    return found(spec, nodes, request);
  };
  const FoundPlans efa = on("efa"), infiniband = on("infiniband");
  CHECK(infiniband.best.front().step->mean_stall == Seconds::s(0));
  const FoundPlan& first = efa.best.front();
  CHECK(first.step->mean_stall == Seconds::s(0));
  for (const FoundPlan& plan : efa.best) {
    INFO(plan_words(plan.training, plan.plan));
    CHECK(first.step->time.value <= (plan.step->time.value + plan.step->mean_stall) * (1 + kNoise));
    CHECK(plan.slower == Approx(1 + plan.step->mean_stall / plan.step->time.value));
  }
}

TEST_CASE("Limits hold, and another objective finds another plan") {
  const cluster::Cluster cluster = eight_a100();
  PlanRequest request{.axes = {.context = {1}}, .keep = 1};
  const FoundPlan fastest = found(job(), cluster, request).best.front();
  request.objective = Figure::kMemory;
  const FoundPlan least = found(job(), cluster, request).best.front();
  CHECK(of(least.figures, Figure::kMemory) < of(fastest.figures, Figure::kMemory));
  CHECK(of(least.figures, Figure::kStepTime) > of(fastest.figures, Figure::kStepTime));
  // Between both: no faster than the fastest, no smaller than the smallest.
  request.objective = Figure::kStepTime;
  const double limit =
      (of(least.figures, Figure::kMemory) + of(fastest.figures, Figure::kMemory)) / 2;
  request.at_most[1] = limit;
  const FoundPlan between = found(job(), cluster, request).best.front();
  CHECK(of(between.figures, Figure::kMemory) <= limit);
  CHECK(of(between.figures, Figure::kStepTime) >= of(fastest.figures, Figure::kStepTime));
}

TEST_CASE("Cost and energy are those of the account of a step") {
  const cluster::Cluster cluster = cluster_of("instance: p4d.24xlarge, count: 1");
  const cost::Place place{.rented = {{"p4d.24xlarge", 1}}, .region = "us-east-1"};
  const PlanRequest request{
      .axes = {.context = {1}}, .keep = 1, .confirm = step::Fidelity::kClosed, .place = place};
  const FoundPlans plans = found(job(), cluster, request);
  const FoundPlan& best = plans.best.front();
  const step::Step& step = *best.step;
  const auto gpu = cluster::find_gpu("a100_sxm4_40");
  REQUIRE(gpu);
  const cost::PoweredDevices devices[] = {
      {"a100_sxm4_40", *gpu, 8, step.devices.front().busy / (step.time.value * 8)}};
  const cost::StepAccount account = cost::account_of(step.time, devices, place);
  CHECK(of(best.figures, Figure::kCost) == Approx(account.money->value.usd()));
  CHECK(of(best.figures, Figure::kEnergy) == Approx(account.energy->value.j()));
  CHECK(of(best.figures, Figure::kCarbon) == Approx(account.carbon->value));
}

TEST_CASE("An unknown quantity is refused, not taken as zero") {
  PlanRequest request{.objective = Figure::kCost};
  CHECK(has(refusal(job(), eight_a100(), request),
            "the cost of a step is unknown here: no price: the cluster is not made of instances"));
  request = {};
  request.at_most[static_cast<std::size_t>(Figure::kCarbon)] = 1;
  CHECK(has(refusal(job(), eight_a100(), request), "the carbon of a step is unknown here"));
}

TEST_CASE("If nothing fits, the nearest plan and a change that would fit are named") {
  const cluster::Cluster cluster = eight_a100();
  // 10 billion parameters on each rank, and nothing shared.
  const std::string kept =
      refusal(job(8192), cluster, {.axes = {.tensor = {1}, .pipeline = {1}, .zero = {0}}});
  CHECK(has(kept, "no plan fits: the nearest ("));
  CHECK(has(kept, "but 37.6 GiB are usable on a100_sxm4_40"));
  CHECK(has(kept, "too much; model states take "));
  CHECK(has(kept, "would fit without the keys given in the plan: "));
  CHECK(has(refusal(job(65536), cluster, {}), "would fit: about "));
}

TEST_CASE("Limits out of reach are reported with the nearest values") {
  const cluster::Cluster cluster = eight_a100();
  PlanRequest request{.axes = {.context = {1}}, .keep = 1};
  const FoundPlan fastest = found(job(), cluster, request).best.front();
  request.objective = Figure::kMemory;
  const FoundPlan least = found(job(), cluster, request).best.front();
  request.at_most[0] = 1e-3;
  const std::string impossible = refusal(job(), cluster, request);
  CHECK(has(impossible, "no plan has a step_time of at most 1.000 ms; nearest: " +
                            figure_words(Figure::kStepTime, fastest.figures[0])));
  // Each within reach, but not both.
  request.at_most[0] = fastest.figures[0] * 1.001;
  request.at_most[1] = least.figures[1] * 1.001;
  const std::string both = refusal(job(), cluster, request);
  CHECK(has(both, "no plan has a step_time of at most "));
  CHECK(has(both, " and a memory of at most "));
  CHECK(has(both, " at once; nearest: step_time with "));
  CHECK(has(both, ", or memory with "));
}

TEST_CASE("Chances sum to one, and equal plans go to the first") {
  const cluster::Cluster cluster = eight_a100();
  const PlanRequest request{.axes = {.context = {1}, .offload = {Offload::kNone}},
                            .keep = 6,
                            .confirm = step::Fidelity::kClosed};
  std::vector<FoundPlan> plans = found(job(), cluster, request).best;
  const std::vector<double> chance = chances(plans, Figure::kStepTime, 1);
  double sum = 0;
  for (const double share : chance) sum += share;
  CHECK(sum == Approx(1));
  CHECK(chances(plans, Figure::kStepTime, 1) == chance);
  // Other draws, of the same chances.
  const std::vector<double> other = chances(plans, Figure::kStepTime, 2);
  CHECK(other != chance);
  for (std::size_t i = 0; i < chance.size(); ++i) CHECK(other[i] == Approx(chance[i]).margin(0.05));
  // The same plan twice: errors are common, so the second never wins.
  plans.resize(1);
  plans.push_back(plans.front());
  CHECK(chances(plans, Figure::kStepTime, 1) == std::vector<double>{1, 0});
  // A twin that is faster by less than the noise leaves its share to the first.
  plans[1].figures[0] *= 0.99;
  CHECK(chances(plans, Figure::kStepTime, 1) == std::vector<double>{1, 0});
  // Far slower than any error.
  plans[1].training.microbatch *= 2;
  plans[1].figures[0] *= 10;
  CHECK(chances(plans, Figure::kStepTime, 1)[1] == 0);
  // Other kernels, as fast: a toss-up.
  plans[1].figures[0] = plans[0].figures[0];
  CHECK(chances(plans, Figure::kStepTime, 1)[1] == Approx(0.5).margin(0.05));
  // A little slower: never where all errors are common and the shares are the same, more often
  // where none are than where most are.
  plans[1].figures[0] = plans[0].figures[0] * 1.01;
  const double all = chances(plans, Figure::kStepTime, 1, 1)[1],
               most = chances(plans, Figure::kStepTime, 1)[1],
               none = chances(plans, Figure::kStepTime, 1, 0)[1];
  CHECK(all == 0);
  CHECK(most > 0.1);
  CHECK(none > most);
  CHECK(none < 0.5);
}

TEST_CASE(
    "How many plans are run is counted, not timed: five in a hundred, as far as they cost little") {
  const auto space = [](const step::Spec& spec, std::uint32_t ranks) {
    Result<strategies::Space> all =
        strategies::Space::of(spec.workload, spec.training, spec.plan, ranks, {});
    REQUIRE(all);
    return std::move(*all);
  };
  const strategies::Space small = space(job(), 8);
  REQUIRE(small.size() > 4000);
  const std::size_t few = runs_of(job(), small, false);
  CHECK(few > 100);
  CHECK(few <= small.size() / 20 + 1);
  CHECK(runs_of(job(), small, false) == few);
  // More ranks, and more microbatches: each run costs more, and 20 or 100 are run all the same.
  step::Spec large = job();
  large.training.global_batch = 65536;
  const strategies::Space many = space(large, 512);
  REQUIRE(many.size() > 10000);
  CHECK(runs_of(large, many, false) == 20);
  CHECK(runs_of(large, many, true) == 100);
  // Of a few plans no more than there are.
  step::Spec one = job();
  Result<strategies::Space> fixed = strategies::Space::of(
      one.workload, one.training, one.plan, 8,
      {.data = {8}, .microbatch = {1}, .zero = {1}, .offload = {Offload::kNone}});
  REQUIRE(fixed);
  CHECK(runs_of(one, *fixed, true) <= fixed->size() / 20 + 1);
}

TEST_CASE("Frameworks get the keys of their documentation") {
  const cluster::Cluster cluster = eight_a100();
  step::Spec spec = job();
  spec.training.microbatch = 2;
  spec.training.recompute = Recompute::kFull;
  spec.plan = {.data = 2,
               .tensor = 2,
               .pipeline = 2,
               .interleave = 3,
               .schedule = strategies::Schedule::kInterleaved,
               .zero = 1,
               .sequence_parallel = true};
  Launch launch{spec, cluster,
                workload::Transformer{.name = "gpt",
                                      .hidden = 1024,
                                      .layers = 12,
                                      .heads = 16,
                                      .vocabulary = 32000,
                                      .sequence = 1024}};
  const Result<Emitted> megatron = emit(Framework::kMegatron, launch);
  REQUIRE(megatron);
  for (const char* flag :
       {"--tensor-model-parallel-size 2\n", "--pipeline-model-parallel-size 2\n",
        "--num-virtual-stages-per-pipeline-rank 3\n", "--sequence-parallel\n",
        "--use-distributed-optimizer\n", "--micro-batch-size 2\n", "--global-batch-size 64\n",
        "--recompute-granularity full\n", "--bf16\n", "--num-layers 12\n", "--hidden-size 1024\n",
        "--nproc_per_node 8 --nnodes 1 "})
    CHECK(has(megatron->text, flag));
  const Result<Emitted> torchtitan = emit(Framework::kTorchtitan, launch);
  REQUIRE_FALSE(torchtitan);
  CHECK(has(to_string(torchtitan.error()), "torchtitan has no key for zero 1 with data 2"));
  const Result<Emitted> deepspeed = emit(Framework::kDeepspeed, launch);
  REQUIRE_FALSE(deepspeed);
  CHECK(has(to_string(deepspeed.error()), "DeepSpeed's JSON has no key for pipeline 2"));

  spec.plan.zero = 3;
  const Result<Emitted> fsdp = emit(Framework::kTorchtitan, launch);
  REQUIRE(fsdp);
  // 64 samples on 2 data ranks, in microbatches of 2.
  for (const char* line :
       {"local_batch_size = 32\n", "pipeline_parallel_microbatch_size = 2\n",
        "data_parallel_shard_degree = 2\n", "tensor_parallel_degree = 2\n",
        "pipeline_parallel_schedule = \"Interleaved1F1B\"\n", "mode = \"full\"\n"})
    CHECK(has(fsdp->text, line));
  CHECK(has(to_string(emit(Framework::kMegatron, launch).error()),
            "Megatron-LM has no key for ZeRO-3 in a pipeline"));

  spec.plan = {.data = 8, .zero = 2, .tiers = tiers_of(Offload::kOptimizer)};
  const Result<Emitted> zero = emit(Framework::kDeepspeed, launch);
  REQUIRE(zero);
  for (const char* line :
       {"\"train_batch_size\": 64", "\"train_micro_batch_size_per_gpu\": 2",
        "\"gradient_accumulation_steps\": 4", "\"stage\": 2", "\"device\": \"cpu\""})
    CHECK(has(zero->text, line));
  spec.plan.schedule = strategies::Schedule::kZeroBubble;
  spec.plan.pipeline = 2;
  CHECK(has(to_string(emit(Framework::kMegatron, launch).error()),
            "Megatron-LM has no key for schedule zero_bubble; nearest: 1f1b or interleaved"));
}

}  // namespace rehearse::cli
