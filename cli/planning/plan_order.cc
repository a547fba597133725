#include "cli/planning/plan_order.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/core.h>

#include "cli/planning/plan_feed.h"
#include "cli/planning/plan_words.h"
#include "models/memory/memory.h"
#include "sim/base/statistics.h"

namespace rehearse::cli {

using strategies::Figure, strategies::Question;

namespace {

/// The upper end of the usual interval of memory, as a factor of it.
constexpr double kUsualMemory = 1.18;

bool is_tight(const FoundPlan& plan, const Question& question) {
  double widest = kUsualMemory;
  if (plan.step && !plan.step->memory.empty()) {
    const Estimate<Bytes>& peak = memory::fullest(plan.step->memory).peak;
    widest = peak.high / peak.value;
  }
  return of(plan.figures, Figure::kMemory) * widest > of(question.at_most, Figure::kMemory);
}

}  // namespace

double PlanOrder::operator()(const FoundPlan& plan) const {
  const double value = counted(plan, request_.objective);
  if (!plan.times.fed) return value;
  const Seconds alone = plan.times.last();
  return value + kOwnTime * of(bill_.with_waiting(plan.figures, alone - *plan.times.fed),
                               request_.objective);
}

double PlanOrder::counted(const FoundPlan& plan, Figure figure) {
  return of(plan.figures, figure) * (figure == Figure::kMemory ? plan.fuller : plan.slower);
}

bool PlanOrder::keeps(const FoundPlan& plan, const Question& question) {
  for (std::size_t f = 0; f < strategies::kFigures; ++f)
    if (const auto figure = static_cast<Figure>(f);
        figure != Figure::kMemory && counted(plan, figure) > question.at_most[f])
      return false;
  return true;
}

void PlanOrder::take(const step::Step& step, FoundPlan& plan) const {
  const Estimate<Bytes>& peak = memory::fullest(step.memory).peak;
  plan.slower =
      (value_decides() ? step.time.value + step.mean_stall : value_at(step.time, request_.risk)) /
      step.time.value;
  plan.fuller = value_at(peak, request_.risk) / peak.value;
}

Status PlanOrder::rank(std::vector<FoundPlan>& plans, const Question& question) const {
  std::ranges::stable_sort(plans, {}, *this);
  const auto breaks = [&](const FoundPlan& plan) { return !keeps(plan, question); };
  if (!std::ranges::all_of(plans, breaks)) {
    std::erase_if(plans, breaks);
    return {};
  }
  const FoundPlan& first = plans.front();
  std::string nearest = "nearest: " + plan_words(first.training, first.plan);
  for (std::size_t f = 0; f < strategies::kFigures; ++f)
    if (const auto figure = static_cast<Figure>(f);
        of(request_.at_most, figure) < of(strategies::kNoLimits, figure))
      nearest += fmt::format(", {} {}", strategies::kFigureNames[f],
                             figure_words(figure, of(first.figures, figure)));
  return fail("some plans meet the limits by closed forms, but none meets them when simulated",
              "slightly wider limits", nearest);
}

void PlanOrder::prefer_simple(std::vector<FoundPlan>& plans, const Question& question) const {
  if (plans.empty()) return;
  const double fastest = (*this)(plans.front()), most = fastest * (1 + kNoise);
  // Of plans that all wait for samples, those that need less time for themselves are better.
  const FoundPlan& front = plans.front();
  const Seconds alone = front.times.fed ? front.times.last() * (1 + kNoise) : Seconds::s(0);
  const auto end = std::ranges::find_if(plans, [&](const FoundPlan& plan) {
    return (*this)(plan) > most || (front.times.fed && plan.times.last() > alone);
  });
  const auto first = std::ranges::min_element(plans.begin(), end, {}, [&](const FoundPlan& plan) {
    // A risk of too little memory weighs as much as one more setting.
    const std::size_t settings = named_settings(plan.training, plan.plan);
    return std::tuple(
        plan.step ? caution_of(*plan.step) : 0, settings + (is_tight(plan, question) ? 1 : 0),
        std::lround((*this)(plan) / fastest / kSameTime), of(plan.figures, Figure::kMemory));
  });
  std::rotate(plans.begin(), first, first + 1);
}

}  // namespace rehearse::cli
