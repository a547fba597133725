// DeepSpeed: its JSON configuration (www.deepspeed.ai/docs/config-json, and the fields of
// deepspeed/runtime/zero/config.py; docs/concepts/planning.md names the commits).
#include <fmt/format.h>

#include "cli/output/json.h"
#include "cli/output/value.h"
#include "cli/planning/emit.h"
#include "strategies/check_plan.h"

namespace rehearse::cli {
namespace {

using strategies::Plan, strategies::Tier, workload::Dtype;

constexpr Framework kName = Framework::kDeepspeed;

/// The value at the key that DeepSpeed has for a field, mapping by mapping.
void put(Json& json, std::string_view field, Json value) {
  Json* at = &json;
  std::string_view path = strategies::launch_key(kName, field);
  for (std::size_t dot; (dot = path.find('.')) != std::string_view::npos;
       path.remove_prefix(dot + 1))
    at = &(*at)[path.substr(0, dot)];
  (*at)[path] = std::move(value);
}

Status check(const step::Spec& spec) {
  const Plan& plan = spec.plan;
  if (plan.pipeline > 1)
    return no_key_for(kName, fmt::format("pipeline {}", plan.pipeline),
                      "nearest: pipeline 1; stages are a PipelineModule in the model's code");
  if (plan.expert > 1)
    return no_key_for(kName, fmt::format("expert {}", plan.expert),
                      "nearest: expert 1; ep_size is set in the model's code");
  const strategies::StateTiers& tiers = plan.tiers;
  if (tiers.activations.away() > 0)
    return no_key_for(kName, "activations on another tier", "nearest: activations_on device");
  if (tiers.weights.away() > 0 && plan.zero != 3)
    return no_key_for(kName, fmt::format("weights on another tier with zero {}", plan.zero),
                      "nearest: zero 3");
  for (const Tier tier : {tiers.weights.tier, tiers.gradients, tiers.optimizer.tier})
    if (tier == Tier::kNvme)
      return no_key_for(kName, "state on nvme without the path of its drives", "nearest: host");
  if (tiers.gradients == Tier::kHost && plan.zero < 2)
    return no_key_for(kName, fmt::format("gradients on host with zero {}", plan.zero),
                      "nearest: zero 2");
  if (tiers.optimizer.away() > 0 && plan.zero == 0)
    return no_key_for(kName, "offload optimizer with zero 0", "nearest: zero 1");
  if ((tiers.optimizer.share < 1 && plan.zero != 3) || tiers.weights.share < 1)
    return no_key_for(kName, "a share of a state", "nearest: a share of 1");
  if (spec.training.dtype == Dtype::kFp8) return no_key_for(kName, "dtype fp8", "nearest: bf16");
  return {};
}

}  // namespace

Result<Emitted> emit_deepspeed(const Launch& launch) {
  const step::Spec& spec = launch.spec;
  const Plan& plan = spec.plan;
  TRY(check(spec));
  TRY(check_keys(kName, launch));
  const auto whole = [](double value) { return static_cast<std::uint64_t>(value); };
  Json json = Json::object();
  put(json, "global_batch", whole(spec.training.global_batch));
  put(json, "microbatch", whole(spec.training.microbatch));
  json["gradient_accumulation_steps"] = strategies::microbatches_of(spec.training, plan);
  put(json, "zero", plan.zero);
  Json& zero = json["zero_optimization"];
  if (plan.zero > 0) {
    put(json, "overlap_gradients", plan.overlap_gradients);
    put(json, "bucket", whole(plan.bucket.b() / 4));  // elements, where a plan counts bytes
    zero["contiguous_gradients"] = true;
  }
  if (plan.tiers.optimizer.away() > 0) {
    put(json, "offload", "cpu");
    zero["offload_optimizer"]["pin_memory"] = true;
    if (plan.tiers.optimizer.share < 1)
      zero["offload_optimizer"]["ratio"] = plan.tiers.optimizer.share;
  }
  if (plan.tiers.weights.away() > 0)
    zero["offload_param"] = {{"device", "cpu"}, {"pin_memory", true}};
  if (spec.training.dtype == Dtype::kBf16) json["bf16"] = {{"enabled", true}};
  if (spec.training.dtype == Dtype::kFp16) json["fp16"] = {{"enabled", true}};
  if (plan.tensor > 1) put(json, "tensor", plan.tensor);
  put(json, "optimizer", spec.training.optimizer == strategies::Optimizer::kAdam ? "AdamW" : "SGD");
  json["optimizer"]["params"] = {{"lr", 1e-4}};
  if (spec.training.optimizer == strategies::Optimizer::kMomentum)
    json["optimizer"]["params"]["momentum"] = 0.9;
  // ZeRO supports Adam. Other optimizers run only on explicit request, and not by its Adam on the
  // CPU.
  if (plan.zero > 0 && spec.training.optimizer != strategies::Optimizer::kAdam) {
    json["zero_allow_untested_optimizer"] = true;
    if (plan.tiers.optimizer.away() > 0) json["zero_force_ds_cpu_optimizer"] = false;
  }
  Emitted emitted;
  emitted.text = json_text(json);
  emitted.notes.push_back(launch.headline);
  emitted.notes.push_back(
      fmt::format("launch with: deepspeed --num_nodes {} --num_gpus {} "
                  "YOUR_SCRIPT --deepspeed_config FILE",
                  launch.cluster.nodes().size(), launch.cluster.nodes().front().devices.size()));
  if (spec.training.recompute != strategies::Recompute::kNone)
    emitted.notes.push_back(
        fmt::format("{} recomputation is enabled in the model's code, not in this file",
                    strategies::kRecomputeNames[static_cast<int>(spec.training.recompute)]));
  return emitted;
}

}  // namespace rehearse::cli
