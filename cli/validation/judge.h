// Predicts the rows of files of measurements (docs/formats/measurements.md).
//
// The columns of a file determine its kind. A row with an unknown GPU, model or number is skipped
// and counted with the reason, and so is an unknown column. Neither ends the run.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/validation/judged.h"
#include "sim/base/csv.h"
#include "sim/base/progress.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// Files, and folders with files below them. A file that is no CSV is read as a recording. Fails on
/// a path that is not there, and where nothing could be predicted.
Result<Judgement> judge(std::span<const std::filesystem::path> paths, const Progress& progress);

/// The cells of a row whose columns may be absent. Errors are collected for `status`.
class Cells {
 public:
  Cells(const CsvTable& table, std::size_t row) : table_(table), row_(row) {}

  std::size_t row() const { return row_; }
  /// Empty where there is no such column, or nothing in it.
  std::string text(std::string_view column) const;
  /// An empty cell is `otherwise`, or wrong without one; so is a number that is not positive.
  double positive(std::string_view column, std::optional<double> otherwise = {});
  /// An empty cell is `otherwise`, or wrong without one.
  std::size_t choice(std::string_view column, std::span<const std::string_view> names,
                     std::optional<std::size_t> otherwise = {});
  /// The first thing that was wrong.
  Status status() const;

 private:
  const CsvTable& table_;
  std::size_t row_;
  Error errors_;
};

/// A measurement and its prediction, in the unit of the kind of file.
struct Verdict {
  double measured;
  Estimate<double> predicted;
};

/// An estimate in a unit: in_unit(step.time, &Seconds::us).
template <class Q>
Estimate<double> in_unit(const Estimate<Q>& estimate, double (Q::*unit)() const) {
  return mapped(estimate, unit);
}

/// Predicts a row; fails with why it cannot.
using PredictRow = std::function<Result<Verdict>(Cells& cells)>;

/// A kind of file: its columns, and the prediction of its rows.
struct MeasurementKind {
  std::string_view name;  ///< of its suite: "jobs"
  std::string_view unit;
  std::vector<std::string_view> required;  ///< columns
  std::vector<std::string_view> optional;  ///< other columns; those with a dot are keys of jobs
  /// REQUIRES: the table outlives the result. `unknown` takes columns that turn out to be of no
  /// use, as rows are predicted.
  PredictRow (*predictor)(const CsvTable& table, std::vector<std::string>& unknown);
};

// One source each.
extern const MeasurementKind kMeasuredJobs, kMeasuredMemory, kMeasuredOperations,
    kMeasuredCollectives, kMeasuredPairs;

/// The steps of its replay, by the period of the host and that of the device.
Status judge_recording(const std::filesystem::path& path, Judgement& into);

}  // namespace rehearse::cli
