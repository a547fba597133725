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
  std::vector<PredictedJob> best = {};  ///< as simulate has them
  std::vector<double> chance = {};      ///< that it is truly the best, of each of `best`
  std::vector<double> chance_if_own = {},
                      chance_if_common = {};  ///< were none or all errors common
  std::optional<Confirmed> confirmed = {};    ///< absent where closed forms were asked for
};

Document plans_document(const Planned& planned);

}  // namespace rehearse::cli
