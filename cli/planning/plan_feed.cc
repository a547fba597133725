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
  const Where where{plan.data, plan.tensor, plan.context, plan.pipeline, plan.placement};
  auto known = units_.find(where);
  if (known == units_.end()) {
    const Result<workload::Layout> layout = strategies::lay_out(spec_.workload, training, plan);
    if (!layout) return Seconds::s(0);
    const double units = taken_by(*layout, cluster_, pipeline_).per_batch * layout->microbatches;
    known = units_.emplace(where, units).first;
  }
  return Seconds::s(known->second / units_per_s_);
}

}  // namespace rehearse::cli
