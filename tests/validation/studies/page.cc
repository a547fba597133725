#include "tests/validation/studies/page.h"

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

std::string percent_of(double ratio, int decimals) {
  return fmt::format("{:.{}f} %", ratio * 100, decimals);
}

}  // namespace

std::string list_of(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += "- " + item + "\n";
  return text.empty() ? "None.\n" : text;
}

Table suite_table(const std::vector<SuiteSummary>& suites) {
  Table table({{"suite", Align::kLeft},
               {"rows"},
               {"mean error"},
               {"median error"},
               {"p90 error"},
               {"worst error"},
               {"bias"},
               {"in the interval"},
               {"median width"},
               {"fitted rows"},
               {"blind rows"}});
  for (const SuiteSummary& s : suites)
    table.add({s.name, fmt::format("{}", s.rows), percent_of(s.mean_error, 2),
               percent_of(s.median_error, 2), percent_of(s.p90_error, 2),
               signed_percent(s.worst_error), signed_percent(s.bias),
               s.interval_coverage ? percent_of(*s.interval_coverage, 0) : "–",
               s.interval_width ? percent_of(*s.interval_width, 0) : "–",
               fmt::format("{}", s.fitted_rows), fmt::format("{}", s.blind_rows)});
  return table;
}

}  // namespace rehearse::cli
