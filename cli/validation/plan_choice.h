// Plan choice: the value of the predictions to a user who chooses one of several measured plans.
//
// A group is a set of plans of one job on equal devices. Plans are compared by their time per
// sample, since batches may differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/value.h"

namespace rehearse::cli {

struct MeasuredPlan {
  std::string group;
  double measured, predicted;  ///< time per sample, in one unit; above zero
};

/// The place of the plan predicted best, which a user would measure first. REQUIRES: not empty.
std::size_t predicted_best(const std::vector<MeasuredPlan>& group);

struct PlanChoice {
  std::string name;
  std::size_t groups = 0, plans = 0;
  /// Kendall's tau over the pairs within groups: share of pairs in the measured order minus the
  /// share in the other. Pairs that were measured or predicted alike do not count; absent without
  /// others.
  std::optional<double> tau = {};
  /// Regret: the measured time of the plan that is predicted best ÷ that of the best one - 1. Mean
  /// and worst over groups; the same of the best of the first three.
  double regret = 0, worst_regret = 0, regret_of_three = 0, worst_of_three = 0;
  double median_error = 0;  ///< of |predicted ÷ measured - 1|
  double best_in_five = 0;  ///< share of groups whose best plan is among the first five
};

/// Nothing if no group has two plans.
std::optional<PlanChoice> choice_of(std::string name, const std::vector<MeasuredPlan>& plans);

/// The key "choices" of the JSON contract, and a table for people.
Value choice_rows(const std::vector<PlanChoice>& choices);

}  // namespace rehearse::cli
