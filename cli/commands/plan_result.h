// What plan shows of a search, in each format.
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

std::string plans_text(const Planned& planned);
Json plans_json(const Planned& planned);
/// A row per plan of the best.
Table plans_table(const Planned& planned);

}  // namespace rehearse::cli
