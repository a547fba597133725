// torchtitan: its TOML configuration, as releases up to 0.2 read it (torchtitan/config/
// job_config.py; docs/concepts/planning.md names the commits). Later releases are configured
// in Python.
#include <fmt/format.h>

#include "cli/planning/emit.h"
#include "strategies/layer_split.h"

namespace rehearse::cli {
namespace {

using strategies::Plan, strategies::Schedule, workload::Dtype;

constexpr Framework kTorchtitan = Framework::kTorchtitan;

/// The line of the key that torchtitan has for a field, in the section that is open.
template <class T>
void add(std::string& text, std::string_view field, const T& value) {
  const std::string_view path = strategies::launch_key(kTorchtitan, field);
  text += fmt::format("{} = {}\n", path.substr(path.find('.') + 1), value);
}

/// Sizes that torchtitan has by name.
struct Flavor {
  std::string_view model, flavor;
  std::uint32_t hidden, layers;
};
constexpr Flavor kFlavors[] = {
    {"llama3", "8B", 4096, 32}, {"llama3", "70B", 8192, 80}, {"llama3", "405B", 16384, 126}};

const Flavor* flavor_of(const std::optional<workload::Transformer>& model) {
  if (!model || !model->gated || model->mixture) return nullptr;
  for (const Flavor& flavor : kFlavors)
    if (flavor.hidden == model->hidden && flavor.layers == model->layers) return &flavor;
  return nullptr;
}

std::string_view schedule_of(const Plan& plan) {
  if (plan.interleave > 1) return "Interleaved1F1B";
  return plan.schedule == Schedule::kGpipe ? "GPipe" : "1F1B";
}

Status check_torchtitan(const step::Spec& spec) {
  const Plan& plan = spec.plan;
  if (plan.zero != 3 && plan.data * plan.context > 1)
    return no_key_for(kTorchtitan, fmt::format("zero {} with data {}", plan.zero, plan.data),
                      "nearest: zero 3, implemented by FSDP");
  if (plan.pipeline > 1 &&
      (plan.schedule == Schedule::kZeroBubble || plan.schedule == Schedule::kShifted))
    return no_key_for(
        kTorchtitan,
        fmt::format("schedule {}", strategies::kScheduleNames[static_cast<int>(plan.schedule)]),
        "nearest: 1f1b, interleaved or gpipe");
  if (plan.tensor > 1 && !plan.sequence_parallel)
    return no_key_for(kTorchtitan, "tensor parallelism without sequence parallelism",
                      "nearest: sequence_parallel true");
  if (spec.training.dtype == Dtype::kFp16)
    return no_key_for(kTorchtitan, "dtype fp16", "nearest: bf16");
  if (strategies::split_for(spec.workload, plan) == strategies::LayerSplit::kFlops)
    return no_key_for(kTorchtitan, "split flops");
  return {};
}

/// Layers of a chunk, embedding and head counted where the plan counts them.
std::uint32_t layers_per_chunk(const step::Spec& spec) {
  const std::uint32_t chunks = spec.plan.pipeline * spec.plan.interleave;
  const std::uint32_t shared =
      strategies::shared_layers(spec.workload, strategies::split_for(spec.workload, spec.plan));
  return (shared + chunks - 1) / chunks;
}

/// Fails where its ParallelDims or pipeline_llm would.
Status check_degrees(const step::Spec& spec, const std::optional<workload::Transformer>& model) {
  const Plan& plan = spec.plan;
  if (const std::uint32_t divisor = plan.tensor * plan.context * 2;
      plan.tensor * plan.context > 1 && model && model->sequence % divisor != 0)
    return no_key_for(kTorchtitan,
                      fmt::format("sequences of {} tokens on tensor {} x context {}",
                                  model->sequence, plan.tensor, plan.context),
                      fmt::format("a sequence that is a multiple of {}", divisor));
  const std::uint32_t borrowed =
      plan.context * (plan.expert_tensor.value_or(plan.tensor) == 1 ? plan.tensor : 1);
  if (plan.expert > 1 && plan.expert % borrowed != 0)
    return no_key_for(kTorchtitan,
                      fmt::format("expert {} with {} ranks of context and tensor in its groups",
                                  plan.expert, borrowed),
                      fmt::format("expert a multiple of {}", borrowed));
  if (plan.pipeline > 1) {
    const std::uint32_t chunks = plan.pipeline * plan.interleave, each = layers_per_chunk(spec);
    const std::uint32_t shared =
        strategies::shared_layers(spec.workload, strategies::split_for(spec.workload, plan));
    if ((shared + each - 1) / each != chunks)
      return no_key_for(kTorchtitan, fmt::format("{} layers on {} chunks", shared, chunks));
  }
  return {};
}

}  // namespace

Result<Emitted> emit_torchtitan(const Launch& launch) {
  const step::Spec& spec = launch.spec;
  const Plan& plan = spec.plan;
  const strategies::Training& training = spec.training;
  TRY(check_keys(kTorchtitan, launch));
  TRY(check_torchtitan(spec));
  TRY(check_degrees(spec, launch.model));
  Emitted emitted;
  std::string& text = emitted.text;
  const std::size_t nodes = launch.cluster.nodes().size();
  text = fmt::format(
      "# {3}\n"
      "# On each of {0} nodes: torchrun --nproc_per_node {1} --nnodes {2} --rdzv_backend c10d \\\n"
      "#   --rdzv_endpoint $MASTER_ADDR:29500 -m torchtitan.train --job.config_file FILE\n",
      nodes, launch.cluster.nodes().front().devices.size(), nodes, launch.headline);
  const Flavor* flavor = flavor_of(launch.model);
  if (flavor == nullptr)
    emitted.notes.push_back(
        "torchtitan defines models and sizes in its code: set name and flavor in the file");
  else
    text +=
        fmt::format("\n[model]\nname = \"{}\"\nflavor = \"{}\"\n", flavor->model, flavor->flavor);
  const double local = plan.pipeline > 1 ? training.global_batch / plan.data : training.microbatch;
  text += "\n[training]\n";
  add(text, "microbatch", fmt::format("{:.0f}", local));
  add(text, "global_batch", fmt::format("{:.0f}", training.global_batch));
  if (launch.model) text += fmt::format("seq_len = {}\n", launch.model->sequence);
  text += "steps = 20\n";
  const bool single = training.dtype == Dtype::kFp32 || training.dtype == Dtype::kTf32;
  add(text, "dtype", single ? "\"float32\"" : "\"bfloat16\"");
  if (training.dtype == Dtype::kFp8)
    emitted.notes.push_back(
        "fp8 matrix products need a converter: [model] converters = [\"float8\"]");
  text += "\n[parallelism]\ndata_parallel_replicate_degree = 1\n";
  add(text, "data", plan.data);
  add(text, "tensor", plan.tensor);
  add(text, "context", plan.context);
  // Keys and values go around a ring; its alternative gathers all of them at once.
  if (plan.context > 1) text += "context_parallel_rotate_method = \"alltoall\"\n";
  add(text, "pipeline", plan.pipeline);
  if (plan.pipeline > 1) {
    const bool layers =
        strategies::split_for(spec.workload, plan) == strategies::LayerSplit::kLayers;
    add(text, "schedule", fmt::format("\"{}\"", schedule_of(plan)));
    text += fmt::format("pipeline_parallel_microbatch_size = {:.0f}\n", training.microbatch);
    add(text, "interleave", layers_per_chunk(spec));
    // Layers that embedding and head replace.
    add(text, "split", layers ? 1 : 0);
    text += fmt::format("pipeline_parallel_last_stage_less_layers = {}\n", layers ? 1 : 0);
  }
  if (plan.expert > 1) {
    add(text, "expert", plan.expert);
    if (plan.tensor > 1) add(text, "expert_tensor", plan.expert_tensor.value_or(plan.tensor));
  }
  if (plan.asynchronous_tensor) add(text, "asynchronous_tensor", "true");
  text += "\n[activation_checkpoint]\n";
  add(text, "recompute",
      fmt::format("\"{}\"", strategies::kRecomputeNames[static_cast<int>(training.recompute)]));
  if (training.recompute == strategies::Recompute::kSelective)
    text += "selective_ac_option = \"op\"\n";
  // Asynchronous tensor parallelism is done by the compiler.
  if (plan.asynchronous_tensor) text += "\n[compile]\nenable = true\n";
  return emitted;
}

}  // namespace rehearse::cli
