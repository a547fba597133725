#include "tests/validation/studies/memory_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

SuiteSummary summarize_case(const MemoryCase& c) {
  std::vector<double> errors;
  Intervals intervals;
  for (const MemoryRow& r : c.rows) {
    errors.push_back(r.error());
    intervals.add(r.measured, r.predicted);
  }
  SuiteSummary s = summary_of("memory/" + c.name, errors);
  if (c.intervals) intervals.summarize(s);
  (c.blind ? s.blind_rows : s.fitted_rows) = s.rows;
  return s;
}

/// The worst rows of each case.
Table worst_table(const MemoryAccuracy& accuracy) {
  constexpr std::size_t kPerCase = 3;
  constexpr double kBad = 0.10;
  Table table({{"case", Align::kLeft},
               {"row", Align::kLeft},
               {"predicted (GiB)"},
               {"measured (GiB)"},
               {"error"}});
  for (const MemoryCase& c : accuracy.cases) {
    // Ranks that do the same have the same name.
    std::vector<const MemoryRow*> rows;
    for (const MemoryRow& r : c.rows)
      if (std::abs(r.error()) > kBad &&
          std::none_of(rows.begin(), rows.end(),
                       [&](const MemoryRow* other) { return other->name == r.name; }))
        rows.push_back(&r);
    std::stable_sort(rows.begin(), rows.end(), [](const MemoryRow* a, const MemoryRow* b) {
      return std::abs(a->error()) > std::abs(b->error());
    });
    for (std::size_t i = 0; i < std::min(rows.size(), kPerCase); ++i)
      table.add({c.name, rows[i]->name, significant(rows[i]->predicted.value.gib()),
                 significant(rows[i]->measured.gib()), signed_percent(rows[i]->error())});
  }
  return table;
}

}  // namespace

std::vector<SuiteSummary> summarize(const MemoryAccuracy& accuracy) {
  std::vector<SuiteSummary> suites;
  for (const MemoryCase& c : accuracy.cases) suites.push_back(summarize_case(c));
  return suites;
}

Table case_table(const MemoryAccuracy& accuracy) {
  Table table({{"case", Align::kLeft},
               {"blind", Align::kLeft},
               {"rows"},
               {"mean (%)"},
               {"median (%)"},
               {"p90 (%)"},
               {"bias (%)"},
               {"in the interval (%)"}});
  for (const MemoryCase& c : accuracy.cases) {
    const SuiteSummary s = summarize_case(c);
    table.add({c.name, c.blind ? "yes" : "no", grouped(s.rows),
               fmt::format("{:.1f}", s.mean_error * 100),
               fmt::format("{:.1f}", s.median_error * 100),
               fmt::format("{:.1f}", s.p90_error * 100), fmt::format("{:+.1f}", s.bias * 100),
               s.interval_coverage ? fmt::format("{:.0f}", *s.interval_coverage * 100) : "–"});
  }
  return table;
}

Table fit_table(const MemoryAccuracy& accuracy) {
  Table table({{"jobs that ran", Align::kLeft},
               {"rows"},
               {"fits"},
               {"borderline"},
               {"does not fit"},
               {"median share (%)"},
               {"largest share (%)"}});
  for (const FitCheck& f : accuracy.fits)
    table.add({f.name, grouped(f.rows), grouped(f.fits), grouped(f.borderline),
               grouped(f.wrong.size()), fmt::format("{:.0f}", f.median_share * 100),
               fmt::format("{:.0f}", f.largest_share * 100)});
  return table;
}

std::string memory_section(const MemoryAccuracy& accuracy) {
  std::string text =
      "\n## Memory\n\n"
      R"(Parts and peaks against published and measured memory. *Blind*: none of these rows gave a
constant. The interval is the 90 % interval that the program prints. Formulas:
[memory](concepts/memory.md).

)" + case_table(accuracy).markdown() +
      "\n";
  for (const MemoryCase& c : accuracy.cases) text += fmt::format("- *{}*: {}.\n", c.name, c.about);
  text +=
      R"(
### Does it fit?

Jobs that ran, from tables that state what was recomputed: each fitted in memory. Shares are of the
usable memory of the GPU. Within 5 % of it the answer is "borderline". The 32 bytes per element and 6
bytes per logit of MPT were chosen with its rows in sight.

)" + fit_table(accuracy).markdown();
  std::vector<std::string> wrong;
  for (const FitCheck& f : accuracy.fits)
    for (const std::string& w : f.wrong) wrong.push_back(f.name + ", " + w);
  text += "\nWrongly said not to fit:\n\n" + list_of(wrong);
  text += "\n### Bad cases\n\nUp to three rows of each case with an error above 10 %.\n\n" +
          worst_table(accuracy).markdown();
  text += "\nNot predicted:\n\n" + list_of(accuracy.refused);
  return text;
}

}  // namespace rehearse::cli
