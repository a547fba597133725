#include "cli/config/read_plan.h"

#include <cmath>
#include <limits>

#include <fmt/core.h>

namespace rehearse::cli {
namespace {

using namespace strategies;

/// A whole number from `least` on; what was there before where the key is absent or wrong.
void read_count(const YamlMap& map, std::string_view key, std::uint32_t least,
                std::uint32_t& value) {
  const std::optional<std::int64_t> given = map.optional<std::int64_t>(key);
  if (!given) return;
  if (*given < least || *given > std::numeric_limits<std::uint32_t>::max())
    map.report(key, fmt::format("{} is out of range", *given),
               fmt::format("a whole number from {} on", least));
  else
    value = static_cast<std::uint32_t>(*given);
}

/// A number within bounds, `least` itself only where `closed`.
void read_number(const YamlMap& map, std::string_view key, double least, bool closed, double most,
                 double& value) {
  const std::optional<double> given = map.optional<double>(key);
  if (!given) return;
  if (!(std::isfinite(*given) && *given <= most && (closed ? *given >= least : *given > least)))
    map.report(
        key, fmt::format("{} is out of range", *given),
        std::isfinite(most)
            ? fmt::format("a number {} {} and at most {}", closed ? "from" : "above", least, most)
            : fmt::format("a number {} {}", closed ? "from" : "above", least));
  else
    value = *given;
}

void read_flag(const YamlMap& map, std::string_view key, bool& value) {
  if (const std::optional<bool> given = map.optional<bool>(key)) value = *given;
}

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

void read_parameter_server(const YamlMap& map, ParameterServer& server) {
  read_count(map, "servers", 1, server.servers);
  read_count(map, "backup_workers", 0, server.backup_workers);
  bool asynchronous = false;
  read_flag(map, "asynchronous", asynchronous);
  if (asynchronous) server.staleness.reset();  // without bound, unless one is given
  if (map.has("staleness")) {
    std::uint32_t steps = 0;
    read_count(map, "staleness", 0, steps);
    server.staleness = steps;
  }
  map.no_other_keys();
}

StagePlan read_stage(const YamlMap& map) {
  StagePlan stage;
  if (const std::optional<std::string> name = map.optional<std::string>("name")) stage.name = *name;
  read_count(map, "layers", 0, stage.layers);
  read_count(map, "data", 1, stage.data);
  read_count(map, "tensor", 1, stage.tensor);
  Recompute recompute = Recompute::kNone;
  if (map.has("recompute")) {
    map.choose("recompute", kRecomputeNames, recompute);
    stage.recompute = recompute;
  }
  map.no_other_keys();
  return stage;
}

}  // namespace

std::optional<Training> read_training(const YamlMap& map, Training training) {
  if (!map.required<double>("global_batch")) return std::nullopt;
  read_number(map, "global_batch", 0, false, kUnbounded, training.global_batch);
  read_number(map, "microbatch", 0, false, kUnbounded, training.microbatch);
  map.choose("dtype", workload::kDtypeNames, training.dtype);
  map.choose("optimizer", kOptimizerNames, training.optimizer);
  map.choose("recompute", kRecomputeNames, training.recompute);
  if (map.has("gradients")) {
    workload::Dtype dtype = workload::Dtype::kFp32;
    map.choose("gradients", workload::kDtypeNames, dtype);
    training.gradients = dtype;
  }
  map.no_other_keys();
  return training;
}

std::optional<Plan> read_plan(const YamlMap& map) {
  Plan plan;
  read_count(map, "data", 1, plan.data);
  read_count(map, "tensor", 1, plan.tensor);
  read_count(map, "pipeline", 1, plan.pipeline);
  read_count(map, "context", 1, plan.context);
  read_count(map, "expert", 1, plan.expert);
  if (map.has("expert_tensor")) read_count(map, "expert_tensor", 1, plan.expert_tensor.emplace(1));
  read_count(map, "interleave", 1, plan.interleave);
  if (map.has("split")) map.choose("split", kLayerSplitNames, plan.split.emplace());
  // More chunks than one make the interleaved schedule unless another is named.
  if (plan.interleave > 1) plan.schedule = Schedule::kInterleaved;
  map.choose("schedule", kScheduleNames, plan.schedule);
  read_count(map, "zero", 0, plan.zero);
  if (plan.zero > 3) map.report("zero", fmt::format("{} is no stage of ZeRO", plan.zero), "0 to 3");
  read_flag(map, "sequence_parallel", plan.sequence_parallel);
  map.choose("synchronization", kSynchronizationNames, plan.synchronization);
  if (const std::optional<YamlMap> server = map.map("parameter_server"))
    read_parameter_server(*server, plan.parameter_server);
  read_count(map, "local_steps", 1, plan.local_steps);
  read_flag(map, "overlap_gradients", plan.overlap_gradients);
  if (const std::optional<Bytes> bucket = map.optional<Bytes>("bucket")) {
    if (*bucket <= Bytes::b(0))
      map.report("bucket", "a bucket of no bytes", "a size above zero, such as 25 MiB");
    else
      plan.bucket = *bucket;
  }
  read_number(map, "compression", 0, false, 1, plan.compression);
  read_flag(map, "asynchronous_tensor", plan.asynchronous_tensor);
  read_flag(map, "quantised_gathers", plan.quantised_gathers);
  map.choose("context_exchange", kContextExchangeNames, plan.context_exchange);
  read_flag(map, "context_balanced", plan.context_balanced);
  read_number(map, "capacity_factor", 0, false, kUnbounded, plan.capacity_factor);
  map.choose("expert_exchange", kExpertExchangeNames, plan.expert_exchange);
  read_flag(map, "overlap_experts", plan.overlap_experts);
  read_number(map, "expert_imbalance", 1, true, kUnbounded, plan.expert_imbalance);
  map.choose("offload", kOffloadNames, plan.offload);
  map.choose("placement", kPlacementNames, plan.placement);
  for (const YamlMap& stage : map.maps("stages")) plan.stages.push_back(read_stage(stage));
  map.no_other_keys();
  return plan;
}

}  // namespace rehearse::cli
