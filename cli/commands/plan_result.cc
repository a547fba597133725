#include "cli/commands/plan_result.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/commands/step_result.h"
#include "cli/config/fidelity_names.h"
#include "cli/output/attribution.h"
#include "cli/planning/plan_words.h"
#include "cli/planning/robustness.h"
#include "sim/base/text.h"
#include "strategies/plan_fields.h"

namespace rehearse::cli {
namespace {

using strategies::Figure, strategies::kFigures;

using Trait = strategies::Field<strategies::Candidate>;

/// Whether a trait distinguishes plans, as a column: the fields that a search varies, except those
/// that follow from others.
bool is_trait(const Trait& trait) {
  return trait.axis.keep != nullptr && trait.said != strategies::Said::kNever;
}

bool differs(const std::vector<FoundPlan>& plans, const Trait& trait) {
  const auto value = [&](const FoundPlan& plan) {
    return trait.at.get({plan.training, plan.plan});
  };
  return std::ranges::any_of(
      plans, [&](const FoundPlan& plan) { return value(plan) != value(plans.front()); });
}

Quantity figure_of(const FoundPlan& plan, Figure figure) {
  static constexpr const Unit* kUnits[kFigures] = {&unit::kTime, &unit::kSize, &unit::kMoney,
                                                   &unit::kEnergy, &unit::kCarbon};
  return {of(plan.figures, figure), *kUnits[static_cast<std::size_t>(figure)]};
}

bool known(const Planned& planned, Figure figure) {
  return planned.found.known[static_cast<std::size_t>(figure)];
}

/// The figures of a plan and its traits; the screen has the traits that differ.
Value plan_fields(const Planned& planned, const FoundPlan& plan,
                  const std::vector<FoundPlan>& others) {
  Value row = {{"", "step time", figure_of(plan, Figure::kStepTime), in::kSeconds},
               {"", "memory", figure_of(plan, Figure::kMemory), in::kGib}};
  const std::pair<Figure, Scale> further[] = {
      {Figure::kCost, in::kUsd}, {Figure::kEnergy, in::kKj}, {Figure::kCarbon, in::kGrams}};
  for (const auto& [figure, scale] : further)
    if (known(planned, figure))
      row.show("", strategies::kFigureNames[static_cast<std::size_t>(figure)],
               figure_of(plan, figure), scale);
  for (const Trait& trait : strategies::plan_fields())
    if (is_trait(trait))
      row.show("", trait.name, value_words(trait, *trait.at.get({plan.training, plan.plan})), {},
               differs(others, trait) ? Look{} : kInTables);
  return row;
}

/// At most `most` plans, evenly spaced, including both ends.
std::vector<FoundPlan> thinned(const std::vector<FoundPlan>& plans, std::size_t most) {
  if (plans.size() <= most) return plans;
  std::vector<FoundPlan> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(plans[i * (plans.size() - 1) / (most - 1)]);
  return some;
}

std::string fixed_text(const JobFile& file) {
  std::vector<std::string> fixed;
  for (const Trait& field : strategies::plan_fields()) {
    const strategies::FieldValue value =
        field.axis.kept ? field.axis.kept(file.axes) : std::nullopt;
    if (value) fixed.push_back(fmt::format("{} {}", field.name, value_words(field, *value)));
  }
  return fmt::format("{}", fmt::join(fixed, ", "));
}

/// How certain it is that the shown plan is the fastest.
std::string robust_text(const Planned& planned) {
  const auto likely = std::ranges::max_element(planned.chance) - planned.chance.begin();
  std::string text = fmt::format("rank 1 is the best of these with {:.0f} % probability",
                                 planned.chance.front() * 100);
  if (likely > 0)
    text += fmt::format(", rank {} with {:.0f} %", likely + 1,
                        planned.chance[static_cast<std::size_t>(likely)] * 100);
  return text + fmt::format(
                    " ({} draws); assumes that all plans share {:.0f} % of the model's error; with "
                    "100 % shared it is {:.0f} %, with none {:.0f} %",
                    grouped(kDraws), kCommonError * 100, planned.chance_if_common.front() * 100,
                    planned.chance_if_own.front() * 100);
}

/// The plans that a few measured steps would decide between.
std::string measure_text(const Planned& planned, const std::vector<std::size_t>& deciding) {
  std::vector<std::string> ranks;
  double together = 0;
  for (const std::size_t i : deciding) {
    ranks.push_back(std::to_string(i + 1));
    together += planned.chance[i];
  }
  return fmt::format("a few steps of ranks {}: one of them is the best with {:.0f} % probability",
                     fmt::join(ranks, ", "), together * 100);
}

/// Why the first plan is not the one with the shortest time.
std::string preference_text(const std::vector<FoundPlan>& plans) {
  const auto fastest = std::ranges::min_element(
      plans, {}, [](const FoundPlan& plan) { return plan.step->time.value; });
  const step::Step &first = *plans.front().step, &step = *fastest->step;
  const double faster = 1 - step.time.value / first.time.value;
  if (faster < kSameTime) return "";
  const auto settings = [](const FoundPlan& plan) {
    return named_settings(plan.training, plan.plan);
  };
  const std::string why =
      caution_of(step) <= caution_of(first)
          ? settings(*fastest) > settings(plans.front()) ? "has more settings" : "may not fit"
      : step.regime.known() ? fmt::format("may stall ({})", step.regime.name)
                            : fmt::format("is of an unknown regime ({})", step.regime.name);
  return fmt::format(
      "rank 1 over rank {}, which is {:.1f} % faster, within the noise of {:.0f} %, and {}",
      fastest - plans.begin() + 1, faster * 100, kNoise * 100, why);
}

/// The slowdown by contention between kinds of communication, as a share of the step; nothing if
/// not all ranks were run.
std::optional<double> contention(const PlanTimes& times) {
  if (!times.message || !times.all_ranks) return std::nullopt;
  return *times.all_ranks / *times.message - 1;
}

double difference(const step::Refereed& refereed) {
  return refereed.simgrid / refereed.messages - 1;
}

/// The step time by each model.
Value model_fields(const PlanTimes& times) {
  Value models = {{"closed", "closed", times.closed, in::kSeconds},
                  {"message", "messages", times.message, in::kSeconds},
                  {"all_ranks", "all ranks", times.all_ranks, in::kSeconds}};
  const std::optional<double> more = contention(times);
  models.show("contention", "contention", more ? Value(change(*more)) : Value());
  if (!times.refereed) return models;
  models.show("without_slowing", "without slowing", times.refereed->messages, in::kSeconds);
  models.show("simgrid", "SimGrid", times.refereed->simgrid, in::kSeconds);
  models.show("difference", "difference", change(difference(*times.refereed)));
  return models;
}

/// Notes on the table of models.
std::vector<std::string> model_notes(const Planned& planned) {
  std::vector<std::string> notes;
  if (planned.file.input) notes.emplace_back("these times exclude input stalls");
  notes.push_back(
      planned.found.all_ranks > 0
          ? fmt::format("{} ran with all ranks, so that concurrent collectives contend for links: "
                        "{}step times equal those of simulate {}",
                        counted(planned.found.all_ranks, "plan"),
                        planned.found.all_ranks < planned.found.best.size() ? "their " : "",
                        *planned.request.confirm == step::Fidelity::kSimgrid ? "--fidelity simgrid"
                                                                             : "--unfold")
          : "too many messages to run all ranks: collectives of different kinds do not contend for "
            "links");
  if (planned.confirmed->plans > 0)
    notes.emplace_back(
        "SimGrid also runs all ranks and does not slow compute during collectives: compare it with "
        "the column to its left");
  if (!planned.confirmed->left_out.empty())
    notes.push_back(fmt::format("SimGrid confirms {} of {}: {}", planned.confirmed->plans,
                                planned.found.best.size(), planned.confirmed->left_out));
  return notes;
}

/// "step_time", "memory", …; null if a figure is unknown.
Value figure_fields(const Planned& planned, const FoundPlan& plan) {
  Value fields;
  for (std::size_t f = 0; f < kFigures; ++f)
    fields[strategies::kFigureNames[f]] =
        planned.found.known[f] ? Value(figure_of(plan, static_cast<Figure>(f))) : Value();
  return fields;
}

}  // namespace

Value without_labels(const Value& value) {
  Value bare = Value::object();
  for (const Entry& field : value.fields())
    if (!field.key.empty()) bare[field.key] = without_labels(field.value);
  if (!bare.fields().empty()) return bare;
  if (value.list().empty()) return value;
  Value list = Value::array();
  for (const Value& each : value.list()) list.push_back(without_labels(each));
  return list;
}

Document plans_document(const Planned& planned) {
  const FoundPlans& found = planned.found;
  const PredictedJob& best = planned.best.front();
  Document d{.command = "plan", .rows = "best", .rows_title = "Plans"};
  d.answer = sentence_of(
      fmt::format("{} on {}, {}", planned.file.name, devices_words(best.step),
                  plan_words(best.file.spec.training, best.file.spec.plan)),
      {range_words(best.step.time, " per step"), regime_words(best.step),
       memory_words(memory::fullest(best.step.memory)),
       largest_part(occupancy_fields(best.step.occupancy)), host_words(best.step),
       fmt::format("best of {} plans by {}{}", grouped(found.candidates_seen),
                   strategies::kFigureNames[static_cast<std::size_t>(planned.request.objective)],
                   planned.request.risk > 0.5
                       ? fmt::format(" with a probability of {:g} %", planned.request.risk * 100)
                       : "")});
  const bool more = found.runs_if_thorough.value_or(0) > found.confirmed;
  d.line(fmt::format(
      "{} plans seen, {} evaluated, {} run ({}){}", grouped(found.candidates_seen),
      grouped(found.candidates_evaluated), grouped(found.confirmed),
      name_of(*planned.request.confirm),
      more ? fmt::format("; --thorough runs {}", grouped(*found.runs_if_thorough)) : ""));
  d["job"] = {{"workload", planned.file.name}, {"devices", best.step.layout.ranks()}};
  d["objective"] = strategies::kFigureNames[static_cast<std::size_t>(planned.request.objective)];
  d["fidelity"] = name_of(*planned.request.confirm);
  d.methods = {Method::kSearch, method_of(*planned.request.confirm)};
  d["candidates_seen"] = found.candidates_seen;
  d["candidates_evaluated"] = found.candidates_evaluated;
  d["candidates_per_s"] = found.candidates_per_s;
  d["evaluated_per_s"] = found.evaluated_per_s;
  d["confirmed"] = found.confirmed;
  d["all_ranks"] = found.all_ranks;
  d.show("", "step time", best.step.time);
  if (knows_peak(best.step)) d.show("", "MFU", share(best.step.model_utilization()));
  for (const Figure figure : {Figure::kCost, Figure::kEnergy, Figure::kCarbon})
    if (known(planned, figure))
      d.show("", strategies::kFigureNames[static_cast<std::size_t>(figure)],
             figure_of(found.best.front(), figure));
  d.show("", "kept as given", fixed_text(planned.file));
  if (found.best.size() > 1) d.show("", "confidence", robust_text(planned));
  const std::vector<std::size_t> deciding = worth_measuring(found.best, planned.chance);
  d["measure"] = Value::array();
  for (const std::size_t i : deciding)
    d["measure"].push_back({{"rank", i + 1}, {"chance", planned.chance[i]}});
  if (!deciding.empty()) d.show("", "measure next", measure_text(planned, deciding));
  if (const std::string why = preference_text(found.best); !why.empty())
    d.show("", "preferred", why);
  d["simgrid"] = nullptr;
  if (planned.confirmed)
    d["simgrid"] = {
        {"confirmed", planned.confirmed->plans},
        {"left_out",
         planned.confirmed->left_out.empty() ? Value() : Value(planned.confirmed->left_out)}};
  Value plans = Value::array(), models = Value::array(), front = Value::array();
  for (std::size_t i = 0; i < planned.best.size(); ++i) {
    Value one = {{"", "rank", i + 1}};
    one.add(plan_fields(planned, found.best[i], found.best));
    one.show("chance", "chance", share(planned.chance[i]), in::kWholePercent);
    one["chance_if_common"] = planned.chance_if_common[i];
    one["chance_if_own"] = planned.chance_if_own[i];
    const Value times = model_fields(found.best[i].times);
    one["models"] = without_labels(times);
    // As in simulate, without the changes, which were not tried for each plan.
    const Value step = without_labels(step_document(planned.best[i]).content);
    for (const Entry& field : step.fields())
      if (field.key != "what_would_help" && field.key != "single_changes")
        one[field.key] = field.value;
    plans.push_back(std::move(one));
    Value model = {{"", "rank", i + 1}};
    model.add(times);
    models.push_back(std::move(model));
  }
  d.show("best", fmt::format("The best {}", counted(planned.best.size(), "plan")),
         std::move(plans));
  if (planned.confirmed) {
    d.show("", "Step time by each model", std::move(models));
    d.show("", "Notes on the models", model_notes(planned));
  }
  d["pareto"] = Value::array();
  for (const FoundPlan& plan : found.front) {
    Value one = {{"plan", plan_json(spec_of(planned.file.spec, plan))}};
    one.add(figure_fields(planned, plan));
    d["pareto"].push_back(std::move(one));
  }
  constexpr std::size_t kShown = 8;
  const std::vector<FoundPlan> shown = thinned(found.front, kShown);
  for (const FoundPlan& plan : shown) front.push_back(plan_fields(planned, plan, shown));
  d.show(
      "",
      fmt::format("Pareto front of step time{} and memory ({} of {}, closed form{})",
                  known(planned, Figure::kCost) ? ", cost" : "", shown.size(), found.front.size(),
                  planned.file.input ? ", samples as soon as the pipeline can" : ""),
      std::move(front));
  std::vector<std::string> notes;
  for (const std::string& line : planned.file.assumed) notes.push_back("assumed " + line);
  notes.insert(notes.end(), planned.file.notes.begin(), planned.file.notes.end());
  d["notes"] = notes;
  notes.insert(notes.end(), best.account.notes.begin(), best.account.notes.end());
  d.show("", "Notes", notes);
  return d;
}

}  // namespace rehearse::cli
