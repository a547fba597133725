#include "cli/planning/emit.h"

#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "strategies/states.h"

namespace rehearse::cli {

using strategies::Axes, strategies::Offload, strategies::Placement, strategies::Schedule;

namespace {

std::string_view name_of(Framework framework) {
  constexpr std::string_view kNames[] = {"Megatron-LM", "DeepSpeed's JSON", "torchtitan"};
  return kNames[static_cast<std::size_t>(framework)];
}

template <class T>
void keep(std::vector<T>& values, std::vector<T> runs) {
  if (values.empty()) values = std::move(runs);
}

}  // namespace

void keep_to(Framework framework, Axes& axes) {
  for (auto* algorithms :
       {&axes.all_reduce, &axes.all_gather, &axes.reduce_scatter, &axes.all_to_all})
    keep(*algorithms, {std::nullopt});  // not all have a name in NCCL
  switch (framework) {
    case Framework::kMegatron:
      keep(axes.schedule, {Schedule::k1f1b, Schedule::kInterleaved});
      keep(axes.zero, {0, 1});
      keep(axes.offload, {Offload::kNone});
      return;
    case Framework::kDeepspeed:
      keep(axes.tensor, {1});
      keep(axes.pipeline, {1});
      keep(axes.context, {1});
      keep(axes.expert, {1});
      keep(axes.schedule, {Schedule::k1f1b});
      keep(axes.zero, {1, 2, 3});
      keep(axes.offload, {Offload::kNone, Offload::kOptimizer});
      keep(axes.recompute, {strategies::Recompute::kNone, strategies::Recompute::kFull});
      return;
    case Framework::kTorchtitan:
      keep(axes.schedule, {Schedule::k1f1b, Schedule::kInterleaved, Schedule::kGpipe});
      keep(axes.zero, {3});
      keep(axes.offload, {Offload::kNone});
      keep(axes.placement, {Placement::kTensorDataPipeline});
      if (!axes.sequence_parallel) axes.sequence_parallel = true;
      return;
  }
}

tl::unexpected<Error> no_key_for(Framework framework, std::string_view what,
                                 std::string_view nearest) {
  return fail(fmt::format("{} has no key for {}", name_of(framework), what), {},
              std::string(nearest));
}

Status check_keys(Framework framework, const Launch& launch) {
  const step::Spec& spec = launch.spec;
  if (!spec.plan.stages.empty()) return no_key_for(framework, "stages with different degrees");
  if (std::floor(spec.training.microbatch) != spec.training.microbatch)
    return no_key_for(framework, "a microbatch that is not a whole number of samples");
  if (spec.training.recompute == strategies::Recompute::kAsNeeded)
    return no_key_for(framework, "a number of recomputed layers per stage",
                      "nearest: recompute full");
  strategies::Candidate candidate{spec.training, spec.plan}, usual;
  // A value that equals the default needs no key.
  std::optional<workload::Dtype>& gradients = candidate.training.gradients;
  const std::optional<workload::Dtype> given = std::exchange(gradients, std::nullopt);
  if (given && *given != strategies::gradient_dtype(candidate.training, candidate.plan))
    gradients = given;
  for (const strategies::Field<strategies::Candidate>& field : strategies::plan_fields()) {
    if (!field.launch[static_cast<std::size_t>(framework)].empty() || !is_unusual(field, candidate))
      continue;
    const strategies::FieldValue value = field.at.get(candidate), nearest = field.at.get(usual);
    return fail(fmt::format("the launch file for {} cannot express {} {}", name_of(framework),
                            field.name, value ? value_words(field, *value) : "without bound"),
                {},
                nearest ? fmt::format("nearest: {} {}", field.name, value_words(field, *nearest))
                        : fmt::format("leave {} out", field.name));
  }
  return {};
}

Result<Emitted> emit(Framework framework, const Launch& launch) {
  switch (framework) {
    case Framework::kMegatron: return emit_megatron(launch);
    case Framework::kDeepspeed: return emit_deepspeed(launch);
    case Framework::kTorchtitan: return emit_torchtitan(launch);
  }
  return fail("no such framework");
}

}  // namespace rehearse::cli
