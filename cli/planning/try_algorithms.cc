#include "cli/planning/try_algorithms.h"

#include <algorithm>

#include "cli/planning/find_plans.h"
#include "strategies/check_plan.h"
#include "strategies/lay_out.h"
#include "strategies/plan_fields.h"

namespace rehearse::cli {

using strategies::Candidate;

namespace {

bool uses(const workload::Layout& layout, CollectiveKind kind) {
  return workload::any_op(layout, [kind](const workload::Op& op, const workload::Stage& stage) {
    return op.kind == workload::OpKind::kCollective && op.collective == kind &&
           workload::group_size(op, stage.degrees) > 1;
  });
}

/// The numbers of parts that Hwang et al. (Tutel, MLSys 2023) choose from.
constexpr std::uint32_t kTriedParts[] = {2, 4, 8};

bool adds_in_switches(Algorithm algorithm) {
  return algorithm == Algorithm::kNvls || algorithm == Algorithm::kCollnetDirect;
}

}  // namespace

std::optional<Candidate> with_algorithms(const workload::Workload& workload, const Candidate& plan,
                                         const strategies::Axes& free, const Objective& objective) {
  const Result<workload::Layout> layout = strategies::lay_out(workload, plan.training, plan.plan);
  std::optional<double> least = objective(plan, plan);
  if (!layout || !least) return std::nullopt;
  Candidate best = plan;
  for (const strategies::Field<Candidate>& field : strategies::plan_fields()) {
    if (field.at.section != strategies::Section::kCollectives || field.axis.kept(free)) continue;
    const auto kind = static_cast<CollectiveKind>(std::ranges::find(kCollectiveNames, field.name) -
                                                  kCollectiveNames.begin());
    if (!uses(*layout, kind)) continue;
    Candidate other = best;
    for (std::size_t choice = 1; choice < field.at.choices.size(); ++choice) {
      field.at.set(other, static_cast<double>(choice));
      if (adds_in_switches(*other.plan.collectives[kind])) continue;
      const std::optional<double> value = objective(other, plan);
      if (!value || *value >= *least / (1 + kNoise)) continue;
      least = value;
      best = other;
    }
  }
  const bool exchanges = plan.plan.expert > 1 && uses(*layout, CollectiveKind::kAllToAll);
  const auto try_with = [&](const auto& change) {
    Candidate other = best;
    change(other.plan);
    if (!strategies::check_plan(workload, other.training, other.plan)) return;
    const std::optional<double> value = objective(other, plan);
    if (!value || *value >= *least / (1 + kNoise)) return;
    least = value;
    best = other;
  };
  using strategies::ExpertExchange;
  if (exchanges && free.exchange_parts.empty() && !plan.plan.overlap_experts)
    for (const std::uint32_t parts : kTriedParts)
      try_with([parts](strategies::Plan& with) { with.exchange_parts = parts; });
  if (exchanges && free.expert_exchange.empty())
    for (const ExpertExchange what : {ExpertExchange::kWeights, ExpertExchange::kCheaper})
      try_with([what](strategies::Plan& with) {
        with.expert_exchange = what;
        with.exchange_parts = 1;
      });
  if (best.plan.collectives == plan.plan.collectives &&
      best.plan.exchange_parts == plan.plan.exchange_parts &&
      best.plan.expert_exchange == plan.plan.expert_exchange)
    return std::nullopt;
  return best;
}

}  // namespace rehearse::cli
