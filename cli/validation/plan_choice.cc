#include "cli/validation/plan_choice.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/statistics.h"

namespace rehearse::cli {
namespace {

using Group = std::vector<const MeasuredPlan*>;

/// Pairs in the measured order minus pairs in the other, and their number.
struct Pairs {
  double agree = 0, count = 0;

  void add(const Group& group) {
    for (std::size_t i = 0; i < group.size(); ++i)
      for (std::size_t j = i + 1; j < group.size(); ++j) {
        const double measured = group[i]->measured - group[j]->measured;
        const double predicted = group[i]->predicted - group[j]->predicted;
        if (measured == 0 || predicted == 0) continue;
        agree += (measured > 0) == (predicted > 0) ? 1 : -1;
        count += 1;
      }
  }
};

bool by_measured(const MeasuredPlan* a, const MeasuredPlan* b) { return a->measured < b->measured; }

/// The least measured time among the first `count`.
double best_of_first(const Group& ranked, std::size_t count) {
  const auto end = ranked.begin() + static_cast<std::ptrdiff_t>(std::min(count, ranked.size()));
  return (*std::min_element(ranked.begin(), end, by_measured))->measured;
}

}  // namespace

std::size_t predicted_best(const std::vector<MeasuredPlan>& group) {
  const auto by_predicted = [](const MeasuredPlan& a, const MeasuredPlan& b) {
    return a.predicted < b.predicted;
  };
  return static_cast<std::size_t>(std::ranges::min_element(group, by_predicted) - group.begin());
}

std::optional<PlanChoice> choice_of(std::string name, const std::vector<MeasuredPlan>& plans) {
  std::map<std::string, Group> groups;
  for (const MeasuredPlan& plan : plans) groups[plan.group].push_back(&plan);
  std::erase_if(groups, [](const auto& group) { return group.second.size() < 2; });
  if (groups.empty()) return std::nullopt;
  PlanChoice choice{.name = std::move(name), .groups = groups.size()};
  Pairs pairs;
  std::vector<double> errors;
  for (auto& [key, group] : groups) {
    choice.plans += group.size();
    pairs.add(group);
    for (const MeasuredPlan* plan : group)
      errors.push_back(std::abs(plan->predicted / plan->measured - 1));
    std::ranges::stable_sort(group, [](const MeasuredPlan* a, const MeasuredPlan* b) {
      return a->predicted < b->predicted;
    });
    const double best = best_of_first(group, group.size());
    const double regret = group.front()->measured / best - 1;
    const double of_three = best_of_first(group, 3) / best - 1;
    choice.regret += regret;
    choice.regret_of_three += of_three;
    choice.worst_regret = std::max(choice.worst_regret, regret);
    choice.worst_of_three = std::max(choice.worst_of_three, of_three);
    choice.best_in_five += best_of_first(group, 5) == best ? 1 : 0;
  }
  for (double* mean : {&choice.regret, &choice.regret_of_three, &choice.best_in_five})
    *mean /= static_cast<double>(groups.size());
  std::ranges::sort(errors);
  choice.median_error = quantile(errors, 0.5);
  if (pairs.count > 0) choice.tau = pairs.agree / pairs.count;
  return choice;
}

Value choice_rows(const std::vector<PlanChoice>& choices) {
  constexpr Scale kPercent{"%", 0.01, 1, true};
  Value rows = Value::array();
  for (const PlanChoice& c : choices)
    rows.push_back(
        {{"name", "table", c.name},
         {"groups", "groups", c.groups},
         {"plans", "plans", c.plans},
         {"tau", "tau", c.tau, {"", 1, 2, true}},
         {"median_error", "median error", share(c.median_error), kPercent},
         {"regret", "regret", share(c.regret), kPercent},
         {"worst_regret", "worst regret", share(c.worst_regret), kPercent},
         {"regret_of_three", "best of first three", share(c.regret_of_three), kPercent},
         {"worst_of_three", "worst of three", share(c.worst_of_three), kPercent},
         {"best_in_five", "best in first five", share(c.best_in_five), in::kWholePercent}});
  return rows;
}

}  // namespace rehearse::cli
