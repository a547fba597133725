#include "strategies/lay_out.h"

#include <algorithm>

#include <fmt/core.h>

#include "strategies/check_plan.h"
#include "strategies/offload.h"
#include "strategies/schedule.h"
#include "strategies/transform.h"
#include "strategies/transforms.h"

namespace rehearse::strategies {
namespace {

using workload::Layout;
using workload::Workload;

inline Result<workload::Workload> microbatch(workload::Workload workload,
                                             const RankSetting& setting) {
  return workload::with_samples(std::move(workload), setting.microbatch);
}

/// A transform of a rank's workload; they are applied in this order.
struct RankTransform {
  std::string_view name;
  bool (*wanted)(const RankSetting&);
  Result<Workload> (*apply)(Workload, const RankSetting&);
};
constexpr RankTransform kRankTransforms[] = {
    {"microbatch", [](const RankSetting& s) { return s.microbatch != 1; }, microbatch},
    {"context_parallel", [](const RankSetting& s) { return s.degrees.context > 1; },
     context_parallel},
    {"expert_parallel",
     [](const RankSetting& s) {
       return s.degrees.expert > 1 || s.degrees.whole_experts || s.plan->capacity_factor != 1;
     },
     expert_parallel},
    {"tensor_parallel", [](const RankSetting& s) { return s.degrees.tensor > 1; }, tensor_parallel},
    {"recompute", [](const RankSetting& s) { return s.recompute != Recompute::kNone; }, recompute},
    {"exchanges_in_parts", [](const RankSetting& s) { return s.plan->exchange_parts > 1; },
     exchanges_in_parts},
    {"microbatch_in_parts", [](const RankSetting& s) { return s.plan->microbatch_parts > 1; },
     microbatch_in_parts},
};

/// A transform of the layout, after layers are assigned to stages.
struct LayoutTransform {
  std::string_view name;
  bool (*wanted)(const JobSetting&);
  Result<Layout> (*apply)(Layout, const JobSetting&);
};
constexpr LayoutTransform kLayoutTransforms[] = {
    {"sum_gradients",
     [](const JobSetting& s) {
       return s.plan->synchronization == Synchronization::kAllReduce && s.plan->zero < 3;
     },
     sum_gradients},
    {"shard_parameters", [](const JobSetting& s) { return s.plan->zero == 3; }, shard_parameters},
    {"parameter_server",
     [](const JobSetting& s) {
       return s.plan->synchronization == Synchronization::kParameterServer;
     },
     parameter_server},
    {"average_parameters",
     [](const JobSetting& s) { return s.plan->synchronization == Synchronization::kLocalSgd; },
     average_parameters},
    {"offload", [](const JobSetting& s) { return s.plan->tiers.any(); }, offload},
    {"schedule", [](const JobSetting&) { return true; }, order_stages},
};

Status verify_after(std::string_view name, const Workload& workload) {
  Status ok = workload::verify(workload);
  if (!ok) ok.error().diagnostics.front().key = fmt::format("after {}", name);
  return ok;
}

Status verify_after(std::string_view name, const Layout& layout) {
  for (const workload::Stage& stage : layout.stages)
    for (const workload::Chunk& chunk : stage.chunks)
      if (Status ok = workload::verify(std::span<const workload::Layer>(chunk.layers)); !ok) {
        ok.error().diagnostics.front().key = fmt::format("after {}, {}", name, stage.name);
        return ok;
      }
  return {};
}

bool same(const RankSetting& a, const RankSetting& b) {
  return a.degrees == b.degrees && a.recompute == b.recompute && a.microbatch == b.microbatch;
}

void note(std::vector<std::string>& applied, std::string_view name) {
  if (std::ranges::find(applied, name) == applied.end()) applied.emplace_back(name);
}

Result<Workload> rewrite(const Workload& workload, const RankSetting& setting,
                         std::vector<std::string>& applied) {
  Workload one = workload;
  for (const RankTransform& transform : kRankTransforms) {
    if (!transform.wanted(setting)) continue;
    one = TRY(transform.apply(std::move(one), setting));
    TRY(verify_after(transform.name, one));
    note(applied, transform.name);
  }
  return one;
}

}  // namespace

std::vector<RankSetting> settings_of(const Training& training, const Plan& plan) {
  std::vector<RankSetting> settings;
  const std::uint32_t p = stages_of(plan);
  const bool together = plan.placement == Placement::kTensorPipelineData;
  std::uint32_t rank = 0;
  for (std::uint32_t s = 0; s < p; ++s) {
    RankSetting setting{.training = &training,
                        .plan = &plan,
                        .degrees = {.data = plan.data,
                                    .tensor = plan.tensor,
                                    .context = plan.context,
                                    .expert = plan.expert},
                        .recompute = training.recompute,
                        .microbatch = training.microbatch};
    if (!plan.stages.empty()) {
      const StagePlan& stage = plan.stages[s];
      setting.degrees.data = stage.data;
      setting.degrees.tensor = stage.tensor;
      setting.recompute = stage.recompute.value_or(training.recompute);
      setting.microbatch = training.microbatch * plan.stages[0].data / stage.data;
    }
    setting.degrees.whole_experts = plan.expert_tensor == 1U && setting.degrees.tensor > 1;
    // Its backward directly follows its forward, so it keeps only one microbatch.
    if (plan.schedule == Schedule::kShifted && p > 1 && s + 1 == p)
      setting.recompute = Recompute::kNone;
    setting.together = together ? p : 1;
    setting.first_rank = rank;
    rank += together ? plan.context * plan.tensor : setting.degrees.ranks();
    settings.push_back(setting);
  }
  return settings;
}

Result<Workload> workload_of_rank(const Workload& workload, const RankSetting& setting) {
  std::vector<std::string> applied;
  return rewrite(workload, setting, applied);
}

std::uint32_t ranks_of(const Plan& plan) {
  std::uint32_t ranks = plan.data * plan.tensor * plan.context * plan.pipeline;
  if (!plan.stages.empty()) {
    ranks = 0;
    for (const StagePlan& stage : plan.stages) ranks += stage.data * stage.tensor * plan.context;
  }
  return ranks + (plan.synchronization == Synchronization::kParameterServer
                      ? plan.parameter_server.servers
                      : 0);
}

Result<Layout> lay_out(const Workload& workload, const Training& training, const Plan& plan) {
  TRY(workload::verify(workload));
  TRY(check_plan(workload, training, plan));

  std::vector<std::string> applied;
  const std::vector<RankSetting> settings = settings_of(training, plan);
  // Equal stages share their rewritten workload.
  std::vector<Workload> rewritten;
  std::vector<std::size_t> which;
  for (std::size_t s = 0; s < settings.size(); ++s) {
    const auto before =
        std::find_if(settings.begin(), settings.begin() + static_cast<std::ptrdiff_t>(s),
                     [&](const RankSetting& other) { return same(other, settings[s]); });
    const auto at = static_cast<std::size_t>(before - settings.begin());
    if (at < s) {
      which.push_back(which[at]);
      continue;
    }
    Workload one = TRY(rewrite(workload, settings[s], applied));
    which.push_back(rewritten.size());
    rewritten.push_back(std::move(one));
  }

  std::vector<StageSource> sources;
  for (std::size_t s = 0; s < settings.size(); ++s)
    sources.push_back({.workload = &rewritten[which[s]],
                       .setting = settings[s],
                       .name = plan.stages.empty() || plan.stages[s].name.empty()
                                   ? fmt::format("stage {}", s)
                                   : plan.stages[s].name});
  Result<Layout> layout = cut_stages(sources, workload);
  if (!layout) return layout;
  layout->names = std::move(rewritten.front().names);
  if (sources.size() > 1) note(applied, "pipeline");
  layout->collectives = plan.collectives;

  const JobSetting job{.training = &training, .plan = &plan};
  for (const LayoutTransform& transform : kLayoutTransforms) {
    if (!transform.wanted(job)) continue;
    layout = transform.apply(std::move(*layout), job);
    if (!layout) return layout;
    TRY(verify_after(transform.name, *layout));
    note(applied, transform.name);
  }
  layout->applied = std::move(applied);
  return layout;
}

}  // namespace rehearse::strategies
