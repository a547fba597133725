#include "cli/commands/measure_next.h"

#include <algorithm>

#include <fmt/core.h>

#include "models/comm/slower_network.h"

namespace rehearse::cli {
namespace {

using strategies::Plan;
using strategies::Training;

struct Neighbour {
  std::string change;
  Training training;
  Plan plan;
};

/// Plans on as many ranks that change the work per launch, or what crosses the network.
std::vector<Neighbour> neighbours_of(const Training& training, const Plan& plan) {
  std::vector<Neighbour> all;
  for (const double factor : {4., 2., 0.5}) {
    Training other = training;
    other.microbatch *= factor;
    if (other.microbatch >= 1)
      all.push_back({fmt::format("microbatch {:g}", other.microbatch), other, plan});
  }
  if (!plan.stages.empty()) return all;
  const auto trade = [&](std::uint32_t Plan::*less, std::uint32_t Plan::*more) {
    if (plan.*less % 2 != 0) return;
    Plan other = plan;
    other.*less /= 2;
    other.*more *= 2;
    all.push_back(
        {fmt::format("tensor {}, pipeline {}, data {}", other.tensor, other.pipeline, other.data),
         training, other});
  };
  for (std::uint32_t Plan::*less : {&Plan::tensor, &Plan::pipeline, &Plan::data})
    for (std::uint32_t Plan::*more : {&Plan::tensor, &Plan::pipeline, &Plan::data})
      if (less != more) trade(less, more);
  return all;
}

cluster::Cluster with_factor(const cluster::Cluster& cluster, const ByFactor<double>& factors) {
  if (factors[2] == 1 || cluster.nodes().size() < 2) return cluster;
  return comm::with_slower_network(cluster, factors[2]);
}

}  // namespace

step::Spec with_factors(const step::Spec& spec, const ByFactor<double>& factors) {
  step::Spec with = spec;
  const auto apply = [&](step::Conditions& conditions) {
    conditions.scale *= factors[0];
    conditions.host_scale *= factors[1];
    conditions.network_scale *= factors[2];
    conditions.fixed = conditions.fixed * factors[3];
  };
  apply(with.conditions);
  for (auto& [device, conditions] : with.conditions_on) apply(conditions);
  return with;
}

Result<Seconds> step_with(const JobFile& job, const ByFactor<double>& factors) {
  const Result<step::Step> step = step::predict(
      with_factors(job.spec, factors), with_factor(job.cluster, factors), {.value_only = true});
  if (!step) return forward(step);
  return step->time.value;
}

std::vector<NextMeasurement> measure_next(const JobFile& job, const step::FactorFit& fit) {
  constexpr std::size_t kMost = 3;
  const cluster::Cluster cluster = with_factor(job.cluster, fit.factors);
  std::vector<NextMeasurement> found;
  for (Neighbour& neighbour : neighbours_of(job.spec.training, job.spec.plan)) {
    step::Spec spec = with_factors(job.spec, fit.factors);
    spec.training = neighbour.training;
    spec.plan = std::move(neighbour.plan);
    const Result<step::Step> step = step::predict(
        spec, cluster, {.fidelity = step::Fidelity::kClosed, .counterfactuals = false});
    if (!step || step->memory.empty() || memory::fullest(step->memory).fit != memory::Fit::kFits)
      continue;
    const step::Information information =
        step::information_of(fit, step::shares_of(*step, cluster.nodes().size() > 1));
    if (information.ratio > 1) found.push_back({neighbour.change, step->time.value, information});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.information.ratio > b.information.ratio;
  });
  std::vector<NextMeasurement> best;
  for (NextMeasurement& next : found)
    if (best.size() < kMost && std::none_of(best.begin(), best.end(), [&](const auto& other) {
          return other.information.factor == next.information.factor;
        }))
      best.push_back(std::move(next));
  return best;
}

}  // namespace rehearse::cli
