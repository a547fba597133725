// Whole training jobs of published tables, predicted from their configuration alone.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/validation/plan_choice.h"
#include "models/compute/calibration.h"
#include "models/workload/transformer.h"
#include "sim/base/result.h"
#include "strategies/step/step.h"
#include "tests/validation/studies/measured_jobs.h"

namespace rehearse::cli {

struct JobPrediction {
  std::string table, name;
  std::string group;   ///< alike in plans of one model on equal devices; may be empty
  double samples = 0;  ///< of a step
  Seconds measured = Seconds::s(0);
  Estimate<Seconds> step;
  program::Occupancy parts;
  Use use = Use::kSourceLeftOut;  ///< of the constants of the shipped conditions
  double error() const { return step.value / measured - 1; }
};

/// Rows of a table that have the same difficulty: all in one precision, dense or not.
struct JobCase {
  std::string name;  ///< "vtrain-multi", "mpt/fp8", "nemo/fp8/experts"
  std::vector<JobPrediction> rows = {};
};

struct JobAccuracy {
  std::vector<JobCase> cases;
  std::vector<PlanChoice> choices;    ///< by table
  std::vector<std::string> left_out;  ///< rows that are not predicted, and why
};

/// One row, with closed forms. Of several choices that the table leaves open the quickest.
Result<JobPrediction> predict_row(const MeasuredJob& row);
/// The same under other conditions than those of its framework and device, and other calibrations
/// than those that ship.
Result<JobPrediction> predict_row(const MeasuredJob& row, const step::Conditions& conditions,
                                  std::span<const compute::Calibration> calibrations);

/// Each of the jobs. The shipped conditions were fitted on every fifth row of
/// vTrain's, every third of MPT's and every second of NeMo's mixtures, by search on a grid; all
/// others are blind.
JobAccuracy measure_job_accuracy(const std::vector<MeasuredJob>& jobs);

}  // namespace rehearse::cli
