// Compares suites with those of an earlier run: suites that turned from good to bad, and drifts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/document.h"
#include "cli/validation/suite.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// A suite is good if its median error is at most 10 % and, if it has intervals, at least 80 % of
/// its rows are in their 90 % intervals.
inline constexpr double kGoodMedian = 0.1, kGoodCoverage = 0.8;
bool is_good(const SuiteSummary& suite);

enum class Drift : std::uint8_t {
  kTurnedBad,
  kTurnedGood,
  kWorse,    ///< by its mean error
  kBetter,   ///< likewise
  kChanged,  ///< other rows, or other rows in their intervals, at the same mean error
  kNew,
  kNotMeasured,  ///< this time
  kSame,
};
inline constexpr std::string_view kDriftNames[] = {
    "turned bad", "turned good", "worse", "better", "changed", "new", "not measured", "same"};

struct SuiteDrift {
  std::string name;
  Drift drift;
  std::optional<SuiteSummary> before, after;  ///< one of them at least
};

/// Reads the suites of a JSON result of `validate`. Fails on anything else.
Result<std::vector<SuiteSummary>> read_baseline(const std::filesystem::path& path);

/// Matches suites by name: the current ones in their order, then those that were not measured.
std::vector<SuiteDrift> drift_of(const std::vector<SuiteSummary>& before,
                                 const std::vector<SuiteSummary>& after);

std::size_t count_of(const std::vector<SuiteDrift>& suites, Drift drift);

/// "1 of 12 suites turned bad, 3 changed otherwise"
std::string drift_words(const std::vector<SuiteDrift>& suites);
/// The key "baseline" of the JSON contract, and a table of the changes.
void add_drift(const std::vector<SuiteDrift>& suites, const std::string& file, Document& document);

}  // namespace rehearse::cli
