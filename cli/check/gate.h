// Gate: compares a candidate with a baseline and judges the differences against limits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/check/budget.h"
#include "cli/check/finding.h"
#include "cost/step_account.h"
#include "profiler/compare/compare_runs.h"
#include "sim/base/estimate.h"
#include "sim/base/warning.h"

namespace rehearse::cli {

/// Where a job runs, for its cost; without an instance the place is unknown.
struct GatePlace {
  std::string instance = {};
  double count = 1;
  std::string region = {};
  std::optional<double> steps_per_epoch = {};
};

struct GateInput {
  compare::Run baseline, candidate;
  std::vector<Limit> limits;  ///< one at least
  GatePlace place;
  compare::EffectOptions effect;
  bool begins = false;  ///< the store has no earlier run: the candidate is its own baseline
};

/// Cost per step, at the on-demand price.
struct GateCost {
  Estimate<Usd> baseline, candidate;
  std::string price;  ///< where the price is from, for people
};

/// The result of one limit.
struct Judged {
  Limit limit;
  compare::Verdict verdict;
  std::optional<compare::Effect> effect;  ///< absent for memory, which has no error
  std::optional<std::size_t> steps_needed = {};
};

struct Gate {
  GateInput input;
  compare::RunComparison comparison;
  std::optional<GateCost> cost;
  std::vector<Judged> limits = {};
  CheckFindings findings = {};
  std::vector<Warning> warnings = {};  ///< to read before trusting the result
  std::string lacks = {};              ///< records whose absence rules out a verdict; else empty
};

/// Fails if the runs are not of one job, a limit applies to a quantity that was not recorded, or
/// the catalog does not have a price that a limit needs.
Result<Gate> run_gate(GateInput input);

}  // namespace rehearse::cli
