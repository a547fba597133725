#include "cli/planning/step_bill.h"

namespace rehearse::cli {

using strategies::Figure, strategies::Figures;

StepBill::StepBill(const std::vector<step::PlanCosts::Kind>& kinds, const cost::Place& place) {
  const Estimate<Seconds> second{Seconds::s(1), Seconds::s(1), Seconds::s(1),
                                 Provenance::kRecorded};
  std::vector<cost::PoweredDevices> devices;
  devices.reserve(kinds.size());
  for (const step::PlanCosts::Kind& kind : kinds)
    devices.push_back({kind.name, kind.gpu, kind.count, 0});
  const cost::StepAccount idle = cost::account_of(second, devices, place);
  notes_ = idle.notes;
  money_ = idle.money.has_value();
  energy_ = idle.energy.has_value();
  carbon_ = idle.carbon.has_value() && energy_;
  if (money_) usd_per_s_ = idle.money->value.usd();
  if (!energy_) return;
  idle_watts_ = idle.energy->value.j();
  if (carbon_ && idle_watts_ > 0) grams_per_joule_ = idle.carbon->value / idle_watts_;
  for (cost::PoweredDevices& kind : devices) {
    kind.busy = 1;
    const cost::StepAccount busy = cost::account_of(second, devices, place);
    busy_watts_.push_back((busy.energy->value.j() - idle_watts_) / kind.count);
    kind.busy = 0;
  }
}

Figures StepBill::of(const step::PlanCost& cost) const {
  const double time = cost.step.s();
  double joules = idle_watts_ * time;
  if (energy_)
    for (std::size_t k = 0; k < cost.busy.size(); ++k) joules += busy_watts_[k] * cost.busy[k].s();
  return {time, cost.memory.b(), usd_per_s_ * time, joules, grams_per_joule_ * joules};
}

Figures StepBill::with_waiting(Figures figures, Seconds waiting) const {
  const double joules = idle_watts_ * waiting.s();
  figures[static_cast<std::size_t>(Figure::kStepTime)] += waiting.s();
  figures[static_cast<std::size_t>(Figure::kCost)] += usd_per_s_ * waiting.s();
  figures[static_cast<std::size_t>(Figure::kEnergy)] += joules;
  figures[static_cast<std::size_t>(Figure::kCarbon)] += grams_per_joule_ * joules;
  return figures;
}

Figures StepBill::with_requests(Figures figures, Usd requests) const {
  if (money_) figures[static_cast<std::size_t>(Figure::kCost)] += requests.usd();
  return figures;
}

bool StepBill::knows(Figure figure) const {
  switch (figure) {
    case Figure::kStepTime:
    case Figure::kMemory: return true;
    case Figure::kCost: return money_;
    case Figure::kEnergy: return energy_;
    case Figure::kCarbon: return carbon_;
  }
  return false;
}

}  // namespace rehearse::cli
