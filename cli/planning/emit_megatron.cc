// Megatron-LM: a shell script that launches pretrain_gpt.py. The flags, their types and the rules
// between them are those of megatron/training/arguments.py (docs/concepts/planning.md names the
// commit).
#include <cmath>

#include <fmt/format.h>

#include "cli/planning/emit.h"
#include "strategies/layer_split.h"
#include "strategies/states.h"

namespace rehearse::cli {
namespace {

using strategies::Offload, strategies::Plan, strategies::Recompute, strategies::Schedule,
    strategies::Training, workload::Dtype;

constexpr Framework kName = Framework::kMegatron;

std::string_view flag(std::string_view field) { return strategies::launch_key(kName, field); }

class Flags {
 public:
  void add(std::string_view flag) { text_ += fmt::format("  {}\n", flag); }
  template <class T>
  void add(std::string_view flag, const T& value) {
    text_ += fmt::format("  {} {}\n", flag, value);
  }
  void add_if(bool is_so, std::string_view flag) {
    if (is_so) add(flag);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

Status check_schedule(const step::Spec& spec) {
  const Plan& plan = spec.plan;
  if (plan.pipeline > 1 && plan.schedule != Schedule::k1f1b &&
      plan.schedule != Schedule::kInterleaved)
    return no_key_for(
        kName,
        fmt::format("schedule {}", strategies::kScheduleNames[static_cast<int>(plan.schedule)]),
        "nearest: 1f1b or interleaved");
  const strategies::LayerSplit split = strategies::split_for(spec.workload, plan);
  if (split == strategies::LayerSplit::kFlops) return no_key_for(kName, "split flops");
  if (const std::uint32_t layers = strategies::shared_layers(spec.workload, split);
      layers % (plan.pipeline * plan.interleave) != 0)
    return no_key_for(kName, fmt::format("{} layers on {} equal chunks", layers,
                                         plan.pipeline * plan.interleave));
  return {};
}

/// NCCL_ALGO as NCCL 2.24 reads it: functions with their algorithms. Empty where no field names
/// one.
Result<std::string> nccl_algorithms(const Plan& plan) {
  struct Function {
    CollectiveKind kind;
    std::string_view name;
  };
  constexpr Function kFunctions[] = {{CollectiveKind::kAllReduce, "allreduce"},
                                     {CollectiveKind::kAllGather, "allgather"},
                                     {CollectiveKind::kReduceScatter, "reducescatter"}};
  std::string text;
  for (const Function& function : kFunctions) {
    const std::optional<Algorithm> algorithm = plan.collectives[function.kind];
    if (!algorithm) continue;
    std::string_view name;
    switch (*algorithm) {
      case Algorithm::kRing:
      case Algorithm::kTree:
      case Algorithm::kNvls:
      case Algorithm::kPat: name = to_string(*algorithm); break;
      case Algorithm::kNvlsTree: name = "nvlstree"; break;
      case Algorithm::kCollnetDirect: name = "collnetdirect"; break;
      default:
        return fail(fmt::format("{} has no name for {} {}", flag(to_string(function.kind)),
                                to_string(function.kind), to_string(*algorithm)),
                    {}, fmt::format("nearest: {} ring", to_string(function.kind)));
    }
    text += fmt::format("{}{}:{}", text.empty() ? "" : ";", function.name, name);
  }
  return text;
}

/// Fails where validate_args or the distributed optimizer would.
Status check_arguments(const step::Spec& spec, const workload::Transformer& model) {
  const Plan& plan = spec.plan;
  const bool sequence_parallel = plan.sequence_parallel && plan.tensor > 1;
  if (plan.context > 1 && model.sequence % (2 * plan.context) != 0)
    return no_key_for(
        kName, fmt::format("sequences of {} tokens on context {}", model.sequence, plan.context),
        "a sequence that is a multiple of 2 x context");
  if (plan.asynchronous_tensor && !sequence_parallel)
    return no_key_for(kName, "asynchronous_tensor without sequence parallelism",
                      "nearest: sequence_parallel true with tensor 2 or more");
  if (model.mixture && plan.tensor > 1 && !sequence_parallel)
    return no_key_for(kName, "experts and tensor parallelism without sequence parallelism",
                      "nearest: sequence_parallel true");
  if (plan.expert > 1 && spec.training.dtype == Dtype::kFp16)
    return no_key_for(kName, "expert parallelism in fp16", "nearest: dtype bf16");
  if (plan.zero > 0 && spec.training.optimizer != strategies::Optimizer::kAdam)
    return no_key_for(kName, fmt::format("ZeRO-{} with an optimizer other than Adam", plan.zero),
                      "nearest: zero 0, or adam");
  return {};
}

Status check(const step::Spec& spec) {
  const Plan& plan = spec.plan;
  TRY(check_schedule(spec));
  if (plan.zero >= 2 && plan.pipeline > 1)
    return no_key_for(kName, fmt::format("ZeRO-{} in a pipeline", plan.zero),
                      "nearest: zero 1, its distributed optimizer");
  if (plan.tiers.any() && (plan.tiers != tiers_of(Offload::kOptimizer) || plan.zero != 1))
    return no_key_for(kName, fmt::format("these tiers with zero {}", plan.zero),
                      "nearest: offload optimizer with zero 1");
  return {};
}

void add_parallelism(Flags& flags, const step::Spec& spec) {
  const Plan& plan = spec.plan;
  flags.add(flag("tensor"), plan.tensor);
  flags.add(flag("pipeline"), plan.pipeline);
  if (plan.interleave > 1) flags.add(flag("interleave"), plan.interleave);
  if (plan.pipeline > 1 &&
      strategies::split_for(spec.workload, plan) == strategies::LayerSplit::kLayers) {
    flags.add(flag("split"));
    flags.add("--account-for-loss-in-pipeline-split");
  }
  if (plan.context > 1) {
    flags.add(flag("context"), plan.context);
    flags.add(flag("context_exchange"),
              plan.context_exchange == strategies::ContextExchange::kRing ? "p2p" : "a2a");
  }
  if (plan.expert > 1) flags.add(flag("expert"), plan.expert);
  if (plan.expert_tensor) flags.add(flag("expert_tensor"), *plan.expert_tensor);
  flags.add_if(plan.sequence_parallel && plan.tensor > 1, flag("sequence_parallel"));
  flags.add_if(plan.asynchronous_tensor && plan.tensor > 1, flag("asynchronous_tensor"));
  flags.add_if(plan.placement == strategies::Placement::kTensorPipelineData, flag("placement"));
  if (plan.zero >= 2) {
    flags.add("--use-megatron-fsdp");
    flags.add("--data-parallel-sharding-strategy",
              plan.zero == 2 ? "optim_grads" : "optim_grads_params");
    flags.add("--no-gradient-accumulation-fusion");
    flags.add("--ckpt-format fsdp_dtensor");
  }
  flags.add_if(plan.zero >= 1, flag("zero"));
  flags.add_if(plan.overlap_gradients, flag("overlap_gradients"));
  flags.add_if(plan.overlap_gradients && plan.zero >= 1, "--overlap-param-gather");
  if (is_unusual(strategies::plan_field("bucket"), {spec.training, plan}))  // counts parameters
    flags.add(flag("bucket"),
              std::llround(plan.bucket.b() / strategies::summed_bytes(spec.training, plan)));
  if (plan.capacity_factor != 1) {
    flags.add(flag("capacity_factor"), plan.capacity_factor);
    flags.add("--moe-pad-expert-input-to-capacity");
  }
  if (plan.tiers == tiers_of(Offload::kOptimizer)) {
    flags.add(flag("offload"));
    flags.add("--use-precision-aware-optimizer");
  }
}

void add_training(Flags& flags, const Training& training) {
  flags.add(flag("microbatch"), training.microbatch);
  flags.add(flag("global_batch"), training.global_batch);
  if (training.recompute == Recompute::kFull) {
    flags.add(flag("recompute"), "full");
    flags.add("--recompute-method uniform");
    flags.add("--recompute-num-layers 1");
  } else if (training.recompute == Recompute::kSelective) {
    flags.add(flag("recompute"), "selective");
  }
  flags.add_if(training.dtype == Dtype::kBf16 || training.dtype == Dtype::kFp8, "--bf16");
  flags.add_if(training.dtype == Dtype::kFp16, "--fp16");
  flags.add_if(training.dtype == Dtype::kFp8, "--fp8-format hybrid");
  const bool adam = training.optimizer == strategies::Optimizer::kAdam;
  flags.add(flag("optimizer"), adam ? "adam" : "sgd");
  if (!adam)
    flags.add("--sgd-momentum", training.optimizer == strategies::Optimizer::kMomentum ? 0.9 : 0.0);
}

/// The mixture layers, as a Python list of 0 and 1 by layer; empty: all.
std::string layers_of_mixtures(const workload::Transformer& m) {
  const workload::Mixture& mixture = *m.mixture;
  if (mixture.first_dense == 0 && mixture.every == 1) return "";
  const std::uint32_t rest = m.layers - std::min(m.layers, mixture.first_dense);
  std::string list;
  const auto add = [&](const std::string& part) { list += (list.empty() ? "" : "+") + part; };
  if (mixture.first_dense > 0) add(fmt::format("[0]*{}", mixture.first_dense));
  if (mixture.every == 1) {
    add(fmt::format("[1]*{}", rest));
  } else {
    add(fmt::format("([0]*{}+[1])*{}", mixture.every - 1, rest / mixture.every));
    if (rest % mixture.every > 0) add(fmt::format("[0]*{}", rest % mixture.every));
  }
  return list;
}

void add_model(Flags& flags, const workload::Transformer& m, Dtype dtype) {
  flags.add("--num-layers", m.layers);
  flags.add("--hidden-size", m.hidden);
  flags.add("--num-attention-heads", m.heads);
  if (m.kv_heads > 0 && m.kv_heads != m.heads) {
    flags.add("--group-query-attention");
    flags.add("--num-query-groups", m.kv_heads);
  }
  if (m.head_size > 0 && m.head_size * m.heads != m.hidden) flags.add("--kv-channels", m.head_size);
  if (m.feed_forward > 0) flags.add("--ffn-hidden-size", m.feed_forward);
  flags.add("--seq-length", m.sequence);
  flags.add("--max-position-embeddings", std::max(m.sequence, m.position_table));
  flags.add("--vocab-size", m.vocabulary);
  flags.add("--tokenizer-type NullTokenizer");
  flags.add_if(m.gated, "--swiglu");
  if (m.norm == workload::Norm::kRms) flags.add("--normalization RMSNorm");
  if (m.positions == workload::Positions::kRotary) flags.add("--position-embedding-type rope");
  if (m.positions == workload::Positions::kNone) flags.add("--position-embedding-type none");
  flags.add_if(!m.tied_embedding, "--untie-embeddings-and-output-weights");
  flags.add_if(!m.linear_bias, "--disable-bias-linear");
  flags.add_if(!m.linear_bias && m.query_bias, "--add-qkv-bias");
  flags.add_if(m.query_norm, "--qk-layernorm");
  if (m.mixture) {
    flags.add("--num-experts", m.mixture->experts);
    flags.add("--moe-router-topk", m.mixture->per_token);
    flags.add("--moe-ffn-hidden-size", m.mixture->feed_forward);
    if (const std::string layers = layers_of_mixtures(m); !layers.empty())
      flags.add("--moe-layer-freq", fmt::format("'{}'", layers));
    flags.add("--moe-token-dispatcher-type alltoall");
    flags.add_if(dtype == Dtype::kBf16 || dtype == Dtype::kFp8, "--moe-grouped-gemm");
    if (m.mixture->shared > 0)
      flags.add("--moe-shared-expert-intermediate-size", m.mixture->shared);
  }
}

}  // namespace

Result<Emitted> emit_megatron(const Launch& launch) {
  const step::Spec& spec = launch.spec;
  TRY(check_keys(kName, launch));
  TRY(check(spec));
  if (!launch.model || !launch.model->causal || launch.model->image ||
      launch.model->decoder_layers > 0 || launch.model->latent)
    return fail("pretrain_gpt.py trains text decoders, and this workload is not described as one",
                "workload: {model: gpt, …} or a llama");
  TRY(check_arguments(spec, *launch.model));
  const std::string algorithms = TRY(nccl_algorithms(spec.plan));
  Flags parallel, training, model;
  add_parallelism(parallel, spec);
  add_training(training, spec.training);
  add_model(model, *launch.model, spec.training.dtype);
  if (!launch.dropout) {
    model.add("--attention-dropout 0");
    model.add("--hidden-dropout 0");
  }
  const std::size_t nodes = launch.cluster.nodes().size();
  Emitted emitted;
  if (!launch.model->gated && (launch.model->activation == workload::Activation::kRelu ||
                               launch.model->activation == workload::Activation::kSilu))
    emitted.notes.push_back(
        "Megatron-LM has no option for this activation: the launch file uses GELU");
  emitted.text = fmt::format(
      "#!/bin/bash\n"
      "# {7}\n"
      "# On each of {0} nodes, from the folder of Megatron-LM: NODE_RANK=… MASTER_ADDR=… {1}\n"
      "set -euo pipefail\n"
      "export CUDA_DEVICE_MAX_CONNECTIONS={2}\n{8}\n"
      "PARALLEL=(\n{3})\n"
      "TRAINING=(\n{4})\n"
      "MODEL=(\n{5})\n"
      "# Random tokens, for a trial. For your own data, replace --mock-data with --data-path.\n"
      "RUN=(\n  --mock-data\n  --train-iters \"${{TRAIN_ITERS:-20}}\"\n  --lr 1.0e-4\n"
      "  --log-interval 1\n  --eval-iters 0\n)\n\n"
      "torchrun --nproc_per_node {6} --nnodes {0} --node_rank \"${{NODE_RANK:-0}}\" \\\n"
      "  --master_addr \"${{MASTER_ADDR:-localhost}}\" --master_port \"${{MASTER_PORT:-6000}}\" "
      "\\\n"
      "  pretrain_gpt.py \"${{PARALLEL[@]}}\" \"${{TRAINING[@]}}\" \"${{MODEL[@]}}\" "
      "\"${{RUN[@]}}\"\n",
      nodes, "bash launch.sh", spec.plan.zero >= 2 ? 8 : 1, parallel.text(), training.text(),
      model.text(), launch.cluster.nodes().front().devices.size(), launch.headline,
      algorithms.empty() ? "" : fmt::format("export {}=\"{}\"\n", "NCCL_ALGO", algorithms));
  return emitted;
}

}  // namespace rehearse::cli
