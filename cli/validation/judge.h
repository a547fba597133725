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
#include "cli/validation/part.h"
#include "sim/base/csv.h"
#include "sim/base/result.h"
#include "sim/work/fingerprint.h"
#include "sim/work/queue.h"

namespace rehearse::cli {

struct MeasurementKind;

/// A file to judge: a table of measurements, a recording, or neither.
struct MeasuredFile {
  std::filesystem::path path;
  std::optional<CsvTable> table = {};
  std::vector<const MeasurementKind*> kinds = {};  ///< of the table
  bool recording = false;
  std::string skipped = {};                ///< the reason why it is neither
  std::vector<PartSkipped> left_out = {};  ///< rows whose result of a benchmark cannot be read
};

/// The files, and those below folders. CSV files hold measurements, except for op tables: those and all
/// other files are read as recordings. Fails if a path does not exist.
struct MeasuredFiles {
  std::vector<MeasuredFile> files;
  std::vector<std::filesystem::path> links;  ///< to folders, which are not followed
};
Result<MeasuredFiles> measured_files(std::span<const std::filesystem::path> paths);

/// Everything on which their judgement depends: the program, the files, and those that cells name.
Result<work::Fingerprint> fingerprint_of(const MeasuredFiles& of);

/// Judges them, some rows at a time, through the queue.
Result<Judgement> judge(const MeasuredFiles& of, const work::ExecutionOptions& execution);

/// The cells of a row whose columns may be absent. Errors are collected in `status`.
class Cells {
 public:
  Cells(const CsvTable& table, std::size_t row) : table_(table), row_(row) {}

  std::size_t row() const { return row_; }
  /// The text of a cell; empty if the column or its content is missing.
  std::string text(std::string_view column) const;
  /// An empty cell is `otherwise`, or an error without it; a number that is not positive is an
  /// error.
  double positive(std::string_view column, std::optional<double> otherwise = {});
  /// An empty cell is `otherwise`, or an error without it.
  std::size_t choice(std::string_view column, std::span<const std::string_view> names,
                     std::optional<std::size_t> otherwise = {});
  /// The first error.
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
  /// Jobs: the default of the column `group`, and the samples of a step.
  std::string group = {};
  double samples = 0;
  std::optional<step::StepParts> parts = {};  ///< of the step
};

/// An estimate in a unit: in_unit(step.time, &Seconds::us).
template <class Q>
Estimate<double> in_unit(const Estimate<Q>& estimate, double (Q::*unit)() const) {
  return mapped(estimate, unit);
}

/// Predicts a row; fails with the reason if it cannot.
using PredictRow = std::function<Result<Verdict>(Cells& cells)>;

/// A kind of file: its columns, and the prediction of its rows.
struct MeasurementKind {
  std::string_view name;  ///< of its suite: "jobs"
  Method method;          ///< of its predictions
  std::string_view unit;
  std::vector<std::string_view> required;  ///< columns
  std::vector<std::string_view> optional =
      {};  ///< other columns; those with a dot are keys of jobs
  /// REQUIRES: the table outlives the result. While rows are predicted, columns that turn out to be
  /// unused are added to `unknown`.
  PredictRow (*predictor)(const CsvTable& table, std::vector<std::string>& unknown);
};

// Each is defined in a source of its own.
extern const MeasurementKind kMeasuredJobs, kMeasuredMemory, kMeasuredOperations,
    kMeasuredCollectives, kMeasuredPairs, kMeasuredTtft, kMeasuredTpot, kMeasuredOutputRate;

/// Judges the step times of a recording's replay, by host period and by device period, in seconds.
Result<Part> judge_recording(const std::filesystem::path& path);

}  // namespace rehearse::cli
