#include "cli/planning/plan_feed.h"

#include <algorithm>

#include "cli/config/job_input.h"
#include "models/input/limits.h"
#include "strategies/lay_out.h"

namespace rehearse::cli {

PlanFeed::PlanFeed(const input::Pipeline& pipeline, const step::Spec& spec,
                   const cluster::Cluster& cluster)
    : pipeline_(pipeline), spec_(spec), cluster_(cluster) {
  // An accelerator that the pipeline's file describes is not the job's.
  input::Pipeline loading = pipeline;
  loading.step.reset();
  if (const std::vector<input::Limit> limits = input::limits_of(loading); !limits.empty())
    units_per_s_ = limits.front().units_per_s;
}

Seconds PlanFeed::waiting(const strategies::Training& training, const strategies::Plan& plan,
                          Seconds step) {
  const Seconds fed = at_least(training, plan);
  return std::max(Seconds::s(0), fed - step) + std::min(fed, step) * kOwnTime;
}

Seconds PlanFeed::at_least(const strategies::Training& training, const strategies::Plan& plan) {
  if (!(units_per_s_ > 0) || !plan.stages.empty()) return Seconds::s(0);
  return Seconds::s(takes_of(training, plan).units / units_per_s_);
}

Usd PlanFeed::requests(const strategies::Training& training, const strategies::Plan& plan) {
  return takes_of(training, plan).requests;
}

PlanFeed::Takes PlanFeed::takes_of(const strategies::Training& training,
                                   const strategies::Plan& plan) {
  const auto take = [&]() -> Takes {
    const Result<workload::Layout> layout = strategies::lay_out(spec_.workload, training, plan);
    if (!layout) return {};
    return {taken_by(*layout, cluster_, pipeline_).per_batch * layout->microbatches,
            requests_of_step(*layout, cluster_, pipeline_)};
  };
  // Stages of one's own are alike in all plans of a search, but not elsewhere.
  if (!plan.stages.empty()) return take();
  const Where where{plan.data, plan.tensor, plan.context, plan.pipeline, plan.placement};
  auto known = takes_.find(where);
  if (known == takes_.end()) known = takes_.emplace(where, take()).first;
  return known->second;
}

}  // namespace rehearse::cli
