#include "strategies/check_plan.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "strategies/layer_split.h"
#include "strategies/plan_fields.h"

namespace rehearse::strategies {
namespace {

using workload::Workload;

/// "nearest: tensor 2 or 4": the closest valid values below and above, up to `most`.
std::string nearest(std::string_view what, std::uint32_t value, std::uint32_t most,
                    const std::function<bool(std::uint32_t)>& valid) {
  std::string text;
  for (std::uint32_t below = std::min(value, most + 1); below-- > 1;)
    if (valid(below)) {
      text = fmt::format("nearest: {} {}", what, below);
      break;
    }
  for (std::uint32_t above = value + 1; above <= most; ++above)
    if (valid(above)) {
      text = text.empty() ? fmt::format("nearest: {} {}", what, above)
                          : fmt::format("{} or {}", text, above);
      break;
    }
  return text;
}

/// The largest degree that is considered as a neighbour.
constexpr std::uint32_t kMostDegree = 4096;

bool has_divided_op(const Workload& w) {
  for (const workload::Layer& layer : w.layers)
    for (const workload::Op& op : layer.forward)
      if (op.tensor != workload::Extent::kNone) return true;
  return false;
}

Status check_tensor(const Workload& w, const Plan& plan, std::uint32_t tensor) {
  if (tensor > 1 && !has_divided_op(w))
    return fail(fmt::format("tensor {} cannot divide any operation of this model", tensor), {},
                "nearest: tensor 1");
  // Attention by all-to-all divides heads by both.
  const std::uint32_t also = plan.context_exchange == ContextExchange::kAllToAll ? plan.context : 1;
  for (const Workload::Divisor& divisor : w.divided_by_tensor) {
    if (divides(tensor, divisor.count)) continue;
    return fail(fmt::format("tensor {} does not divide {} {}", tensor, divisor.count, divisor.name),
                {}, nearest("tensor", tensor, kMostDegree, [&](std::uint32_t t) {
                  for (const Workload::Divisor& d : w.divided_by_tensor)
                    if (!divides(t, d.count)) return false;
                  return true;
                }));
  }
  if (also > 1)
    for (const Workload::Divisor& divisor : w.divided_by_tensor)
      if (divisor.name == "heads" && !divides(tensor * also, divisor.count))
        return fail(fmt::format("tensor {} x context {} does not divide {} heads, as all_to_all "
                                "needs",
                                tensor, also, divisor.count),
                    {}, nearest("context", also, kMostDegree, [&](std::uint32_t c) {
                      return divides(tensor * c, divisor.count);
                    }));
  if (plan.sequence_parallel && tensor > 1 && w.tokens_per_sample > 0 &&
      !divides(tensor * plan.context, w.tokens_per_sample))
    return fail(
        fmt::format("sequence parallelism over tensor {} x context {} does not divide {} "
                    "tokens",
                    tensor, plan.context, w.tokens_per_sample));
  return {};
}

/// A step has an op for each pass of a stage; larger numbers are orders of magnitude beyond actual
/// training.
constexpr std::uint32_t kMostMicrobatches = 65'536;

Status check_batch(const Training& training, std::uint32_t data) {
  const auto wrong = [](std::string problem, std::string expected, std::string nearest) {
    return fail(Diagnostic{.key = "training",
                           .problem = std::move(problem),
                           .expected = std::move(expected),
                           .nearest = std::move(nearest)});
  };
  if (const double passes = training.global_batch / (data * training.microbatch);
      passes > kMostMicrobatches)
    return wrong(fmt::format("global_batch {} makes {:.0f} microbatches per data-parallel rank",
                             training.global_batch, passes),
                 fmt::format("at most {}", grouped(kMostMicrobatches)),
                 "a smaller global_batch, a larger microbatch or a larger data degree");
  if (divides(data * training.microbatch, training.global_batch)) return {};
  std::string other = nearest("data", data, kMostDegree, [&](std::uint32_t d) {
    return divides(d * training.microbatch, training.global_batch);
  });
  if (other.empty())
    other = nearest("microbatch", static_cast<std::uint32_t>(training.microbatch),
                    static_cast<std::uint32_t>(std::min(training.global_batch, 4096.0)),
                    [&](std::uint32_t b) { return divides(data * b, training.global_batch); });
  return wrong(fmt::format("global_batch {} is not a multiple of data {} x microbatch {}",
                           training.global_batch, data, training.microbatch),
               "", std::move(other));
}

Status check_schedule(const Workload& w, const Training& training, const Plan& plan) {
  const std::uint32_t p = stages_of(plan), v = plan.interleave;
  if (v > 1) {
    if (!plan.stages.empty()) return fail("interleave cannot be combined with `stages`");
    if (plan.schedule != Schedule::kInterleaved && plan.schedule != Schedule::k1f1b)
      return fail(fmt::format("interleave {} cannot be combined with schedule {}", v,
                              kScheduleNames[static_cast<int>(plan.schedule)]),
                  "schedule interleaved", "nearest: interleave 1");
    if (p == 1)
      return fail(fmt::format("interleave {} needs pipeline stages", v), "pipeline 2 or more",
                  "nearest: interleave 1");
  }
  const std::uint32_t shared = shared_layers(w, split_for(w, plan)), all = w.layer_count();
  // Blocks are interleaved evenly, if necessary with embedding and head; other splits may be
  // uneven.
  const bool evenly = plan.split.value_or(LayerSplit::kBlocks) == LayerSplit::kBlocks;
  const auto goes = [&](std::uint32_t chunks) {
    return !evenly ? chunks <= all
                   : divides(chunks, shared) || (!plan.split && divides(chunks, all));
  };
  if (!plan.stages.empty() && plan.split)
    return fail(fmt::format("split {} cannot be combined with `stages`",
                            kLayerSplitNames[static_cast<int>(*plan.split)]),
                "one of the two");
  if (plan.stages.empty()) {
    if (p > shared)
      return fail(fmt::format("pipeline {} for {} layers", p, shared),
                  "at least one layer per stage", fmt::format("nearest: pipeline {}", shared));
    if (v > 1 && !goes(p * v))
      return fail(fmt::format("pipeline {} x interleave {} {} {} layers", p, v,
                              evenly ? "does not divide" : "is more than", shared),
                  {},
                  nearest("interleave", v, shared, [&](std::uint32_t i) { return goes(p * i); }));
  }
  const std::uint32_t m = microbatches_of(training, plan);
  if (v > 1 && m % p != 0)
    return fail(fmt::format("interleaved schedule of {} microbatches on pipeline {}", m, p),
                "a multiple of the pipeline stages",
                nearest("pipeline", p, m,
                        [&](std::uint32_t s) { return s > 1 && m % s == 0 && goes(s * v); }));
  return {};
}

/// Whether tokens are routed to experts. Rows of tables, to which no token is routed, are divided
/// over any number of ranks.
bool is_routed(const Workload& w) { return w.experts_per_token > 0; }

/// Checks the division of experts over the ranks of a stage.
Status check_expert_degree(const Workload& w, const Plan& plan, std::uint32_t data,
                           std::uint32_t tensor, std::string_view where) {
  const std::uint32_t e = plan.expert, all = data * plan.context * tensor;
  if (const auto within = plan.expert_tensor; within && *within != 1 && *within != tensor)
    return fail(fmt::format("expert_tensor {} with tensor {}{}", *within, tensor, where),
                tensor == 1 ? "1" : fmt::format("1 or {}", tensor));
  if (plan.expert_tensor == 1U && tensor > 1) {
    if (!plan.sequence_parallel)
      return fail(fmt::format("expert_tensor 1 with tensor {}{} and all tokens on each rank",
                              tensor, where),
                  "sequence_parallel: true, which divides tokens among the ranks");
    if (divides(e, all)) return {};
    return fail(fmt::format("expert {} does not divide the {} ranks of data x context x tensor{}",
                            e, all, where));
  }
  if (divides(e, data)) return {};
  const auto valid = [&](std::uint32_t n) {
    return (!is_routed(w) || w.experts % n == 0) && data % n == 0;
  };
  return fail(fmt::format("expert {} does not divide data {}{}", e, data, where), {},
              is_routed(w) && tensor > 1 && plan.sequence_parallel && divides(e, all)
                  ? "nearest: expert_tensor 1"
                  : nearest("expert", e, w.experts, valid));
}

Status check_stages(const Workload& w, const Training& training, const Plan& plan) {
  std::uint32_t left = w.layer_count();
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const StagePlan& stage = plan.stages[s];
    const std::uint32_t takes = stage.layers == 0 ? left : stage.layers;
    const bool last = s + 1 == plan.stages.size();
    if (takes > left || takes == 0 || (last && takes != left))
      return fail(fmt::format("stage '{}' has {} layers, but {} remain", stage.name, takes, left),
                  {}, last ? fmt::format("nearest: layers {}", left) : "");
    left -= takes;
    TRY(check_tensor(w, plan, stage.tensor));
    const double samples = plan.stages[0].data * training.microbatch;
    if (!divides(stage.data, samples))
      return fail(fmt::format("stage '{}' with data {} receives {} samples at a time", stage.name,
                              stage.data, samples),
                  "a multiple of its ranks",
                  nearest("data", stage.data, kMostDegree,
                          [&](std::uint32_t d) { return divides(d, samples); }));
    TRY(check_expert_degree(w, plan, stage.data, stage.tensor,
                            fmt::format(" of stage '{}'", stage.name)));
  }
  return {};
}

Status check_experts(const Workload& w, const Plan& plan) {
  const std::uint32_t e = plan.expert;
  if (plan.expert_tensor && w.experts_per_token == 0)
    return fail(
        fmt::format("expert_tensor {} applies only to mixtures of experts", *plan.expert_tensor));
  if (e > 1 && w.experts == 0)
    return fail(fmt::format("expert {} applies only to models with experts", e), {},
                "nearest: expert 1");
  if (e > 1 && is_routed(w) && w.experts % e != 0)
    return fail(fmt::format("expert {} does not divide {} experts", e, w.experts), {},
                nearest("expert", e, w.experts, [&](std::uint32_t n) {
                  return w.experts % n == 0 && (!plan.stages.empty() || plan.data % n == 0);
                }));
  if (plan.stages.empty()) return check_expert_degree(w, plan, plan.data, plan.tensor, "");
  return {};
}

/// Checks the product of the degrees, which may exceed the range of rank numbers.
Status check_ranks(const Plan& plan) {
  double ranks = 0;
  for (const StagePlan& stage : plan.stages) ranks += 1.0 * stage.data * stage.tensor;
  if (plan.stages.empty()) ranks = 1.0 * plan.data * plan.tensor * plan.pipeline;
  ranks *= plan.context;
  const double most = plan_field("data").range.most;
  if (ranks <= most) return {};
  return fail(fmt::format("{:.0f} ranks", ranks),
              fmt::format("at most {}", grouped(static_cast<std::uint64_t>(most))));
}

Status check_placement(const Plan& plan) {
  if (plan.placement == Placement::kTensorDataPipeline || plan.stages.empty()) return {};
  return fail("placement stages_together cannot be combined with different degrees per stage",
              "one degree of data, tensor and context for all", "nearest: placement stages_apart");
}

bool shares_parameters(const Plan& plan) {
  const auto several = [](const StagePlan& s) { return s.data > 1; };
  return plan.context > 1 ||
         (plan.stages.empty() ? plan.data > 1 : std::ranges::any_of(plan.stages, several));
}

Status check_synchronization(const Plan& plan) {
  const bool servers = plan.synchronization == Synchronization::kParameterServer;
  const bool local = plan.synchronization == Synchronization::kLocalSgd;
  if (plan.zero > 0 && servers)
    return fail(
        fmt::format("zero {} cannot be combined with synchronization parameter_server", plan.zero),
        "servers already hold the optimizer states", "nearest: zero 0");
  if (plan.zero > 0 && local)
    return fail(fmt::format("zero {} cannot be combined with synchronization local_sgd", plan.zero),
                "between averages every rank has different parameters", "nearest: zero 0");
  const StateTiers& tiers = plan.tiers;
  if (servers && tiers.any())
    return fail("offload cannot be combined with synchronization parameter_server",
                "servers already hold the optimizer states");
  const bool gradients_away = tiers.gradients != Tier::kDevice;
  if (gradients_away && tiers.optimizer.away() == 0)
    return fail("gradients leave the device, but its optimizer updates the parameters",
                "optimizer_on host or nvme as well");
  if (gradients_away && local)
    return fail("offload gradients cannot be combined with synchronization local_sgd",
                "offload optimizer or none");
  if (gradients_away && plan.zero < 2 && shares_parameters(plan))
    return fail(fmt::format("offload gradients cannot be combined with zero {}", plan.zero),
                "gradients summed after the last backward pass are on the device until then",
                "nearest: zero 2");
  if (servers || local)
    for (const auto& [what, degree] : {std::pair{"context", plan.context}, {"expert", plan.expert}})
      if (degree > 1)
        return fail(fmt::format("{} {} with synchronization {}", what, degree,
                                kSynchronizationNames[static_cast<int>(plan.synchronization)]),
                    "all_reduce: its ranks need the same gradients in every step");
  std::uint32_t workers = plan.stages.empty() ? plan.data : plan.stages[0].data;
  for (const StagePlan& stage : plan.stages) workers = std::min(workers, stage.data);
  if (servers && plan.parameter_server.backup_workers >= workers)
    return fail(
        fmt::format("{} backup workers of data {}", plan.parameter_server.backup_workers, workers),
        "fewer than data");
  return {};
}

Status check_frozen(const Workload& w, const Training& training, const Plan& plan) {
  const bool in_4_bits = training.frozen_weights == workload::Frozen::kNf4;
  if (in_4_bits && training.lora_rank == 0)
    return fail("frozen_weights nf4 needs lora_rank",
                "a lora_rank above 0: without it no weights are frozen", "nearest: lora_rank 16");
  if (w.trained_parameters() == w.parameters()) return {};
  if (in_4_bits) {
    if (plan.tiers.weights.away() > 0)
      return fail(fmt::format("frozen_weights nf4 cannot be combined with weights_on {}",
                              kTierNames[static_cast<int>(plan.tiers.weights.tier)]),
                  "device", "nearest: device");
  }
  if (plan.synchronization == Synchronization::kParameterServer)
    return fail("lora_rank cannot be combined with synchronization parameter_server",
                "all_reduce or local_sgd: servers hold trained parameters alone",
                "nearest: all_reduce");
  if (plan.gather_weights == GatherWeights::kByTensor)
    return fail("lora_rank cannot be combined with gather_weights by_tensor", "by_layer",
                "nearest: by_layer");
  return {};
}

Status check_parts(const Training& training, const Plan& plan) {
  if (plan.microbatch_parts > 1) {
    if (!divides(plan.microbatch_parts, training.microbatch))
      return fail(fmt::format("microbatch_parts {} does not divide microbatch {}",
                              plan.microbatch_parts, training.microbatch),
                  {}, "nearest: microbatch_parts 1");
    if (plan.exchange_parts > 1)
      return fail(fmt::format("microbatch_parts {} cannot be combined with exchange_parts {}",
                              plan.microbatch_parts, plan.exchange_parts),
                  "one of the two: exchanges are among the collectives of a microbatch");
    if (plan.asynchronous_tensor)
      return fail(fmt::format("microbatch_parts {} cannot be combined with asynchronous_tensor",
                              plan.microbatch_parts),
                  "one of them: both hide the same collectives");
  }
  if (plan.exchange_parts > 1 && plan.overlap_experts)
    return fail(fmt::format("exchange_parts {} cannot be combined with overlap_experts",
                            plan.exchange_parts),
                "one of them: both hide the same exchanges");
  return {};
}

}  // namespace

bool divides(double part, double whole) {
  const double quotient = whole / part;
  return part > 0 && quotient >= 1 && std::abs(quotient - std::round(quotient)) < 1e-9 * quotient;
}

std::uint32_t stages_of(const Plan& plan) {
  return plan.stages.empty() ? plan.pipeline : static_cast<std::uint32_t>(plan.stages.size());
}

std::uint32_t microbatches_of(const Training& training, const Plan& plan) {
  const std::uint32_t data = plan.stages.empty() ? plan.data : plan.stages[0].data;
  return static_cast<std::uint32_t>(
      std::lround(training.global_batch / (data * training.microbatch)));
}

Status check_plan(const Workload& w, const Training& training, const Plan& plan) {
  TRY(check_ranges({training, plan}));
  TRY(check_ranks(plan));
  if (plan.stages.empty()) TRY(check_tensor(w, plan, plan.tensor));
  if (plan.context > 1 && w.tokens_per_sample == 0)
    return fail(fmt::format("context {} applies only to samples with tokens", plan.context), {},
                "nearest: context 1");
  if (plan.context > 1 && !divides(plan.context, w.tokens_per_sample))
    return fail(
        fmt::format("context {} does not divide {} tokens", plan.context, w.tokens_per_sample), {},
        nearest("context", plan.context, kMostDegree,
                [&](std::uint32_t c) { return divides(c, w.tokens_per_sample); }));
  TRY(check_synchronization(plan));
  TRY(check_frozen(w, training, plan));
  TRY(check_placement(plan));
  TRY(check_experts(w, plan));
  TRY(check_parts(training, plan));
  TRY(check_batch(training, plan.stages.empty() ? plan.data : plan.stages[0].data));
  TRY(check_stages(w, training, plan));
  return check_schedule(w, training, plan);
}

}  // namespace rehearse::strategies
