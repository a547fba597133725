// StepBill: the figures of a plan from its step time and computing time, without looking prices up
// again: money is in proportion to time, energy to time and to computing.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cost/step_account.h"
#include "strategies/search/search.h"
#include "strategies/step/plan_costs.h"

namespace rehearse::cli {

class StepBill {
 public:
  StepBill(const std::vector<step::PlanCosts::Kind>& kinds, const cost::Place& place);

  /// 0 where a figure is not known.
  strategies::Figures of(const step::PlanCost& cost) const;
  /// Of a step that waits so much longer, with nothing to compute meanwhile.
  strategies::Figures with_waiting(strategies::Figures figures, Seconds waiting) const;
  /// Of a step that besides asks storage for so much.
  strategies::Figures with_requests(strategies::Figures figures, Usd requests) const;
  bool knows(strategies::Figure figure) const;
  const std::vector<std::string>& notes() const { return notes_; }  ///< why a figure is not known

 private:
  double usd_per_s_ = 0, grams_per_joule_ = 0;
  double idle_watts_ = 0;                ///< of all devices together
  std::vector<double> busy_watts_ = {};  ///< by kind, of one device, above idle
  bool money_ = false, energy_ = false, carbon_ = false;
  std::vector<std::string> notes_ = {};
};

}  // namespace rehearse::cli
