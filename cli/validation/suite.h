// Suite: summary statistics of a set of predictions, which every validation shows first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/value.h"

namespace rehearse::cli {

/// The errors of a suite of predictions.
struct SuiteSummary {
  std::string name;
  std::size_t rows = 0;
  double mean_error = 0;  ///< of |error|, as are the next two
  double median_error = 0;
  double p90_error = 0;
  double worst_error = 0;  ///< with its sign
  double bias = 0;         ///< mean signed error
  std::optional<double> interval_coverage = {};
  std::size_t fitted_rows = 0;  ///< their own data determined the constants
  std::size_t blind_rows = 0;   ///< their data was not used
};

/// An error of a suite and its name in JSON.
struct SuiteError {
  const char* key;
  double SuiteSummary::*value;
};
inline constexpr SuiteError kSuiteErrors[] = {{"mean_error", &SuiteSummary::mean_error},
                                              {"median_error", &SuiteSummary::median_error},
                                              {"p90_error", &SuiteSummary::p90_error},
                                              {"worst_error", &SuiteSummary::worst_error},
                                              {"bias", &SuiteSummary::bias}};

/// Summarizes relative errors, without the last three members.
SuiteSummary summary_of(std::string name, const std::vector<double>& errors);

/// An element of "suites[]" of the JSON contract, without the name.
Json suite_json(const SuiteSummary& suite);
/// The key "suites" of the JSON contract.
Json json_suites(const std::vector<SuiteSummary>& suites);

}  // namespace rehearse::cli
