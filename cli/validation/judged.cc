#include "cli/validation/judged.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

constexpr std::string_view kUseWords[] = {"fitted", "withheld row", "withheld source"};

std::string_view name_of(Use use) { return kUseNames[static_cast<std::size_t>(use)]; }

SuiteSummary summary_of_rows(const std::string& name, const std::vector<const JudgedRow*>& rows) {
  std::vector<double> errors;
  std::size_t intervals = 0, covered = 0;
  for (const JudgedRow* row : rows) {
    errors.push_back(row->error());
    intervals += row->has_interval();
    covered += row->has_interval() && row->covered();
  }
  SuiteSummary summary = summary_of(name, std::move(errors));
  if (intervals > 0)
    summary.interval_coverage = static_cast<double>(covered) / static_cast<double>(intervals);
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

Table use_table(const Judgement& judgement) {
  Table table({{"case", Align::kLeft},
               {"constants", Align::kLeft},
               {"rows"},
               {"mean error (%)"},
               {"median (%)"},
               {"p90 (%)"},
               {"worst (%)"},
               {"bias (%)"},
               {"in the 90 % interval (%)"}});
  for (const JudgedCase& each : judgement.cases)
    for (const Use use : {Use::kFitted, Use::kRowLeftOut, Use::kSourceLeftOut}) {
      const auto rows = rows_where(each, [use](const JudgedRow& row) { return row.use == use; });
      if (rows.empty()) continue;
      const SuiteSummary s = summary_of_rows(each.name, rows);
      table.add({each.name, std::string(kUseWords[static_cast<std::size_t>(use)]), grouped(s.rows),
                 fmt::format("{:.2f}", s.mean_error * 100),
                 fmt::format("{:.2f}", s.median_error * 100),
                 fmt::format("{:.2f}", s.p90_error * 100),
                 fmt::format("{:+.1f}", s.worst_error * 100), fmt::format("{:+.2f}", s.bias * 100),
                 s.interval_coverage ? fmt::format("{:.0f}", *s.interval_coverage * 100) : "–"});
    }
  return table;
}

Table row_table(const Judgement& judgement, bool worst_first) {
  Table table({{"case", Align::kLeft},
               {"row", Align::kLeft},
               {"unit", Align::kLeft},
               {"measured"},
               {"predicted"},
               {"low"},
               {"high"},
               {"error (%)"},
               {"constants", Align::kLeft}});
  std::vector<std::pair<const JudgedCase*, const JudgedRow*>> rows;
  for (const JudgedCase& each : judgement.cases)
    for (const JudgedRow& row : each.rows) rows.emplace_back(&each, &row);
  if (worst_first)
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
      return std::abs(a.second->error()) > std::abs(b.second->error());
    });
  const auto number = [](double value) { return fmt::format("{:.6g}", value); };
  for (const auto& [of, row] : rows)
    table.add({of->name, row->name, std::string(of->unit), number(row->measured),
               number(row->predicted.value), row->has_interval() ? number(row->predicted.low) : "",
               row->has_interval() ? number(row->predicted.high) : "",
               fmt::format("{:+.1f}", row->error() * 100), std::string(name_of(row->use))});
  return table;
}

Table skipped_table(const Judgement& judgement) {
  Table table({{"skipped", Align::kLeft}, {"why", Align::kLeft}, {"first", Align::kLeft}});
  for (const Skipped& each : judgement.skipped)
    table.add({counted(each.count, each.what), each.reason, each.first});
  return table;
}

std::string judgement_text(const Judgement& judgement) {
  constexpr std::size_t kShown = 20;
  std::string text;
  if (!judgement.cases.empty())
    text = use_table(judgement).text() + "\nRows, the largest error first:\n\n" +
           row_table(judgement, true).text(48, kShown);
  if (!judgement.skipped.empty())
    text += fmt::format("{}Not predicted:\n\n{}", text.empty() ? "" : "\n",
                        skipped_table(judgement).text(100));
  return text;
}

std::string judgement_markdown(const Judgement& judgement) {
  std::string text =
      "\n## Errors by use\n\n*Fitted*: the row gave constants of the program. *Left out by row*: "
      "other rows of its source did. *Left out by source*: nothing of its source did.\n\n" +
      use_table(judgement).markdown() + "\n## Rows, the largest error first\n\n" +
      row_table(judgement, true).markdown();
  if (!judgement.skipped.empty())
    text += "\n## Not predicted\n\n" + skipped_table(judgement).markdown();
  return text;
}

void add_rows(const Judgement& judgement, Json& json) {
  json["rows"] = Json::array();
  for (const JudgedCase& each : judgement.cases)
    for (const JudgedRow& row : each.rows) {
      Json predicted = row.has_interval()
                           ? Json{{"value", row.predicted.value},
                                  {"low", row.predicted.low},
                                  {"high", row.predicted.high},
                                  {"unit", each.unit},
                                  {"provenance", to_string(row.predicted.provenance)}}
                           : Json{{"value", row.predicted.value}, {"unit", each.unit}};
      json["rows"].push_back({{"suite", each.name},
                              {"name", row.name},
                              {"measured", {{"value", row.measured}, {"unit", each.unit}}},
                              {"predicted", std::move(predicted)},
                              {"error", row.error()},
                              {"constants", name_of(row.use)}});
    }
  json["skipped"] = Json::array();
  for (const Skipped& each : judgement.skipped)
    json["skipped"].push_back({{"what", each.what},
                               {"count", each.count},
                               {"reason", each.reason},
                               {"first", each.first}});
}

}  // namespace rehearse::cli
