#include "cli/commands/plan_result.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/config/fidelity_names.h"
#include "cli/planning/plan_json.h"
#include "cli/planning/plan_words.h"
#include "cli/planning/robustness.h"
#include "sim/base/text.h"
#include "strategies/plan_fields.h"

namespace rehearse::cli {
namespace {

using strategies::Figure;
using strategies::kFigures;

constexpr std::string_view kFigureUnits[kFigures] = {"s", "B", "USD", "J", "gCO2e"};

using strategies::Candidate;
using strategies::Field;
using strategies::FieldValue;
using Trait = Field<Candidate>;

/// What tells plans apart, as columns: what a search moves, but for what follows from that.
std::vector<const Trait*> traits_of(const std::vector<FoundPlan>& plans, bool every_trait) {
  std::vector<const Trait*> traits;
  for (const Trait& trait : strategies::plan_fields()) {
    if (trait.axis.keep == nullptr || trait.said == strategies::Said::kNever) continue;
    const auto value = [&](const FoundPlan& plan) {
      return trait.at.get({plan.training, plan.plan});
    };
    if (every_trait || std::any_of(plans.begin(), plans.end(), [&](const FoundPlan& plan) {
          return value(plan) != value(plans.front());
        }))
      traits.push_back(&trait);
  }
  return traits;
}

/// Beside step time and memory, which always stand there.
std::vector<Figure> further_figures(const Planned& planned) {
  std::vector<Figure> figures;
  for (const Figure figure : {Figure::kCost, Figure::kEnergy, Figure::kCarbon})
    if (planned.found.known[static_cast<std::size_t>(figure)]) figures.push_back(figure);
  return figures;
}

Table table_of(const Planned& planned, const std::vector<FoundPlan>& plans, bool every_trait) {
  const std::vector<const Trait*> traits = traits_of(plans, every_trait);
  const bool ranked = &plans == &planned.found.best;
  std::vector<Column> columns;
  if (ranked) columns.push_back({"rank"});
  columns.push_back({"step time (s)"});
  columns.push_back({"memory (GiB)"});
  for (const Figure figure : further_figures(planned))
    columns.push_back({figure == Figure::kCost     ? "cost (USD)"
                       : figure == Figure::kEnergy ? "energy (kJ)"
                                                   : "carbon (gCO2e)"});
  for (const Trait* trait : traits) columns.push_back({std::string(trait->name)});
  if (ranked) columns.push_back({"chance (%)"});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const FoundPlan& plan = plans[i];
    std::vector<std::string> row;
    if (ranked) row.push_back(fmt::format("{}", i + 1));
    row.push_back(significant(of(plan.figures, Figure::kStepTime), 4));
    row.push_back(fmt::format("{:.1f}", Bytes::b(of(plan.figures, Figure::kMemory)).gib()));
    for (const Figure figure : further_figures(planned))
      row.push_back(
          significant(of(plan.figures, figure) * (figure == Figure::kEnergy ? 1e-3 : 1), 4));
    for (const Trait* trait : traits)
      row.push_back(value_words(*trait, *trait->at.get({plan.training, plan.plan})));
    if (ranked) row.push_back(fmt::format("{:.0f}", planned.chance[i] * 100));
    table.add(std::move(row));
  }
  return table;
}

/// At most so many, evenly, with both ends.
std::vector<FoundPlan> thinned(const std::vector<FoundPlan>& plans, std::size_t most) {
  if (plans.size() <= most) return plans;
  std::vector<FoundPlan> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(plans[i * (plans.size() - 1) / (most - 1)]);
  return some;
}

std::string best_text(const Planned& planned) {
  const PredictedJob& best = planned.best.front();
  const step::Step& step = best.step;
  const memory::StageMemory& most = memory::fullest(step.memory);
  std::string text = fmt::format(
      "Best by {}: {}.\nA step takes {} ({} – {}) at {:.1f} % MFU and {} of {} on {}",
      strategies::kFigureNames[static_cast<std::size_t>(planned.request.objective)],
      plan_words(best.file.spec.training, best.file.spec.plan), to_string(step.time.value, 4),
      to_string(step.time.low, 4), to_string(step.time.high, 4), step.model_utilization() * 100,
      to_string(most.peak.value), to_string(most.device.usable), most.device.name);
  for (const Figure figure : further_figures(planned))
    text +=
        fmt::format(", {}", figure_words(figure, of(planned.found.best.front().figures, figure)));
  return text + ".\n";
}

std::string fixed_text(const JobFile& file) {
  std::vector<std::string> fixed;
  for (const Field<Candidate>& field : strategies::plan_fields()) {
    const FieldValue value = field.axis.kept ? field.axis.kept(file.axes) : std::nullopt;
    if (value) fixed.push_back(fmt::format("{} {}", field.name, value_words(field, *value)));
  }
  if (fixed.empty()) return "";
  return fmt::format("kept as given: {}\n", fmt::join(fixed, ", "));
}

std::string robust_text(const Planned& planned) {
  const auto likely =
      std::max_element(planned.chance.begin(), planned.chance.end()) - planned.chance.begin();
  std::string text =
      fmt::format("Inside the intervals the first is the best of these in {:.0f} % of {} draws",
                  planned.chance.front() * 100, grouped(kDraws));
  if (likely > 0)
    text += fmt::format(", number {} in {:.0f} %", likely + 1,
                        planned.chance[static_cast<std::size_t>(likely)] * 100);
  return text + fmt::format(
                    ".\nThat takes {:.0f} % of the errors of kernels and links to be common to all "
                    "plans, a judgement: {:.0f} % were they all common, {:.0f} % were none.\n",
                    kCommonError * 100, planned.chance_if_common.front() * 100,
                    planned.chance_if_own.front() * 100);
}

std::string seconds(const std::optional<Seconds>& time) {
  return time ? significant(time->s(), 4) : "";
}

/// What kinds of communication do to each other, as a share of the step; nothing where not all
/// ranks were run.
std::optional<double> contention(const PlanTimes& times) {
  if (!times.message || !times.all_ranks) return std::nullopt;
  return *times.all_ranks / *times.message - 1;
}

double difference(const step::Refereed& refereed) {
  return refereed.simgrid / refereed.messages - 1;
}

/// Rounding to nothing has no sign.
std::string percent(double share) {
  return fmt::format("{:.2f}", std::round(share * 1e4) / 1e2 + 0.0);
}

Table models_table(const std::vector<FoundPlan>& plans, bool all_ranks, bool refereed) {
  std::vector<Column> columns = {{"rank"}, {"closed (s)"}, {"messages (s)"}};
  if (all_ranks) columns.insert(columns.end(), {{"all ranks (s)"}, {"contention (%)"}});
  if (refereed)
    columns.insert(columns.end(), {{"without slowing (s)"}, {"SimGrid (s)"}, {"difference (%)"}});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const PlanTimes& times = plans[i].times;
    std::vector<std::string> row = {fmt::format("{}", i + 1), seconds(times.closed),
                                    seconds(times.message)};
    if (all_ranks) {
      const std::optional<double> more = contention(times);
      row.push_back(seconds(times.all_ranks));
      row.push_back(more ? percent(*more) : "");
    }
    if (refereed) {
      const std::optional<step::Refereed>& by = times.refereed;
      row.push_back(by ? seconds(by->messages) : "");
      row.push_back(by ? seconds(by->simgrid) : "");
      row.push_back(by ? percent(difference(*by)) : "");
    }
    table.add(std::move(row));
  }
  return table;
}

/// How long a step of each takes by each model.
std::string models_text(const Planned& planned) {
  if (!planned.confirmed) return "";
  const std::vector<FoundPlan>& plans = planned.found.best;
  const bool all_ranks = planned.found.all_ranks > 0, refereed = planned.confirmed->plans > 0;
  std::string text = fmt::format("A step by each model{}\n",
                                 planned.file.input ? ", without waiting for samples" : "") +
                     models_table(plans, all_ranks, refereed).text();
  text += all_ranks
              ? fmt::format(
                    "{} plans were run with all ranks, whose kinds of communication contend: "
                    "steps are as simulate {} has them.\n",
                    grouped(planned.found.all_ranks),
                    *planned.request.confirm == step::Fidelity::kSimgrid ? "--fidelity simgrid"
                                                                         : "--unfold")
              : "These are too many messages to run all ranks: kinds of communication do not "
                "contend.\n";
  if (refereed)
    text +=
        "SimGrid runs all ranks too, and slows no computing beside collectives, as the column "
        "before it.\n";
  if (!planned.confirmed->left_out.empty())
    text += fmt::format("SimGrid confirms {} of {}: {}\n", planned.confirmed->plans, plans.size(),
                        planned.confirmed->left_out);
  return text + "\n";
}

Json seconds_json(const std::optional<Seconds>& time) {
  if (!time) return Json();
  return {{"value", time->s()}, {"unit", "s"}};
}

Json models_json(const PlanTimes& times) {
  Json json = {{"closed", seconds_json(times.closed)},
               {"message", seconds_json(times.message)},
               {"all_ranks", seconds_json(times.all_ranks)},
               {"contention", contention(times)}};
  if (!times.refereed) return json;
  json["without_slowing"] = seconds_json(times.refereed->messages);
  json["simgrid"] = seconds_json(times.refereed->simgrid);
  json["difference"] = difference(*times.refereed);
  return json;
}

Json figures_json(const Planned& planned, const FoundPlan& plan) {
  Json json = Json::object();
  for (std::size_t f = 0; f < kFigures; ++f) {
    if (!planned.found.known[f])
      json[strategies::kFigureNames[f]] = Json();
    else
      json[strategies::kFigureNames[f]] = {{"value", plan.figures[f]}, {"unit", kFigureUnits[f]}};
  }
  return json;
}

}  // namespace

Table plans_table(const Planned& planned) { return table_of(planned, planned.found.best, true); }

std::string plans_text(const Planned& planned) {
  const FoundPlans& found = planned.found;
  std::string text = fmt::format(
      "{} on {} devices: {} plans, of which {} were evaluated and {} run ({})\n\n",
      planned.file.name, grouped(planned.best.front().step.layout.ranks()),
      grouped(found.candidates_seen), grouped(found.candidates_evaluated), grouped(found.confirmed),
      kFidelityNames[static_cast<int>(*planned.request.confirm)]);
  text += best_text(planned) + "\n";
  if (found.best.size() > 1) {
    text += fmt::format("The {} best, and what tells them apart\n", found.best.size());
    text += table_of(planned, found.best, false).text();
    text += robust_text(planned) + "\n";
  }
  text += models_text(planned);
  constexpr std::size_t kShown = 8;
  const std::vector<FoundPlan> front = thinned(found.front, kShown);
  text += fmt::format(
      "Step time{} against memory: none is beaten in both ({} of {}, closed form{})\n",
      found.known[static_cast<std::size_t>(Figure::kCost)] ? " and cost" : "", front.size(),
      found.front.size(), planned.file.input ? ", samples as soon as the pipeline can" : "");
  text += table_of(planned, front, false).text();
  text += "\n" + fixed_text(planned.file);
  for (const std::string& line : planned.file.assumed) text += "assumed " + line + "\n";
  for (const std::string& line : planned.file.notes) text += line + "\n";
  for (const std::string& line : planned.best.front().account.notes) text += line + "\n";
  return text;
}

Json plans_json(const Planned& planned) {
  const FoundPlans& found = planned.found;
  Json json = json_root("plan");
  json["job"] = {{"workload", planned.file.name},
                 {"devices", planned.best.front().step.layout.ranks()}};
  json["objective"] = strategies::kFigureNames[static_cast<std::size_t>(planned.request.objective)];
  json["fidelity"] = kFidelityNames[static_cast<int>(*planned.request.confirm)];
  json["candidates_seen"] = found.candidates_seen;
  json["candidates_evaluated"] = found.candidates_evaluated;
  json["candidates_per_s"] = found.candidates_per_s;
  json["evaluated_per_s"] = found.evaluated_per_s;
  json["confirmed"] = found.confirmed;
  json["all_ranks"] = found.all_ranks;
  json["simgrid"] = Json();
  if (planned.confirmed)
    json["simgrid"] = {
        {"confirmed", planned.confirmed->plans},
        {"left_out",
         planned.confirmed->left_out.empty() ? Json() : Json(planned.confirmed->left_out)}};
  json["best"] = Json::array();
  for (std::size_t i = 0; i < planned.best.size(); ++i) {
    Json one = Json::object();
    one["chance"] = planned.chance[i];
    one["chance_if_common"] = planned.chance_if_common[i];
    one["chance_if_own"] = planned.chance_if_own[i];
    one["models"] = models_json(found.best[i].times);
    // As simulate, but for what says which command it is.
    const Json step = step_json(planned.best[i]);
    for (const auto& [key, value] : std::get<Json::Object>(step.value()))
      if (key != "schema" && key != "command" && key != "what_would_help") one[key] = value;
    json["best"].push_back(std::move(one));
  }
  json["pareto"] = Json::array();
  for (const FoundPlan& plan : found.front) {
    Json one = {{"plan", plan_json(spec_of(planned.file.spec, plan))}};
    const Json figures = figures_json(planned, plan);
    for (const auto& [key, value] : std::get<Json::Object>(figures.value())) one[key] = value;
    json["pareto"].push_back(std::move(one));
  }
  Json notes = Json::array();
  for (const std::string& line : planned.file.assumed) notes.push_back("assumed " + line);
  for (const std::string& line : planned.file.notes) notes.push_back(line);
  json["notes"] = std::move(notes);
  return json;
}

}  // namespace rehearse::cli
