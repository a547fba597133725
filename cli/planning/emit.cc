#include "cli/planning/emit.h"

#include <fmt/core.h>

namespace rehearse::cli {

using strategies::Axes;
using strategies::Offload;
using strategies::Placement;
using strategies::Schedule;

namespace {

template <class T>
void keep(std::vector<T>& values, std::vector<T> runs) {
  if (values.empty()) values = std::move(runs);
}

}  // namespace

void keep_to(Framework framework, Axes& axes) {
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
      keep(axes.placement, {Placement::kStagesApart});
      if (!axes.sequence_parallel) axes.sequence_parallel = true;
      return;
  }
}

tl::unexpected<Error> no_key_for(std::string_view framework, std::string_view what,
                                 std::string_view nearest) {
  return fail(fmt::format("{} has no key for {}", framework, what), {}, std::string(nearest));
}

Status check_common(std::string_view framework, const Launch& launch) {
  const strategies::Plan& plan = launch.spec.plan;
  if (!plan.stages.empty()) return no_key_for(framework, "stages with degrees of their own");
  if (plan.synchronization != strategies::Synchronization::kAllReduce)
    return no_key_for(
        framework,
        fmt::format("synchronization {}",
                    strategies::kSynchronizationNames[static_cast<int>(plan.synchronization)]),
        "nearest: all_reduce");
  if (plan.compression < 1) return no_key_for(framework, "compressed gradients");
  if (launch.spec.training.microbatch !=
      static_cast<double>(static_cast<std::uint64_t>(launch.spec.training.microbatch)))
    return no_key_for(framework, "a microbatch that is no whole number of samples");
  return {};
}

Result<Emitted> emit(Framework framework, const Launch& launch) {
  switch (framework) {
    case Framework::kMegatron:
      return emit_megatron(launch);
    case Framework::kDeepspeed:
      return emit_deepspeed(launch);
    case Framework::kTorchtitan:
      return emit_torchtitan(launch);
  }
  return fail("no such framework");
}

}  // namespace rehearse::cli
