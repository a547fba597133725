// The accuracy of replays as text, tables and JSON.
#pragma once

#include <string>

#include "cli/output/json.h"
#include "cli/output/table.h"
#include "cli/validation/replay_accuracy.h"

namespace rehearse::cli {

/// Errors of a suite of predictions.
struct SuiteSummary {
  std::string name;
  std::size_t rows = 0;
  double median_error = 0;  ///< of |error|
  double p90_error = 0;
  double worst_error = 0;  ///< with its sign
  double bias = 0;         ///< mean error
  std::optional<double> interval_coverage = {};
  std::size_t fitted_rows = 0;  ///< whose own data the prediction's constants come from
  std::size_t blind_rows = 0;   ///< whose data were not used
};

std::vector<SuiteSummary> summarize(const ReplayAccuracy& accuracy);

Table suite_table(const std::vector<SuiteSummary>& suites);
/// One row per recording.
Table recording_table(const ReplayAccuracy& accuracy);

/// docs/accuracy.md.
std::string accuracy_page(const ReplayAccuracy& accuracy);

Json json_suites(const std::vector<SuiteSummary>& suites);

}  // namespace rehearse::cli
