#include "cli/validation/judged.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

constexpr Scale kErrors{"%", 0.01, 2, true};

std::string_view name_of(Use use) { return kUseNames[static_cast<std::size_t>(use)]; }

SuiteSummary summary_of_rows(const std::string& name, const std::vector<const JudgedRow*>& rows) {
  std::vector<double> errors;
  Intervals intervals;
  for (const JudgedRow* row : rows) {
    errors.push_back(row->error());
    if (row->has_interval()) intervals.add(row->measured, row->predicted);
  }
  SuiteSummary summary = summary_of(name, errors);
  intervals.summarize(summary);
  return summary;
}

template <class Wanted>
std::vector<const JudgedRow*> rows_where(const JudgedCase& of, const Wanted& wanted) {
  std::vector<const JudgedRow*> rows;
  for (const JudgedRow& row : of.rows)
    if (wanted(row)) rows.push_back(&row);
  return rows;
}

}  // namespace

JudgedCase& Judgement::case_of(const std::string& name, std::string_view unit) {
  for (JudgedCase& known : cases)
    if (known.name == name) return known;
  cases.push_back({.name = name, .unit = unit});
  return cases.back();
}

void Judgement::skip(std::string_view what, std::string reason, std::string first) {
  for (Skipped& known : skipped)
    if (known.what == what && known.reason == reason) {
      ++known.count;
      return;
    }
  skipped.push_back({what, std::move(reason), std::move(first)});
}

std::vector<SuiteSummary> summarize(const Judgement& judgement) {
  std::vector<SuiteSummary> suites;
  for (const JudgedCase& each : judgement.cases) {
    std::vector<const JudgedRow*> rows =
        rows_where(each, [](const JudgedRow& row) { return row.use != Use::kFitted; });
    const std::size_t blind = rows.size();
    if (rows.empty()) rows = rows_where(each, [](const JudgedRow&) { return true; });
    SuiteSummary suite = summary_of_rows(each.name, rows);
    suite.blind_rows = blind;
    suite.fitted_rows = each.rows.size() - blind;
    suites.push_back(std::move(suite));
  }
  return suites;
}

namespace {

/// The plans of one group: of one job on equal devices.
struct GroupOfPlans {
  std::vector<MeasuredPlan> plans;
  std::vector<const JudgedRow*> rows;  ///< of the plans
};
using TableOfPlans = std::map<std::string, GroupOfPlans>;

MeasuredPlan plan_of(const JudgedRow& row, double step) {
  return {row.group, row.measured / row.samples, step / row.samples};
}

/// Adds the plans of a group but the first, as predicted after its step was measured. A step that no
/// factors explain changes nothing.
void add_after_first(const GroupOfPlans& group, std::vector<MeasuredPlan>& plans) {
  constexpr std::size_t kFewest = 3;  // a choice of two remains
  if (group.plans.size() < kFewest) return;
  const JudgedRow& first = *group.rows[predicted_best(group.plans)];
  const step::StepParts* const known[] = {&*first.parts};
  const Seconds measured[] = {Seconds::s(first.measured)};
  const Result<step::FactorFit> fit = step::fit_parts(known, measured);
  for (const JudgedRow* row : group.rows)
    if (row != &first)
      plans.push_back(plan_of(
          *row, fit ? step::corrected(*row->parts, *fit, known).value.s() : row->predicted.value));
}

}  // namespace

std::vector<PlanChoice> choices_of(const Judgement& judgement) {
  std::vector<std::string> names;
  std::map<std::string, TableOfPlans> tables;
  for (const JudgedCase& each : judgement.cases)
    for (const JudgedRow& row : each.rows) {
      if (row.group.empty()) continue;
      // "jobs/mpt/fp8": the table is "mpt".
      const std::string_view table = split(each.name, '/').at(1);
      const auto [found, is_new] = tables.try_emplace(std::string(table));
      if (is_new) names.emplace_back(table);
      GroupOfPlans& group = found->second[row.group];
      group.plans.push_back(plan_of(row, row.predicted.value));
      group.rows.push_back(&row);
    }
  std::vector<PlanChoice> choices;
  const auto add = [&](const std::string& name, const std::vector<MeasuredPlan>& plans) {
    if (std::optional<PlanChoice> choice = choice_of(name, plans))
      choices.push_back(std::move(*choice));
  };
  for (const std::string& name : names) {
    std::vector<MeasuredPlan> all, others;
    for (const auto& [key, group] : tables[name]) {
      all.insert(all.end(), group.plans.begin(), group.plans.end());
      add_after_first(group, others);
    }
    add(name, all);
    add(name + ", first step given", others);
  }
  return choices;
}

namespace {

/// Errors of each case, rows of each use apart.
Value use_rows(const Judgement& judgement) {
  Value table = Value::array();
  for (const JudgedCase& each : judgement.cases)
    for (const Use use : {Use::kFitted, Use::kRowLeftOut, Use::kSourceLeftOut}) {
      const auto rows = rows_where(each, [use](const JudgedRow& row) { return row.use == use; });
      if (rows.empty()) continue;
      const SuiteSummary s = summary_of_rows(each.name, rows);
      table.push_back(
          {{"", "case", each.name},
           {"", "constants", kUseWords[static_cast<std::size_t>(use)]},
           {"", "rows", s.rows},
           {"", "mean error", share(s.mean_error), kErrors},
           {"", "median", share(s.median_error), kErrors},
           {"", "p90", share(s.p90_error), kErrors},
           {"", "worst", change(s.worst_error), kErrors},
           {"", "bias", change(s.bias), kErrors},
           {"", "in the 90 % interval",
            s.interval_coverage ? Value(share(*s.interval_coverage)) : Value("–"),
            in::kWholePercent},
           {"", "median width", s.interval_width ? Value(share(*s.interval_width)) : Value("–"),
            in::kWholePercent}});
    }
  return table;
}

/// Numbers of tables are in the unit that the row names.
Value row_fields(const JudgedCase& of, const JudgedRow& row) {
  Value predicted = {{"value", row.predicted.value}, {"unit", of.unit}};
  if (row.has_interval()) {
    predicted["low"] = row.predicted.low;
    predicted["high"] = row.predicted.high;
    predicted["provenance"] = to_string(row.predicted.provenance);
  }
  Value fields = {{"suite", "case", of.name},
                  {"name", "row", row.name},
                  {"", "unit", of.unit},
                  {"measured", {{"value", row.measured}, {"unit", of.unit}}},
                  {"", "measured", row.measured},
                  {"predicted", std::move(predicted)},
                  {"", "predicted", row.predicted.value}};
  fields.show("", "low", row.has_interval() ? Value(row.predicted.low) : Value());
  fields.show("", "high", row.has_interval() ? Value(row.predicted.high) : Value());
  fields.show("error", "error", change(row.error()));
  fields.show("constants", "constants", name_of(row.use));
  return fields;
}

}  // namespace

void add_judgement(const Judgement& judgement, Document& d) {
  constexpr std::size_t kShown = 20;
  std::vector<std::pair<double, Value>> worst;
  Value rows = Value::array(), shown = Value::array(), skipped = Value::array();
  for (const JudgedCase& each : judgement.cases)
    for (const JudgedRow& row : each.rows) {
      rows.push_back(row_fields(each, row));
      worst.emplace_back(std::abs(row.error()), rows.list().back());
    }
  std::ranges::stable_sort(worst, [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; i < std::min(kShown, worst.size()); ++i)
    shown.push_back(std::move(worst[i].second));
  for (const Skipped& each : judgement.skipped)
    skipped.push_back({{"", "skipped", counted(each.count, each.what)},
                       {"what", each.what},
                       {"count", each.count},
                       {"reason", "why", each.reason, {}, kProse},
                       {"first", "first", each.first}});
  d.show("", "Errors by use (fitted rows gave constants of the program)", use_rows(judgement));
  if (Value choices = choice_rows(choices_of(judgement)); !choices.list().empty())
    d.show("choices",
           "Choosing among measured plans of one job on equal devices (regret: time "
           "lost against the best plan)",
           std::move(choices));
  d.show("", fmt::format("Largest errors of {}", counted(rows.list().size(), "row")),
         std::move(shown));
  d.show("rows", "Rows", std::move(rows), {}, kInTables);
  d.show("skipped", "Not predicted", std::move(skipped));
}

}  // namespace rehearse::cli
