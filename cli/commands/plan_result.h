// The document of `rehearse plan`.
#pragma once

#include "cli/commands/step_result.h"
#include "cli/planning/find_plans.h"
#include "cli/planning/referee_plans.h"

namespace rehearse::cli {

struct Planned {
  JobFile file;  ///< as read
  PlanRequest request;
  FoundPlans found;
  std::vector<PredictedJob> best = {};  ///< predicted as in simulate
  std::vector<double> chance = {};      ///< by `best`: probability of being truly the best
  std::vector<double> chance_if_own = {},
                      chance_if_common = {};  ///< the same if none or all of the errors were common
  std::optional<Confirmed> confirmed = {};    ///< absent if only closed forms were requested
};

/// The tree without labels: for programs only.
Value without_labels(const Value& value);

Document plans_document(const Planned& planned);

}  // namespace rehearse::cli
