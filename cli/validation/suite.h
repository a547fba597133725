// Suite: summary statistics of a set of predictions, which every validation shows first.
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
  double mean_error = 0;  ///< of |error|, as the next two
  double median_error = 0;
  double p90_error = 0;
  double worst_error = 0;  ///< with its sign
  double bias = 0;         ///< mean with signs
  std::optional<double> interval_coverage = {};
  std::size_t fitted_rows = 0;  ///< whose own data the prediction's constants come from
  std::size_t blind_rows = 0;   ///< whose data were not used
};

/// The summary of relative errors, without the last three members.
SuiteSummary summary_of(std::string name, std::vector<double> errors);

/// What part of `sorted` lies below, between its values linearly: 0.5 is the median. 0 of none.
double quantile(const std::vector<double>& sorted, double part);

/// A Markdown list; "None." where there is nothing.
std::string list_of(const std::vector<std::string>& items);

Table suite_table(const std::vector<SuiteSummary>& suites);
Json json_suites(const std::vector<SuiteSummary>& suites);

}  // namespace rehearse::cli
