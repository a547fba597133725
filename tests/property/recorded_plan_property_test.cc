// A job simulated under plan A is recorded, joined and laid out again: under A, and under B.
#include <random>

#include <catch2/catch.hpp>

#include "cli/commands/pass_edits.h"
#include "models/workload/lift.h"
#include "models/workload/selective.h"
#include "profiler/replay/lower.h"
#include "profiler/trace/align.h"
#include "strategies/step/devices.h"
#include "tests/support/a100_nodes.h"
#include "tests/support/recorded_ranks.h"
#include "tests/support/recorded_step.h"

namespace rehearse::workload {
namespace {

using strategies::Plan;
using strategies::Training;

/// Operations last milliseconds to minutes, so that a recording in nanoseconds is exact to 1e-9.
constexpr test::RecordedJob kJob{
    .blocks = 8, .samples = 4, .rows = 10240, .hidden = 16384, .inner = 57344, .heads = 64};

/// For one sample, without recorded times: all times follow from the laws.
Workload chain_of_blocks(const test::RecordedJob& job) {
  trace::Trace trace;
  test::RecordedRanks(trace, job).add(0);
  Result<Lifted> lifted = lift(trace, {});
  REQUIRE(lifted);
  for (Layer& layer : lifted->workload.layers) {
    for (auto* ops : {&layer.forward, &layer.backward})
      for (Op& op : *ops) {
        op.measured.reset();
        op.measured_for.reset();
      }
    layer.step.clear();  // the plan adds the update
  }
  return with_samples(std::move(lifted->workload), 1);
}

step::Conditions without_host() {
  step::Conditions conditions;
  conditions.host_per_kernel = Seconds::s(0);
  step::set_fixed(conditions, Seconds::s(0));
  conditions.overlap_penalty = 0;
  return conditions;
}

template <class T>
T one_of(std::mt19937& random, std::initializer_list<T> list) {
  return *(list.begin() + random() % list.size());
}

Plan random_plan(const Workload& workload, std::mt19937& random) {
  Plan plan{.data = one_of(random, {1U, 2U, 4U}),
            .tensor = one_of(random, {1U, 2U, 4U}),
            .pipeline = one_of(random, {1U, 2U, 4U})};
  plan.schedule = one_of(random, {strategies::Schedule::kGpipe, strategies::Schedule::k1f1b});
  if (plan.pipeline > 1 && random() % 2 == 0) {
    plan.schedule = strategies::Schedule::kInterleaved;
    plan.interleave = 8 / plan.pipeline == 2 ? 2 : one_of(random, {2U, 4U});
  }
  plan.context = one_of(random, {1U, 1U, 2U, 4U});
  if (plan.data * plan.tensor * plan.context * plan.pipeline > 32) plan.data = 1;
  plan.context_exchange =
      one_of(random, {strategies::ContextExchange::kRing, strategies::ContextExchange::kAllToAll});
  if (plan.data * plan.context > 1) {
    plan.zero = one_of(random, {0U, 0U, 1U, 2U});
    if (plan.pipeline == 1 && random() % 3 == 0) plan.zero = 3;
  }
  if (workload.experts > 0) {
    plan.expert = one_of(random, {1U, std::min(2U, plan.data), plan.data});
  }
  if (plan.tensor > 1) plan.sequence_parallel = random() % 2 == 0;
  if (plan.sequence_parallel && workload.experts > 0 && random() % 2 == 0) {
    plan.expert_tensor = 1;
    plan.expert = one_of(random, {plan.expert, plan.tensor, plan.data * plan.tensor});
  }
  return plan;
}

std::string text_of(const Plan& plan, const Training& training) {
  return fmt::format(
      "data {} expert {}{} context {}{} tensor {}{} pipeline {}/{} zero {} {} batch {} of {}",
      plan.data, plan.expert, plan.expert_tensor ? " whole" : "", plan.context,
      plan.context_exchange == strategies::ContextExchange::kRing ? "" : " by heads", plan.tensor,
      plan.sequence_parallel ? " by tokens" : "", plan.pipeline, plan.interleave, plan.zero,
      plan.schedule == strategies::Schedule::kGpipe ? "gpipe" : "1f1b", training.global_batch,
      training.microbatch);
}

step::Step simulated(const Workload& workload, const Training& training, const Plan& plan,
                     bool value_only) {
  static const cluster::Cluster cluster = test::a100_nodes(8);
  const step::Spec spec{
      .workload = workload, .training = training, .plan = plan, .conditions = without_host()};
  Result<step::Step> step = step::predict(spec, cluster,
                                          {.fidelity = step::Fidelity::kClosed,
                                           .unfold = true,
                                           .counterfactuals = false,
                                           .value_only = value_only});
  INFO((step ? "" : to_string(step.error())));
  REQUIRE(step);
  return std::move(*step);
}

void check_pairs(const Workload& truth, unsigned seed, int rounds) {
  const Result<compute::OpCost> cost = compute::OpCost::on("a100_sxm4_80", {});
  REQUIRE(cost);
  const step::OpPrice op_price(*cost, without_host());
  const strategies::Price price([&](const Op& op) { return op_price.timed(op); });
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    Plan a = random_plan(truth, random), b = random_plan(truth, random);
    // The backward passes of GPipe run in reverse: the recording does not tell where one ends.
    if (a.schedule == strategies::Schedule::kGpipe) a.schedule = strategies::Schedule::k1f1b;
    // Experts that were recorded whole stay whole.
    if (a.expert_tensor && b.tensor > 1) {
      b.expert_tensor = 1;
      b.sequence_parallel = true;
    }
    const auto training_of = [](const Plan& plan) {
      return Training{.global_batch = kJob.samples * plan.data * 4,
                      .microbatch = kJob.samples,
                      .dtype = Dtype::kFp32,
                      .optimizer = strategies::Optimizer::kSgd};
    };
    INFO("round " << round << ": " << text_of(a, training_of(a)) << " -> "
                  << text_of(b, training_of(b)));
    const step::Step before = simulated(truth, training_of(a), a, true);
    const trace::Trace trace = test::record(before, price, static_cast<test::KeysBy>(round % 3));
    Result<Lifted> lifted = lift(trace, {});
    INFO((lifted ? "" : to_string(lifted.error())));
    REQUIRE(lifted);
    INFO((lifted->plan ? "" : to_string(lifted->plan.error())));
    REQUIRE(lifted->plan);
    CHECK(lifted->plan->tensor == a.tensor);
    CHECK(lifted->plan->pipeline == a.pipeline);
    CHECK(lifted->plan->chunks == a.interleave);
    CHECK(lifted->plan->data == a.data);
    CHECK(lifted->plan->expert == a.expert);
    CHECK(lifted->plan->whole_experts == a.expert_tensor.has_value());
    CHECK(lifted->plan->context == a.context);
    if (a.context > 1)
      CHECK(lifted->plan->context_by_heads ==
            (a.context_exchange == strategies::ContextExchange::kAllToAll));
    CHECK((lifted->plan->zero > 0) == (a.zero > 0));
    CHECK(lifted->plan->sequence_parallel == a.sequence_parallel);
    CHECK(lifted->microbatches == 4);
    CHECK(lifted->workload.parameters() == truth.parameters());
    const Workload joined = with_samples(std::move(lifted->workload), 1);
    const step::Step again = simulated(joined, training_of(a), a, true);
    CHECK(again.time.value.s() == Approx(before.time.value.s()).epsilon(1e-9));
    const step::Step expected = simulated(truth, training_of(b), b, true);
    const step::Step other = simulated(joined, training_of(b), b, false);
    CHECK(other.time.low <= expected.time.value);
    CHECK(expected.time.value <= other.time.high);
    CHECK(other.time.value.s() == Approx(expected.time.value.s()).epsilon(1e-9));
  }
}

TEST_CASE("a recorded plan laid out again gives what its simulation gave: 10 pairs of plans") {
  check_pairs(chain_of_blocks(kJob), 21, 10);
}

TEST_CASE("a recorded plan laid out again gives what its simulation gave: 200 pairs of plans") {
  check_pairs(chain_of_blocks(kJob), 20, 200);
}

TEST_CASE(
    "an edited recording gives what the simulation of the edited job gives: 6 pairs of plans") {
  // Twice the tokens, every second layer run again, three passes instead of four.
  test::RecordedJob longer = kJob;
  longer.rows *= 2;
  const Workload truth = chain_of_blocks(kJob);
  Workload edited = chain_of_blocks(longer);
  REQUIRE(recompute_layers(edited, "*2"));
  const Result<compute::OpCost> cost = compute::OpCost::on("a100_sxm4_80", {});
  REQUIRE(cost);
  const step::OpPrice op_price(*cost, without_host());
  const strategies::Price price([&](const Op& op) { return op_price.timed(op); });
  std::mt19937 random(23);
  for (int round = 0; round < 6; ++round) {
    Plan a = random_plan(truth, random), b = random_plan(truth, random);
    if (a.schedule == strategies::Schedule::kGpipe) a.schedule = strategies::Schedule::k1f1b;
    if (b.schedule == strategies::Schedule::kInterleaved)
      b = {.data = 2};  // 3 passes fill no round
    const auto training_of = [](const Plan& plan, double passes) {
      return Training{.global_batch = kJob.samples * plan.data * passes,
                      .microbatch = kJob.samples,
                      .dtype = Dtype::kFp32,
                      .optimizer = strategies::Optimizer::kSgd};
    };
    INFO("round " << round << ": " << text_of(a, training_of(a, 4)) << " -> "
                  << text_of(b, training_of(b, 3)));
    Result<Lifted> lifted =
        lift(test::record(simulated(truth, training_of(a, 4), a, true), price), {});
    REQUIRE(lifted);
    Result<Workload> joined = with_tokens(std::move(lifted->workload), longer.rows);
    REQUIRE(joined);
    for (std::size_t i = 0; i < truth.layers.size(); ++i)
      joined->layers[i].name = truth.layers[i].name;  // stages name theirs alike
    REQUIRE(recompute_layers(*joined, "*2"));
    const step::Step expected = simulated(edited, training_of(b, 3), b, true);
    const step::Step found =
        simulated(with_samples(*std::move(joined), 1), training_of(b, 3), b, false);
    CHECK(found.time.low <= expected.time.value);
    CHECK(expected.time.value <= found.time.high);
    CHECK(found.time.value.s() == Approx(expected.time.value.s()).epsilon(1e-9));
  }
}

TEST_CASE("a recorded plan of a mixture laid out again gives what its simulation gave: 40 pairs") {
  test::RecordedJob job = kJob;
  job.experts = 8;
  const Workload truth = chain_of_blocks(job);
  CHECK(truth.experts == 8);
  CHECK(truth.experts_per_token == 2);
  check_pairs(truth, 22, 40);
}

/// A replay with passes of twice the size ÷ that as recorded.
struct Twice {
  Estimate<double> step;
  double all_ranks;  ///< until the last rank ends
};

Twice replayed_twice(trace::Trace recorded, cli::PassExtent extent, double size) {
  cli::ReplayJob job{{std::make_unique<trace::Trace>(std::move(recorded)), {}}, {}};
  trace::align(*job.trace);
  for (std::size_t rank = 0; rank < job.trace->ranks.size(); ++rank) {
    job.trace->ranks[rank].devices = {{.ordinal = 0, .name = "NVIDIA A100-SXM4-80GB"}};
    job.recordings.emplace_back(*job.trace, rank);
  }
  Result<replay::RecordedProgram> program = replay::lower(job.recordings, {});
  INFO((program ? "" : to_string(program.error())));
  REQUIRE(program);
  Result<cli::ReplayRun> run = cli::run_program(job, std::move(*program));
  INFO((run ? "" : to_string(run.error())));
  REQUIRE(run);
  job.recorded = std::move(*run);
  const Seconds recorded_step = job.recorded.comparison.step_time.simulated;
  const cli::Edit edit{[&](replay::RecordedProgram edited, cli::Bound bound) {
                         return cli::resize_passes(job, std::move(edited), extent, size, bound, {});
                       },
                       "sizes"};
  const Result<cli::EditedRun> edited = cli::run_edited(job, {edit});
  INFO((edited ? "" : to_string(edited.error())));
  REQUIRE(edited);
  const Estimate<Seconds> step = edited->step(job);
  return {{step.value / recorded_step, step.low / recorded_step, step.high / recorded_step,
           step.provenance},
          edited->run.timeline.makespan() / job.recorded.timeline.makespan()};
}

TEST_CASE("passes of twice the size, edited in recordings of all ranks: 40 plans") {
  const Workload truth = chain_of_blocks(kJob);
  test::RecordedJob longer = kJob;
  longer.rows *= 2;
  const Workload of_longer = chain_of_blocks(longer);
  const Result<compute::OpCost> cost = compute::OpCost::on("a100_sxm4_80", {});
  REQUIRE(cost);
  const step::OpPrice op_price(*cost, without_host());
  const strategies::Price price([&](const Op& op) { return op_price.timed(op); });
  std::mt19937 random(24);
  for (int round = 0; round < 40; ++round) {
    Plan plan = random_plan(truth, random);
    if (plan.schedule == strategies::Schedule::kGpipe) plan.schedule = strategies::Schedule::k1f1b;
    const auto training_of = [&](double samples) {
      return Training{.global_batch = samples * plan.data * 4,
                      .microbatch = samples,
                      .dtype = Dtype::kFp32,
                      .optimizer = strategies::Optimizer::kSgd};
    };
    const bool tokens = round % 2 == 1;
    INFO("round " << round << ": " << text_of(plan, training_of(kJob.samples))
                  << (tokens ? " tokens" : " samples"));
    const step::Step before = simulated(truth, training_of(kJob.samples), plan, true);
    const auto keys_by = static_cast<test::KeysBy>(round / 2 % 3);
    const Twice edited =
        replayed_twice(test::record(before, price, keys_by),
                       tokens ? cli::PassExtent::kTokens : cli::PassExtent::kSamples,
                       tokens ? longer.rows : 2 * kJob.samples);
    const step::Step expected = tokens
                                    ? simulated(of_longer, training_of(kJob.samples), plan, true)
                                    : simulated(truth, training_of(2 * kJob.samples), plan, true);
    const double change = expected.time.value / before.time.value;
    CHECK(edited.step.low <= change);
    CHECK(change <= edited.step.high);
    CHECK(edited.all_ranks == Approx(change).epsilon(1e-5));
  }
}

}  // namespace
}  // namespace rehearse::workload
