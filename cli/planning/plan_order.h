// PlanOrder: what ranks the plans that a search found, and which of them keep the limits.
//
// A plan counts by its objective: at the predicted value with the mean of its stalls, or at what it
// stays below with the probability of the request (PlanRequest::risk).
#pragma once

#include <vector>

#include "cli/planning/find_plans.h"
#include "cli/planning/step_bill.h"
#include "strategies/search/search.h"

namespace rehearse::cli {

class PlanOrder {
 public:
  /// REQUIRES: both outlive this object.
  PlanOrder(const PlanRequest& request, const StepBill& bill) : request_(request), bill_(bill) {}

  /// Less is better. Plans that all wait for the input pipeline have equal times except for
  /// rounding. Those that would be faster with samples always ready come first.
  double operator()(const FoundPlan& plan) const;

  /// A figure of the plan as it counts.
  static double counted(const FoundPlan& plan, strategies::Figure figure);

  /// Memory is the same in every model.
  static bool keeps(const FoundPlan& plan, const strategies::Question& question);

  /// Sets FoundPlan::slower and FoundPlan::fuller. REQUIRES: the step has its interval unless
  /// value_decides().
  void take(const step::Step& step, FoundPlan& plan) const;

  /// Without a risk, the interval of a step does not matter to its rank, but for its stalls.
  bool value_decides() const { return request_.risk <= 0.5; }

  /// Sorts by the times of the runs, and removes plans that now exceed a limit. Fails with one line
  /// if none is left.
  Status rank(std::vector<FoundPlan>& plans, const strategies::Question& question) const;

  /// Moves one of the plans within the noise of the first to the front: in a known regime without
  /// stalls if its step tells (caution_of()); of these, the one with the fewest settings, where memory
  /// that may not suffice counts as one more; of these, the fastest, and with the least memory of
  /// equally fast ones. REQUIRES: they are ranked.
  void prefer_simple(std::vector<FoundPlan>& plans, const strategies::Question& question) const;

 private:
  const PlanRequest& request_;
  const StepBill& bill_;
};

}  // namespace rehearse::cli
