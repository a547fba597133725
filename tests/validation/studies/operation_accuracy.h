// How well the laws of operations predict measured rows: shapes that no fit saw on devices with a
// table, devices whose chip was left out of every fit, with and without twenty rows of theirs, and
// whole models as sums of their kernels.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/result.h"

namespace rehearse::cli {

struct OperationRow {
  double error;  ///< predicted ÷ measured - 1
  bool covered;  ///< measured inside the 90 % interval
  double width;  ///< of the interval ÷ predicted
};

/// Rows of one class on one device, predicted in one way.
struct OperationCase {
  std::string suite;  ///< "known", "left out", "twenty rows", "models", …
  std::string kind;   ///< "linear", "bf16 above 100 GFLOP", …
  std::string device;
  std::vector<OperationRow> rows = {};
};

struct OperationErrors {
  std::size_t rows = 0;
  double median = 0, mean = 0, p90 = 0, bias = 0, coverage = 0, worst = 0;
  double width = 0;  ///< median
};
OperationErrors errors_of(const std::vector<OperationRow>& rows);

struct OperationAccuracy {
  std::vector<OperationCase> cases;
  std::vector<std::string> refused;  ///< what was not predicted, and why
};

/// Fits every chip's complement: minutes. Fails where a table is wrong, or none is there.
Result<OperationAccuracy> measure_operation_accuracy(const std::filesystem::path& data);

}  // namespace rehearse::cli
