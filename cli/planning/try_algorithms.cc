#include "cli/planning/try_algorithms.h"

#include <algorithm>

#include "cli/planning/find_plans.h"
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

bool adds_in_switches(Algorithm algorithm) {
  return algorithm == Algorithm::kNvls || algorithm == Algorithm::kNvlsTree ||
         algorithm == Algorithm::kCollnetDirect;
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
  if (best.plan.collectives == plan.plan.collectives) return std::nullopt;
  return best;
}

}  // namespace rehearse::cli
