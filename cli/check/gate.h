// Gate: compares a candidate with a baseline and judges the differences against limits.
#pragma once

#include <filesystem>
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

/// What a job runs on, for money; no instance: not known.
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
  bool begins = false;  ///< there is none before it: the candidate is its own baseline
};

/// Money per step, by the on-demand price.
struct GateCost {
  Estimate<Usd> baseline, candidate;
  std::string price;  ///< where the price is from, for people
};

/// How one limit came out.
struct Judged {
  Limit limit;
  compare::Verdict verdict;
  std::optional<compare::Effect> effect;  ///< nothing of memory, which has no error
  std::optional<std::size_t> steps_needed = {};
};

struct Gate {
  GateInput input;
  compare::RunComparison comparison;
  std::optional<GateCost> cost;
  std::vector<Judged> limits;
  CheckFindings findings;
  std::vector<Warning> warnings;  ///< what to know before trusting it
  std::string lacks;  ///< why no verdict holds, of recordings without all records; else empty
};

/// Fails where the runs are no two of one job, a limit is on what was not recorded, or a price is
/// wanted that the catalog does not have.
Result<Gate> run_gate(GateInput input);

}  // namespace rehearse::cli
