#include "strategies/plan_fields.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/check.h"
#include "strategies/field_access.h"
#include "strategies/layer_split.h"
#include "strategies/states.h"

namespace rehearse::strategies {
namespace {

// Whether a field has any effect.

bool even_stages(const Candidate& c) { return c.plan.stages.empty(); }
bool divides_tensors(const Candidate& c) { return c.plan.tensor > 1 || !c.plan.stages.empty(); }
bool divides_context(const Candidate& c) { return c.plan.context > 1; }
bool divides_experts(const Candidate& c) { return c.plan.expert > 1; }
bool is_pipeline(const Candidate& c) { return c.plan.pipeline > 1; }
bool has_unnamed_tiers(const Candidate& c) { return !named_tiers().get(c).has_value(); }
bool has_adapters(const Candidate& c) { return c.training.lora_rank > 0; }
bool averages(const Candidate& c) { return c.plan.synchronization == Synchronization::kLocalSgd; }
bool has_servers(const Candidate& c) {
  return c.plan.synchronization == Synchronization::kParameterServer;
}

// The algorithms that a schedule (models/comm/schedule.h) supports without ranks of another role.
using AllReduceAlgorithm =
    AlgorithmOf<CollectiveKind::kAllReduce, Algorithm::kRing, Algorithm::kTree,
                Algorithm::kCollnetDirect, Algorithm::kNvls, Algorithm::kNvlsTree,
                Algorithm::kHalvingDoubling, Algorithm::kHierarchical>;
using AllGatherAlgorithm =
    AlgorithmOf<CollectiveKind::kAllGather, Algorithm::kRing, Algorithm::kNvls, Algorithm::kPat,
                Algorithm::kHalvingDoubling>;
using ReduceScatterAlgorithm =
    AlgorithmOf<CollectiveKind::kReduceScatter, Algorithm::kRing, Algorithm::kNvls, Algorithm::kPat,
                Algorithm::kHalvingDoubling>;
using AllToAllAlgorithm = AlgorithmOf<CollectiveKind::kAllToAll, Algorithm::kPairwise,
                                      Algorithm::kLinear, Algorithm::kTwoDimensional>;

constexpr ValueRange kShare = {0, 1, true};
/// The largest number of devices in a cluster.
constexpr ValueRange kDegree = {1, 131'072};
/// Samples of a step; the limit is a thousand times the largest published value.
constexpr ValueRange kSamples = {0, 1e9, true};

// Frameworks in the order of Framework.
constexpr Field<Candidate> kPlanFields[] = {
    {.name = "global_batch",
     .at = in<&Training::global_batch>(),
     .range = kSamples,
     .usual = "required",
     .meaning = "samples (sequences, images) per optimizer step",
     .launch = {"--global-batch-size", "train_batch_size", "training.global_batch_size"}},
    {.name = "dtype",
     .at = in<&Training::dtype>(workload::kDtypeNames),
     .meaning = "number format of matrix operands",
     .launch = {"--bf16, --fp16, --fp8-format", "bf16.enabled, fp16.enabled",
                "training.mixed_precision_param"}},
    {.name = "optimizer",
     .at = in<&Training::optimizer>(kOptimizerNames),
     .meaning = "`momentum` is SGD with momentum",
     .launch = {"--optimizer", "optimizer.type", ""}},
    {.name = "gradients",
     .at = in<&Training::gradients>(workload::kDtypeNames),
     .usual = "fp32; fp16 where training is in fp16 without ZeRO-3",
     .meaning = "number format of accumulated gradients and of their sums over ranks"},
    {.name = "accumulation",
     .at = in<&Training::accumulation>(kAccumulationNames),
     .meaning = "FP32 sums of 16-bit gradients: with `apart`, ranks also keep the "
                "16-bit ones for the whole step (nanotron, DeepSpeed in BF16)"},

    {.name = "data",
     .abbreviation = "dp",
     .at = in<&Plan::data>(),
     .range = kDegree,
     .meaning = "data-parallel degree",
     .said = Said::kDegree,
     .axis = axis<&Axes::data>(),
     .launch = {kUnwritten, kUnwritten, "parallelism.data_parallel_shard_degree"},
     .matters = even_stages},
    {.name = "tensor",
     .abbreviation = "tp",
     .at = in<&Plan::tensor>(),
     .range = kDegree,
     .meaning = "tensor-parallel degree",
     .said = Said::kDegree,
     .axis = axis<&Axes::tensor>(),
     .launch = {"--tensor-model-parallel-size", "tensor_parallel.autotp_size",
                "parallelism.tensor_parallel_degree"},
     .matters = even_stages},
    {.name = "pipeline",
     .abbreviation = "pp",
     .at = in<&Plan::pipeline>(),
     .range = kDegree,
     .meaning = "pipeline stages",
     .said = Said::kDegree,
     .axis = axis<&Axes::pipeline>(),
     .launch = {"--pipeline-model-parallel-size", "", "parallelism.pipeline_parallel_degree"},
     .matters = even_stages},
    {.name = "context",
     .abbreviation = "cp",
     .at = in<&Plan::context>(),
     .range = kDegree,
     .meaning = "context-parallel degree: each sequence is divided over that many ranks",
     .said = Said::kDegree,
     .axis = axis<&Axes::context>(),
     .launch = {"--context-parallel-size", "", "parallelism.context_parallel_degree"}},
    {.name = "expert",
     .abbreviation = "ep",
     .at = in<&Plan::expert>(),
     .range = kDegree,
     .meaning = "expert-parallel degree; divides `data`, or as `expert_tensor` says",
     .said = Said::kIfUnusual,
     .axis = axis<&Axes::expert>(),
     .launch = {"--expert-model-parallel-size", "", "parallelism.expert_parallel_degree"}},
    {.name = "expert_tensor",
     .at = in<&Plan::expert_tensor>(),
     .range = kDegree,
     .usual = "as `tensor`",
     .meaning = "tensor-parallel degree within experts, 1 or `tensor`; with 1 each rank has whole "
                "experts, and `expert` divides data × context × tensor",
     .launch = {"--expert-tensor-parallel-size", "", "parallelism.expert_tensor_parallel_degree"},
     .matters = divides_experts},
    {.name = "microbatch",
     .abbreviation = "mb",
     .at = in<&Training::microbatch>(),
     .range = kSamples,
     .meaning = "samples per data-parallel rank and pass",
     .said = Said::kAlways,
     .axis = axis<&Axes::microbatch>(),
     .launch = {"--micro-batch-size", "train_micro_batch_size_per_gpu",
                "training.local_batch_size"}},
    {.name = "interleave",
     .abbreviation = "vpp",
     .at = in<&Plan::interleave>(),
     .range = {1, 4'096},
     .meaning = "model chunks per stage",
     .said = Said::kIfUnusual,
     .axis = axis<&Axes::interleave>(),
     .launch = {"--num-virtual-stages-per-pipeline-rank", "",
                "parallelism.pipeline_parallel_layers_per_stage"},
     .matters = is_pipeline},
    {.name = "split",
     .at = in<&Plan::split>(kLayerSplitNames),
     .usual = "the one that gives equal chunks, else `blocks`",
     .meaning = "chunks have equal numbers of layers, excluding embedding and head (`blocks`) or "
                "including them (`layers`), or equal matrix operations (`flops`)",
     .launch = {"--account-for-embedding-in-pipeline-split", "",
                "parallelism.pipeline_parallel_first_stage_less_layers"},
     .matters = is_pipeline},
    {.name = "schedule",
     .at = in<&Plan::schedule>(kScheduleNames),
     .usual = "`1f1b`; `interleaved` with chunks",
     .meaning = "order of the passes of a stage",
     .said = Said::kIfUnusual,
     .words = "{}",
     .axis = axis<&Axes::schedule>(),
     .launch = {kUnwritten, "", "parallelism.pipeline_parallel_schedule"},
     // Chunks run in the interleaved order under both of its names.
     .matters = [](const Candidate& c) { return c.plan.pipeline > 1 && c.plan.interleave == 1; }},
    {.name = "zero",
     .at = in<&Plan::zero>(),
     .range = {0, 3},
     .meaning = "stage of ZeRO; 3 is FSDP",
     .said = Said::kIfUnusual,
     .words = "ZeRO-{}",
     .axis = axis<&Axes::zero>(),
     .launch = {"--use-distributed-optimizer", "zero_optimization.stage", kUnwritten}},
    {.name = "gather_weights",
     .at = in<&Plan::gather_weights>(kGatherWeightsNames),
     .meaning = "ZeRO-3 gathers a layer's weights at once and ahead, or each matrix when a pass "
                "needs it (DeepSpeed in 2021)",
     .said = Said::kIfUnusual,
     .words = "weights gathered {}",
     .matters = [](const Candidate& c) { return c.plan.zero == 3; }},
    {.name = "recompute",
     .at = in<&Training::recompute>(kRecomputeNames),
     .meaning =
         "activations recomputed in backward: those of attention scores (`selective`), all, or all "
         "of the fewest layers with which each stage fits (`as_needed`)",
     .said = Said::kIfUnusual,
     .words = "{} recomputation",
     .axis = axis<&Axes::recompute>(),
     .launch = {"--recompute-granularity", kUnwritten, "activation_checkpoint.mode"}},
    {.name = "lora_rank",
     .at = in<&Training::lora_rank>(),
     .range = {0, 65'536},
     .meaning = "rank of low-rank adapters (LoRA), which alone are trained; 0: all weights are",
     .said = Said::kIfUnusual,
     .words = "LoRA of rank {}",
     .launch = {"", "", ""}},
    {.name = "lora_targets",
     .at = in<&Training::lora_targets>(workload::kAdaptedNames),
     .meaning = "products of a block that get adapters: those around attention, the others, or all",
     .matters = has_adapters},
    {.name = "frozen_weights",
     .at = in<&Training::frozen_weights>(workload::kFrozenNames),
     .meaning = "number format of the weights that adapters leave frozen: as if they were trained, "
                "or matrices of blocks in 4 bits (QLoRA)",
     .said = Said::kIfUnusual,
     .words = "frozen weights {}",
     .matters = has_adapters},
    {.name = "offload",
     .at = named_tiers(),
     .meaning = "state that is kept in host memory; with `gradients` or `weights`, those of the "
                "optimizer too; the next keys have more choices",
     .said = Said::kIfUnusual,
     .words = "{} offloaded",
     .axis = axis<&Axes::offload>(),
     .launch = {"--optimizer-cpu-offload", "zero_optimization.offload_optimizer.device", ""},
     .matters = [](const Candidate& c) { return !has_unnamed_tiers(c); }},
    {.name = "weights_on",
     .at = KeptOf<&StateTiers::weights>::tier(),
     .meaning = "where weights are kept while no op uses them",
     .said = Said::kIfUnusual,
     .words = "weights on {}",
     .matters = has_unnamed_tiers},
    {.name = "gradients_on",
     .at = {.section = Section::kPlan,
            .kind = FieldKind::kChoice,
            .choices = kTierNames,
            .get = [](const Candidate& c) -> FieldValue {
              return static_cast<double>(c.plan.tiers.gradients);
            },
            .set = [](Candidate& c, double at) { c.plan.tiers.gradients = static_cast<Tier>(at); }},
     .meaning = "where gradients of the parameters that the host updates are summed and kept",
     .said = Said::kIfUnusual,
     .words = "gradients on {}",
     .matters = has_unnamed_tiers},
    {.name = "optimizer_on",
     .at = KeptOf<&StateTiers::optimizer>::tier(),
     .meaning = "where the optimizer's states are kept; the host updates the parameters of those "
                "that are not on the device",
     .said = Said::kIfUnusual,
     .words = "optimizer on {}",
     .matters = has_unnamed_tiers},
    {.name = "activations_on",
     .at = KeptOf<&StateTiers::activations>::tier(),
     .meaning = "where saved activations are kept between forward and backward",
     .said = Said::kIfUnusual,
     .words = "activations on {}",
     .matters = has_unnamed_tiers},
    {.name = "weights_away",
     .at = KeptOf<&StateTiers::weights>::share(),
     .range = kShare,
     .meaning = "share of the weights that is on `weights_on`; the rest is on the device",
     .matters = has_unnamed_tiers},
    {.name = "optimizer_away",
     .at = KeptOf<&StateTiers::optimizer>::share(),
     .range = kShare,
     .meaning = "the same for the optimizer's states, and with them for gradients",
     .matters = has_unnamed_tiers},
    {.name = "activations_away",
     .at = KeptOf<&StateTiers::activations>::share(),
     .range = kShare,
     .meaning = "the same for saved activations",
     .matters = has_unnamed_tiers},
    {.name = "placement",
     .at = in<&Plan::placement>(kPlacementNames),
     .meaning = "rank order: adjacent ranks are of one stage (`stages_apart`), or are the stages "
                "of one data rank (`stages_together`)",
     .said = Said::kIfUnusual,
     .words = "stages together",
     .axis = axis<&Axes::placement>(),
     .launch = {"--use-tp-pp-dp-mapping", "", ""},
     .matters = is_pipeline},
    {.name = "sequence_parallel",
     .at = in<&Plan::sequence_parallel>(),
     .meaning = "norms and dropout are divided by the tensor degree too",
     .said = Said::kIfUnusual,
     .words = "sequence parallel",
     .axis = axis<&Axes::sequence_parallel>(),
     .launch = {"--sequence-parallel", "", kUnwritten},
     .matters = divides_tensors},
    {.name = "overlap_tensor",
     .at = in<&Plan::overlap_tensor>(),
     .meaning = "sums of inputs' gradients over tensor ranks run during the products for the "
                "gradients of weights; false for Megatron-LM until the end of 2021",
     .said = Said::kIfUnusual,
     .words = "tensor-parallel sums not overlapped",
     .matters = divides_tensors},
    {.name = "asynchronous_tensor",
     .at = in<&Plan::asynchronous_tensor>(),
     .meaning = "tensor-parallel collectives run in pieces during their matrix operations",
     .said = Said::kIfUnusual,
     .words = "asynchronous tensor parallelism",
     .launch = {"--tp-comm-overlap", "", "parallelism.enable_async_tensor_parallel"},
     .matters = divides_tensors},
    {.name = "microbatch_parts",
     .at = in<&Plan::microbatch_parts>(),
     .range = {1, 64},
     .meaning = "[parts](../concepts/parts.md) of a microbatch that take turns: collectives of one "
                "run while others compute",
     .said = Said::kIfUnusual},
    {.name = "quantised_gathers",
     .at = in<&Plan::quantised_gathers>(),
     .meaning = "tensor parallelism gathers operands of FP8 products in 8 bits; false if each row "
                "has a scale",
     .matters =
         [](const Candidate& c) {
           return divides_tensors(c) && c.training.dtype == workload::Dtype::kFp8;
         }},
    {.name = "overlap_gradients",
     .at = in<&Plan::overlap_gradients>(),
     .meaning = "gradients are reduced during backward, in buckets; otherwise after it",
     .said = Said::kIfUnusual,
     .words = "gradients reduced after backward",
     .launch = {"--overlap-grad-reduce", "zero_optimization.overlap_comm", ""}},
    {.name = "bucket",
     .at = in<&Plan::bucket>(),
     .range = {1, 0x1p40},
     .meaning = "size of a bucket of gradients",
     .launch = {"--ddp-bucket-size", "zero_optimization.reduce_bucket_size", ""},
     .matters = [](const Candidate& c) { return c.plan.overlap_gradients || c.plan.zero > 0; }},
    {.name = "compression",
     .at = in<&Plan::compression>(),
     .range = {0, 1, true},
     .meaning = "share of the gradients that is sent; 0.01 keeps one in a hundred",
     .said = Said::kIfUnusual},
    {.name = "context_exchange",
     .at = in<&Plan::context_exchange>(kContextExchangeNames),
     .meaning = "how attention to a divided sequence gets its keys and values",
     .said = Said::kIfUnusual,
     .launch = {"--cp-comm-type", "", ""},
     .matters = divides_context},
    {.name = "context_balanced",
     .at = in<&Plan::context_balanced>(),
     .meaning = "causal attention is balanced over the ranks of a ring; otherwise the last rank "
                "has the most",
     .matters = divides_context},
    {.name = "expert_exchange",
     .at = in<&Plan::expert_exchange>(kExpertExchangeNames),
     .meaning =
         "data exchanged by mixture layers: [expert parallel](../concepts/expert-parallel.md)",
     .said = Said::kIfUnusual,
     .matters = divides_experts},
    {.name = "overlap_experts",
     .at = in<&Plan::overlap_experts>(),
     .meaning = "exchanges of tokens run while other microbatches compute",
     .said = Said::kIfUnusual,
     .words = "expert exchanges overlapped",
     .matters = divides_experts},
    {.name = "exchange_parts",
     .at = in<&Plan::exchange_parts>(),
     .range = {1, 64},
     .meaning = "[parts](../concepts/parts.md) of an exchange of tokens: one is sent while the "
                "experts compute another",
     .said = Said::kIfUnusual,
     .matters = divides_experts},
    {.name = "capacity_factor",
     .at = in<&Plan::capacity_factor>(),
     .range = {0, 1'000, true},
     .meaning = "expert capacity ÷ an even share of tokens: missing tokens are padded, excess ones "
                "dropped; 1: no limit",
     .said = Said::kIfUnusual,
     .launch = {"--moe-expert-capacity-factor", "", ""}},
    {.name = "expert_imbalance",
     .at = in<&Plan::expert_imbalance>(),
     .range = {1, 10'000},
     .meaning = "load of the busiest rank's experts ÷ the mean, without a capacity",
     .launch = {kUnwritten, kUnwritten, kUnwritten}},
    {.name = "synchronization",
     .at = in<&Plan::synchronization>(kSynchronizationNames),
     .meaning = "how data-parallel ranks agree on parameters",
     .said = Said::kIfUnusual,
     .words = "{}"},
    {.name = "local_steps",
     .at = in<&Plan::local_steps>(),
     .range = {1, 1'000'000},
     .meaning = "steps between two averages of the parameters, with `local_sgd`",
     .said = Said::kIfUnusual,
     .matters = averages},

    {.name = "all_reduce",
     .at = AllReduceAlgorithm::access(),
     .meaning =
         "[algorithm](../concepts/simulate.md#fidelity) of all-reduces; `automatic` is NCCL's "
         "choice by size where a calibration covers the group, else `ring`",
     .said = Said::kIfUnusual,
     .axis = AllReduceAlgorithm::axis<&Axes::all_reduce>(),
     .launch = {"NCCL_ALGO", "", ""}},
    {.name = "all_gather",
     .at = AllGatherAlgorithm::access(),
     .meaning = "the same for all-gathers",
     .said = Said::kIfUnusual,
     .axis = AllGatherAlgorithm::axis<&Axes::all_gather>(),
     .launch = {"NCCL_ALGO", "", ""}},
    {.name = "reduce_scatter",
     .at = ReduceScatterAlgorithm::access(),
     .meaning = "the same for reduce-scatters",
     .said = Said::kIfUnusual,
     .axis = ReduceScatterAlgorithm::axis<&Axes::reduce_scatter>(),
     .launch = {"NCCL_ALGO", "", ""}},
    {.name = "all_to_all",
     .at = AllToAllAlgorithm::access(),
     .meaning = "the same for exchanges of tokens and of sequences; `automatic` posts all messages "
                "at once, as NCCL does",
     .said = Said::kIfUnusual,
     .axis = AllToAllAlgorithm::axis<&Axes::all_to_all>(),
     .matters = [](const Candidate& c) { return divides_experts(c) || divides_context(c); }},

    {.name = "servers",
     .at = in<&ParameterServer::servers>(),
     .range = kDegree,
     .meaning = "ranks that hold parameters, numbered after all workers",
     .said = Said::kIfUnusual,
     .matters = has_servers},
    {.name = "asynchronous",
     .at = {
         .section = Section::kParameterServer,
         .kind = FieldKind::kFlag,
         .get = [](const Candidate& c) -> FieldValue {
           return c.plan.parameter_server.staleness ? 0.0 : 1.0;
         },
         .set =
             [](Candidate& c, double value) {
               std::optional<std::uint32_t>& staleness = c.plan.parameter_server.staleness;
               if (value != 0)
                 staleness.reset();
               else
                 staleness = staleness.value_or(0);
             }},
     .meaning = "workers never wait for each other, except as `staleness` requires",
     .said = Said::kIfUnusual,
     .words = "asynchronous",
     .matters = has_servers},
    {.name = "staleness",
     .at = in<&ParameterServer::staleness>(),
     .range = {0, 1'000'000},
     .usual = "0; unbounded with `asynchronous`",
     .meaning = "number of steps that a worker may be ahead of the slowest",
     .said = Said::kIfUnusual,
     .matters = has_servers},
    {.name = "backup_workers",
     .at = in<&ParameterServer::backup_workers>(),
     .range = {0, 131'072},
     .meaning = "number of gradients per step that may arrive too late",
     .said = Said::kIfUnusual,
     .matters = has_servers},
};

constexpr Field<StagePlan> kStageFields[] = {
    {.name = "layers",
     .at = in_stage<&StagePlan::layers>(),
     .range = {0, 1'000'000},
     .usual = "all remaining layers",
     .meaning = "layers of the stage, embedding and head counted too"},
    {.name = "data",
     .at = in_stage<&StagePlan::data>(),
     .range = kDegree,
     .meaning = "data-parallel degree of the stage"},
    {.name = "tensor",
     .at = in_stage<&StagePlan::tensor>(),
     .range = kDegree,
     .meaning = "tensor-parallel degree of the stage"},
    {.name = "recompute",
     .at = in_stage<&StagePlan::recompute>(std::span(kRecomputeNames).first<3>()),
     .usual = "as `training` says",
     .meaning = "activations of the stage that are recomputed in backward"},
};

}  // namespace

std::span<const Field<Candidate>> plan_fields() { return kPlanFields; }
std::span<const Field<StagePlan>> stage_fields() { return kStageFields; }

const Field<Candidate>& plan_field(std::string_view name) {
  const auto* found = std::ranges::find(kPlanFields, name, &Field<Candidate>::name);
  REHEARSE_CHECK(found != std::end(kPlanFields), "no field '{}'", name);
  return *found;
}

bool is_unusual(const Field<Candidate>& field, const Candidate& candidate) {
  static const Candidate usual;
  return (field.matters == nullptr || field.matters(candidate)) &&
         field.at.get(candidate) != field.at.get(usual);
}

std::string_view launch_key(Framework framework, std::string_view field) {
  const std::string_view key = plan_field(field).launch[static_cast<std::size_t>(framework)];
  REHEARSE_CHECK(!key.empty() && key != kUnwritten && key.find(',') == std::string_view::npos,
                 "'{}' must have exactly one key", field);
  return key;
}

Candidate resolved(const workload::Workload& workload, Candidate candidate) {
  auto& [training, plan] = candidate;
  training.gradients = gradient_dtype(training, plan);
  plan.expert_tensor = plan.expert_tensor.value_or(plan.tensor);
  plan.split = split_for(workload, plan);
  return candidate;
}

}  // namespace rehearse::strategies
