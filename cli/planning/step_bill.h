// StepBill: the cost, energy and carbon of a plan from its step time and compute time, without
// further price look-ups. Cost is proportional to time; energy is linear in time and compute time.
#pragma once

#include <string>
#include <vector>

#include "cost/step_account.h"
#include "strategies/search/search.h"
#include "strategies/step/plan_costs.h"

namespace rehearse::cli {

class StepBill {
 public:
  StepBill(const std::vector<step::PlanCosts::Kind>& kinds, const cost::Place& place);

  /// The figures of a plan; a figure is 0 if it is unknown.
  strategies::Figures of(const step::PlanCost& cost) const;
  /// The quantities of a step that waits `waiting` longer without computing.
  strategies::Figures with_waiting(strategies::Figures figures, Seconds waiting) const;
  /// The quantities of a step with additional storage requests at this price.
  strategies::Figures with_requests(strategies::Figures figures, Usd requests) const;
  bool knows(strategies::Figure figure) const;
  const std::vector<std::string>& notes() const { return notes_; }  ///< why a quantity is unknown

 private:
  double usd_per_s_ = 0, grams_per_joule_ = 0;
  double idle_watts_ = 0;                ///< of all devices together
  std::vector<double> busy_watts_ = {};  ///< by kind, of one device, above idle
  bool money_ = false, energy_ = false, carbon_ = false;
  std::vector<std::string> notes_ = {};
};

}  // namespace rehearse::cli
