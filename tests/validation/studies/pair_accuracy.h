// How well the law of pairs predicts measured pairs of jobs on one GPU that it was not fitted on.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "models/sharing/pairs.h"
#include "models/sharing/shipped_pairs.h"
#include "sim/base/result.h"
#include "tests/validation/studies/page.h"

namespace rehearse::cli {

struct PairTable {
  std::string gpu;
  std::vector<sharing::MeasuredPair> pairs = {};  ///< each unordered pair once
  std::size_t left_out = 0;                       ///< that did not fit, or have no rate alone
};

/// Gavel's colocated.csv with its isolated.csv: one GPU each, on one server; a pair and its mirror
/// are one. REQUIRES: both in the folder.
Result<std::vector<PairTable>> read_pairs(const std::filesystem::path& folder);

/// The laws that the program ships (models/sharing/shipped_pairs.h), fitted again to the tables
/// below `data`. Fails as read_pairs.
Result<std::vector<sharing::ShippedPairs>> fit_shipped_pairs(const std::filesystem::path& data);

struct PairRow {
  std::string name;
  double predicted, measured;
  double error() const { return predicted / measured - 1; }
};

struct PairCase {
  std::string gpu, from;
  std::optional<double> goal;
  std::size_t fitted = 0;  ///< pairs that a prediction rests on
  std::vector<PairRow> rows = {};
};

struct PairAccuracy {
  std::vector<PairCase> cases = {};
  std::vector<std::string> left_out = {};
};

/// Of tables below `data`; no case where there are none.
Result<PairAccuracy> measure_pair_accuracy(const std::filesystem::path& data);

/// One suite per GPU and way of predicting, "pairs/k80, all other pairs".
std::vector<SuiteSummary> summarize(const PairAccuracy& accuracy);
Table pair_table(const PairAccuracy& accuracy);
/// The section of docs/accuracy.md.
std::string pair_section(const PairAccuracy& accuracy);

}  // namespace rehearse::cli
