#include "tests/validation/studies/timed_cases.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace rehearse::cli {
namespace {

struct Named {
  const TimedCase* of;
  const TimedRow* row;
};

std::vector<Named> worst_first(const TimedAccuracy& accuracy) {
  std::vector<Named> all;
  for (const TimedCase& each : accuracy.cases)
    if (!each.sum)
      for (const TimedRow& row : each.rows) all.push_back({&each, &row});
  std::stable_sort(all.begin(), all.end(), [](const Named& a, const Named& b) {
    return std::abs(a.row->error()) > std::abs(b.row->error());
  });
  return all;
}

Table table_of(const std::vector<Named>& rows) {
  Table table({{"case", Align::kLeft},
               {"row", Align::kLeft},
               {"measured (ms)"},
               {"predicted (ms)"},
               {"interval (ms)"},
               {"error (%)"},
               {"fitted"}});
  const auto ms = [](Seconds time) { return fmt::format("{:.3f}", time.ms()); };
  for (const Named& each : rows)
    table.add({each.of->name, each.row->name, ms(each.row->measured), ms(each.row->predicted.value),
               fmt::format("{} – {}", ms(each.row->predicted.low), ms(each.row->predicted.high)),
               fmt::format("{:+.1f}", each.row->error() * 100), each.row->fitted ? "yes" : ""});
  return table;
}

}  // namespace

std::vector<SuiteSummary> summarize(std::string_view suite, const TimedAccuracy& accuracy) {
  std::vector<SuiteSummary> suites;
  for (const TimedCase& each : accuracy.cases) {
    std::vector<double> errors;
    Intervals intervals;
    for (const TimedRow& row : each.rows) {
      if (row.fitted) continue;
      errors.push_back(row.error());
      intervals.add(row.measured, row.predicted);
    }
    if (errors.empty()) continue;
    SuiteSummary summary = summary_of(fmt::format("{}/{}", suite, each.name), errors);
    intervals.summarize(summary);
    summary.blind_rows = summary.rows;
    summary.fitted_rows = each.rows.size() - summary.rows;
    suites.push_back(std::move(summary));
  }
  return suites;
}

Table timed_table(const TimedAccuracy& accuracy) { return table_of(worst_first(accuracy)); }

std::string timed_section(std::string_view title, std::string_view introduction,
                          const TimedAccuracy& accuracy) {
  Table cases({{"case", Align::kLeft},
               {"blind rows"},
               {"fitted rows"},
               {"mean error (%)"},
               {"median (%)"},
               {"p90 (%)"},
               {"worst (%)"},
               {"bias (%)"},
               {"in the interval (%)"}});
  std::string reasons;
  for (const TimedCase& each : accuracy.cases) {
    if (!each.reason.empty()) reasons += fmt::format("- {}: {}\n", each.name, each.reason);
    for (const SuiteSummary& s : summarize("", {.cases = {each}, .left_out = {}}))
      cases.add({each.name, fmt::format("{}", s.blind_rows), fmt::format("{}", s.fitted_rows),
                 fmt::format("{:.1f}", s.mean_error * 100),
                 fmt::format("{:.1f}", s.median_error * 100),
                 fmt::format("{:.1f}", s.p90_error * 100),
                 fmt::format("{:+.1f}", s.worst_error * 100), fmt::format("{:+.1f}", s.bias * 100),
                 fmt::format("{:.0f}", *s.interval_coverage * 100)});
  }
  std::string text = fmt::format("\n## {}\n\n{}\n\n{}", title, introduction, cases.markdown());
  if (!reasons.empty()) text += "\n" + reasons;
  std::vector<Named> worst = worst_first(accuracy);
  worst.resize(std::min<std::size_t>(worst.size(), 20));
  text += "\nThe worst rows:\n\n" + table_of(worst).markdown();
  if (!accuracy.left_out.empty()) {
    text += "\nNot predicted:\n\n";
    for (const std::string& line : accuracy.left_out) text += fmt::format("- {}\n", line);
  }
  return text;
}

}  // namespace rehearse::cli
