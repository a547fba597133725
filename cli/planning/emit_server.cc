#include "cli/planning/emit_server.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/planning/setting_fields.h"

namespace rehearse::cli {
namespace {

using serving::CacheFormat, serving::ServingPlan, serving::Weights;

std::string with_dashes(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', '-');
  return text;
}

class Command {
 public:
  explicit Command(std::string_view program) : text_(program) {}
  void add(std::string_view flag, std::string_view value = "") {
    text_ += fmt::format(" \\\n  --{}{}{}", flag, value.empty() ? "" : " ", value);
  }
  void degree(std::string_view flag, std::uint32_t value) {
    if (value > 1) add(flag, std::to_string(value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Whether the server makes the format of its weights while it loads those that are published.
bool quantises_while_loading(const serving::Deployment& d) {
  return d.precision.weights == Weights::kFp8 && d.model.published == Weights::kBf16;
}

/// The part of a server in the work on a request.
enum class Role : std::uint8_t { kAll, kPrefill, kDecode };

/// Whether attention replicas share their experts.
bool shares_experts(const ServingPlan& plan) { return plan.data > 1 && plan.expert > 1; }

/// vLLM: switches are "--x" or "--no-x".
std::string vllm(const ServeFile& job, const std::vector<ServerFlag>& flags, Role role) {
  const ServingPlan& plan = job.deployment.plan;
  Command command("exec vllm serve \"$MODEL\"");
  command.degree("tensor-parallel-size", plan.tensor);
  command.degree("pipeline-parallel-size", plan.pipeline);
  command.degree("data-parallel-size", plan.data);
  command.degree("decode-context-parallel-size", plan.context);
  if (role != Role::kAll)
    command.add("kv-transfer-config", R"('{"kv_connector":"NixlConnector","kv_role":"kv_both"}')");
  if (plan.expert > 1) command.add("enable-expert-parallel");
  if (quantises_while_loading(job.deployment)) command.add("quantization", "fp8");
  if (job.deployment.precision.cache == CacheFormat::kFp8) command.add("kv-cache-dtype", "fp8");
  for (const ServerFlag& flag : flags) {
    const std::string name = with_dashes(flag.name);
    if (flag.value == "true" || flag.value == "false")
      command.add((flag.value == "true" ? "" : "no-") + name);
    else
      command.add(name, flag.value);
  }
  return command.text();
}

/// SGLang: a switch is there or not. With attention replicas that share experts, the tensor degree and
/// the limit of requests count all of them.
std::string sglang(const ServeFile& job, const std::vector<ServerFlag>& flags, Role role) {
  const ServingPlan& plan = job.deployment.plan;
  const bool shares = shares_experts(plan);
  Command command("exec python3 -m sglang.launch_server --model-path \"$MODEL\"");
  command.degree("tp-size", shares ? plan.tensor * plan.data : plan.tensor);
  command.degree("pp-size", plan.pipeline);
  command.degree("dp-size", plan.data);
  command.degree("ep-size", plan.expert);
  if (shares) command.add("enable-dp-attention");
  if (role != Role::kAll) {
    command.add("disaggregation-mode", role == Role::kPrefill ? "prefill" : "decode");
    command.add("disaggregation-transfer-backend", "nixl");
  }
  if (quantises_while_loading(job.deployment)) command.add("quantization", "fp8");
  if (job.deployment.precision.cache == CacheFormat::kFp8)
    command.add("kv-cache-dtype", "fp8_e4m3");
  for (const ServerFlag& flag : flags) {
    const std::string name = with_dashes(flag.name);
    if (flag.value == "true")
      command.add(name);
    else if (shares && flag.name == "max_running_requests")
      command.add(name, std::to_string(job.rules.most_rows * plan.data));
    else if (flag.value != "false")
      command.add(name, flag.value);
  }
  return command.text();
}

/// TensorRT-LLM: what has no option is in a file of options.
std::string trtllm(const ServeFile& job, const std::vector<ServerFlag>& flags, Role role) {
  const ServingPlan& plan = job.deployment.plan;
  const bool shares = shares_experts(plan);
  Command command("exec trtllm-serve \"$MODEL\"");
  command.degree("tp_size", shares ? plan.data : plan.tensor);
  command.degree("pp_size", plan.pipeline);
  command.degree("ep_size", plan.expert);
  std::string top, cache, scheduler;
  if (shares) top += "enable_attention_dp: true\n";
  if (role != Role::kAll) top += "cache_transceiver_config:\n  backend: DEFAULT\n";
  // Servers of prompts run without the overlap scheduler.
  if (role == Role::kPrefill) top += "disable_overlap_scheduler: true\n";
  if (job.deployment.precision.cache == CacheFormat::kFp8) cache += "  dtype: fp8\n";
  for (const ServerFlag& flag : flags) {
    if (flag.name == "free_gpu_memory_fraction")
      command.add("kv_cache_free_gpu_memory_fraction", flag.value);
    else if (flag.name == "enable_block_reuse" || flag.name == "tokens_per_block")
      cache += fmt::format("  {}: {}\n", flag.name, flag.value);
    else if (flag.name == "capacity_scheduler_policy") {
      std::string policy = flag.value;
      std::ranges::transform(policy, policy.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
      });
      scheduler += fmt::format("  {}: {}\n", flag.name, policy);
    } else if (role == Role::kPrefill && flag.name == "disable_overlap_scheduler")
      continue;
    else if (flag.value == "true" || flag.value == "false")
      top += fmt::format("{}: {}\n", flag.name, flag.value);
    else
      command.add(flag.name, flag.value);
  }
  std::string file = top;
  if (!cache.empty()) file += "kv_cache_config:\n" + cache;
  if (!scheduler.empty()) file += "scheduler_config:\n" + scheduler;
  if (file.empty()) return command.text();
  command.add("extra_llm_api_options", "\"$OPTIONS\"");
  return fmt::format("OPTIONS=$(mktemp)\ncat > \"$OPTIONS\" <<'END'\n{}END\n{}", file,
                     command.text());
}

/// The command that starts a server. Fails if it has no flag for the plan.
Result<std::string> command_of(const ServeFile& job, Role role, std::vector<std::string>& notes) {
  const ServingPlan& plan = job.deployment.plan;
  const std::vector<ServerFlag> flags = TRY(flags_of(job));
  if (plan.context > 1 && job.deployment.framework != serving::Framework::kVllm)
    return fail("only vLLM has a flag for keys and values that are divided by tokens",
                "plan: {context: 1}");
  switch (job.deployment.framework) {
    case serving::Framework::kVllm: return vllm(job, flags, role);
    case serving::Framework::kSglang: return sglang(job, flags, role);
    case serving::Framework::kTrtllm: break;
  }
  if (shares_experts(plan) && plan.tensor > 1)
    return fail("TensorRT-LLM has no flag for attention replicas of several GPUs each",
                "plan: {tensor: 1} in the job, or data: 1");
  if (plan.data > 1 && !shares_experts(plan))
    notes.push_back(fmt::format("start {} such servers{}: trtllm-serve has one replica", plan.data,
                                role == Role::kAll       ? " behind a load balancer"
                                : role == Role::kPrefill ? " with the role prefill"
                                                         : " with the role decode"));
  return trtllm(job, flags, role);
}

/// What sends each request to a server of each role.
std::string_view router_of(serving::Framework framework) {
  switch (framework) {
    case serving::Framework::kVllm:
      return "start vLLM's proxy for disaggregated prefill in front of both servers, and give each "
             "server a VLLM_NIXL_SIDE_CHANNEL_PORT of its own";
    case serving::Framework::kSglang:
      return "start the router in front of them: python3 -m sglang_router.launch_router "
             "--pd-disaggregation --prefill URL --decode URL";
    case serving::Framework::kTrtllm: break;
  }
  return "start trtllm-serve disaggregated -c FILE in front of them; the file lists the URLs of "
         "context_servers and generation_servers";
}

}  // namespace

Result<ServerLaunch> emit_server(const ServeFile& job, const std::string& headline) {
  const serving::Deployment& d = job.deployment;
  ServerLaunch launch;
  std::string command;
  if (job.prefill) {
    const std::string prompts = TRY(command_of(prefill_server(job), Role::kPrefill, launch.notes));
    const std::string tokens = TRY(command_of(job, Role::kDecode, launch.notes));
    command = fmt::format(
        "case \"$1\" in\nprefill)\n{}\n;;\ndecode)\n{}\n;;\n*)\necho \"usage: $0 prefill|decode\" "
        ">&2\nexit 2\n;;\nesac",
        prompts, tokens);
    launch.notes.emplace_back(router_of(d.framework));
    if (d.framework == serving::Framework::kVllm && job.prefill->network.by_layer)
      launch.notes.emplace_back(
          "NixlConnector sends keys and values after the prompt: predict with transfer.by: whole");
  } else {
    ServeFile one = job;
    if (job.scaling) {
      one.deployment.plan.data = 1;
      launch.notes.push_back(
          fmt::format("the command starts one replica: an autoscaler with the rule of `scaling` "
                      "keeps {} to {} of them",
                      job.scaling->rule.least, job.scaling->rule.most));
    }
    command = TRY(command_of(one, Role::kAll, launch.notes));
  }
  if (d.offload)
    launch.notes.emplace_back(
        "the command does not move state off the device: add it as the job has it");
  if (!job.tiers.empty() || (job.prefill && !job.prefill->tiers.empty()))
    launch.notes.emplace_back("the command has no `cache_tiers`: add them as the job has them");
  if (!job.rules.drafts.empty())
    launch.notes.emplace_back("the command does not start speculation: add it as the job has it");
  if (d.precision.weights != d.model.published && !quantises_while_loading(d))
    launch.notes.push_back(
        fmt::format("MODEL must have weights in {}",
                    serving::kWeightsNames[static_cast<std::size_t>(d.precision.weights)]));
  launch.text = fmt::format(
      "#!/bin/sh\n# {}\n: \"${{MODEL:?the name or the folder of the weights of {}}}\"\n{}",
      headline, d.model.name, command);
  return launch;
}

}  // namespace rehearse::cli
