#include "tests/support/plan_spaces.h"

#include <fmt/core.h>

#include "models/workload/adapters.h"
#include "sim/base/check.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "tests/support/tiny_models.h"

namespace rehearse::test {
namespace {

using strategies::Candidate;
using strategies::Figures;

template <class T>
T pick(std::mt19937& random, std::initializer_list<T> values) {
  return *(values.begin() + random() % values.size());
}

/// Some of the values, at least one.
template <class T>
std::vector<T> some(std::mt19937& random, std::vector<T> values) {
  std::vector<T> kept;
  for (const T& value : values)
    if (random() % 2 == 0) kept.push_back(value);
  if (kept.empty()) kept.push_back(values[random() % values.size()]);
  return kept;
}

}  // namespace

PlanSpace random_plan_space(std::mt19937& random) {
  using strategies::Offload;
  using strategies::Placement;
  for (;;) {
    const auto nodes = pick<std::uint32_t>(random, {1, 2, 3, 4});
    const auto per_node = pick<std::uint32_t>(random, {2, 4, 8});
    Result<cluster::Cluster> cluster = cluster::parse_cluster(
        fmt::format("cluster: {{device: a100_sxm4_40, devices_per_node: {}, nodes: {}, intra_node: "
                    "nvswitch, inter_node: {{links: 1, rate: {} Gbit/s, latency: 5 us}}}}",
                    per_node, nodes, pick(random, {10, 100})),
        "cluster");
    REHEARSE_CHECK(cluster, "{}", to_string(cluster.error()));
    const bool mixture = random() % 4 == 0;
    step::Spec spec{
        .workload = tiny_gpt({.hidden = pick(random, {256.0, 1024.0, 4096.0}),
                              .heads = pick(random, {4.0, 8.0}),
                              .sequence = pick(random, {128.0, 1024.0}),
                              .vocabulary = 4096,
                              .layers = pick<std::uint32_t>(random, {4, 6, 8, 12}),
                              .flash = random() % 2 == 0,
                              .experts = mixture ? 4U : 0U,
                              .tied = random() % 2 == 0}),
        .training = {.global_batch = pick(random, {16.0, 48.0, 64.0}),
                     .dtype = pick(random, {workload::Dtype::kBf16, workload::Dtype::kFp16})},
        .plan = {.overlap_gradients = random() % 4 != 0, .asynchronous_tensor = random() % 4 == 0},
        .conditions = {}};
    spec.plan.overlap_tensor = spec.plan.overlap_gradients;
    if (!spec.plan.overlap_gradients)
      spec.plan.gather_weights = strategies::GatherWeights::kByTensor;
    if (spec.plan.overlap_gradients && random() % 4 == 0) {
      constexpr workload::Adapted kTargets[] = {
          workload::Adapted::kAttention, workload::Adapted::kFeedForward, workload::Adapted::kAll};
      spec.workload =
          *workload::with_adapters(std::move(spec.workload), 16, kTargets[random() % 3]);
    }
    if (random() % 2 == 0)
      spec.conditions.host = {.layer = Seconds::us(500),
                              .layer_tensor = Seconds::ms(1),
                              .layer_pipeline = Seconds::ms(1.5)};
    strategies::Axes axes{
        .schedule = some(
            random, std::vector{strategies::Schedule::kGpipe, strategies::Schedule::k1f1b,
                                strategies::Schedule::kInterleaved,
                                strategies::Schedule::kZeroBubble, strategies::Schedule::kShifted}),
        .zero = some(random, std::vector<std::uint32_t>{0, 1, 2, 3}),
        .offload = some(random, std::vector{Offload::kNone, Offload::kOptimizer, Offload::kWeights,
                                            Offload::kActivations, Offload::kGradients}),
        .placement = some(
            random, std::vector{Placement::kTensorDataPipeline, Placement::kTensorPipelineData})};
    if (random() % 3 == 0) axes.sequence_parallel = random() % 2 == 0;
    Result<strategies::Space> space =
        strategies::Space::of(spec.workload, spec.training, spec.plan, nodes * per_node, axes);
    if (!space || space->size() > 6000) continue;
    return {std::move(spec), std::move(*cluster), std::move(*space)};
  }
}

Figures figures_of(const step::PlanCost& cost) {
  double busy = 0;
  for (const Seconds& time : cost.busy) busy += time.s();
  return {cost.step.s(), cost.memory.b(), cost.step.s() / 3600, busy * 350 + cost.step.s() * 50, 0};
}

strategies::Judge judge_of(const PlanSpace& job, Bytes most, bool bounds) {
  const auto costs = std::make_shared<step::PlanCosts>(job.spec, job.cluster);
  const auto figures = [](const std::optional<step::PlanCost>& cost) -> std::optional<Figures> {
    if (!cost) return std::nullopt;
    return figures_of(*cost);
  };
  return {.bound = [=, &job](std::uint64_t index) -> std::optional<Figures> {
            if (!bounds) return Figures{};
            const Candidate c = job.space.at(index);
            return figures(costs->at_least(c.training, c.plan));
          },
          .evaluate =
              [=, &job](std::uint64_t index) {
                const Candidate c = job.space.at(index);
                return figures(costs->of(c.training, c.plan, most));
              }};
}

}  // namespace rehearse::test
