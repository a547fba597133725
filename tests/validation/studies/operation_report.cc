#include "tests/validation/studies/operation_report.h"

#include <map>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {

std::vector<SuiteSummary> summarize(const OperationAccuracy& accuracy) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<OperationRow>> rows;
  for (const OperationCase& c : accuracy.cases) {
    const std::string name = fmt::format("operations/{}, {}", c.suite, c.kind);
    if (!rows.contains(name)) order.push_back(name);
    std::vector<OperationRow>& all = rows[name];
    all.insert(all.end(), c.rows.begin(), c.rows.end());
  }
  std::vector<SuiteSummary> suites;
  for (const std::string& name : order) {
    std::vector<double> errors;
    for (const OperationRow& r : rows[name]) errors.push_back(r.error);
    SuiteSummary s = summary_of(name, errors);
    const OperationErrors e = errors_of(rows[name]);
    s.interval_coverage = e.coverage;
    s.interval_width = e.width;
    s.blind_rows = s.rows;
    suites.push_back(std::move(s));
  }
  return suites;
}

Table operation_table(const OperationAccuracy& accuracy) {
  Table table({{"predicted", Align::kLeft},
               {"rows of", Align::kLeft},
               {"device", Align::kLeft},
               {"rows"},
               {"median (%)"},
               {"mean (%)"},
               {"p90 (%)"},
               {"bias (%)"},
               {"worst (%)"},
               {"in the interval (%)"},
               {"median width (%)"}});
  for (const OperationCase& c : accuracy.cases) {
    const OperationErrors e = errors_of(c.rows);
    table.add({c.suite, c.kind, c.device, grouped(e.rows), fmt::format("{:.1f}", e.median * 100),
               fmt::format("{:.1f}", e.mean * 100), fmt::format("{:.1f}", e.p90 * 100),
               fmt::format("{:+.1f}", e.bias * 100), fmt::format("{:+.1f}", e.worst * 100),
               fmt::format("{:.0f}", e.coverage * 100), fmt::format("{:.0f}", e.width * 100)});
  }
  return table;
}

std::string operation_section(const OperationAccuracy& accuracy) {
  std::string text =
      "\n## Operations\n\n"
      R"(Rows of published tables that gave no constant.

- *known*: shapes left out of the fit of a device.
- *left out*: the tables of every device of the chip were left out. Constants of attention are refitted
  too; *kernels not named* is told neither the device nor the kernels.
- *twenty rows*: one factor from twenty rows of the device.
- *models*: the sum of a model's kernels in FP32, against its measured forward and backward pass.

)" + operation_table(accuracy).markdown();
  if (!accuracy.refused.empty()) {
    text += "\nNot predicted:\n\n";
    for (const std::string& line : accuracy.refused) text += fmt::format("- {}\n", line);
  }
  return text;
}

}  // namespace rehearse::cli
