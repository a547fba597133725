// Predicted and measured times, by case: what suites of single layers, of recordings
// carried over and of withheld devices have in common, and how they are shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/output/table.h"
#include "sim/base/estimate.h"
#include "sim/base/units.h"
#include "tests/validation/studies/page.h"

namespace rehearse::cli {

struct TimedRow {
  std::string name;
  Seconds measured;
  Estimate<Seconds> predicted;
  bool fitted = false;  ///< constants of the prediction come from this row
  double error() const { return predicted.value / measured - 1; }
};

/// Rows of the same difficulty.
struct TimedCase {
  std::string name;
  std::vector<TimedRow> rows = {};
  std::string reason = {};  ///< why the bad rows are bad, where it is known
  bool sum = false;         ///< of other cases, which hold its rows too
};

struct TimedAccuracy {
  std::vector<TimedCase> cases;
  std::vector<std::string> left_out;  ///< rows that are not predicted, and why
};

/// One for each case with rows that were not fitted, "SUITE/CASE".
std::vector<SuiteSummary> summarize(std::string_view suite, const TimedAccuracy& accuracy);

/// Every row, the worst first.
Table timed_table(const TimedAccuracy& accuracy);

/// Markdown: cases, reasons, the worst rows, rows left out.
std::string timed_section(std::string_view title, std::string_view introduction,
                          const TimedAccuracy& accuracy);

}  // namespace rehearse::cli
