// A suite of predictions, summed up: what every validation shows first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/json.h"
#include "cli/output/table.h"

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

/// Of relative errors; all but the last three members.
SuiteSummary summary_of(std::string name, std::vector<double> errors);

Table suite_table(const std::vector<SuiteSummary>& suites);
Json json_suites(const std::vector<SuiteSummary>& suites);

}  // namespace rehearse::cli
