// Suite: summary statistics of a set of predictions, which every validation shows first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/value.h"
#include "sim/base/estimate.h"

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
  /// Share of the measurements inside their intervals, and the median width of the intervals
  /// relative to the prediction: what the coverage costs.
  std::optional<double> interval_coverage = {}, interval_width = {};
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

/// The intervals of a suite's rows.
class Intervals {
 public:
  template <class Q>
  void add(Q measured, const Estimate<Q>& predicted) {
    inside_ += predicted.low <= measured && measured <= predicted.high;
    widths_.push_back(predicted.high / predicted.value - predicted.low / predicted.value);
  }
  /// Sets both members of the intervals; neither without rows.
  void summarize(SuiteSummary& suite) const;

 private:
  std::size_t inside_ = 0;
  std::vector<double> widths_;
};

/// An element of "suites[]" of the JSON contract, without the name.
Json suite_json(const SuiteSummary& suite);
/// The key "suites" of the JSON contract.
Json json_suites(const std::vector<SuiteSummary>& suites);

}  // namespace rehearse::cli
