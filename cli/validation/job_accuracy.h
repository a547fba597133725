// Whole training jobs of published tables, predicted from their configuration alone.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "cli/validation/job_tables/job_row.h"
#include "cli/validation/suite.h"
#include "models/step/step.h"
#include "sim/base/result.h"

namespace rehearse::cli {

struct JobPrediction {
  JobRow row;
  Seconds measured = Seconds::s(0);
  Estimate<Seconds> step;
  step::Breakdown parts;
  double error() const { return step.value / measured - 1; }
  bool inside() const { return step.low <= measured && measured <= step.high; }
};

struct JobTableAccuracy {
  std::string table;
  std::vector<JobPrediction> rows;
  std::vector<std::string> left_out;  ///< rows that are not predicted, and why
  /// Kendall's tau of plans of one model on equally many devices; absent without such pairs.
  std::optional<double> ordering;
};

/// Changes the conditions that a row is predicted under; for fits.
using Adjust = std::function<void(const JobRow&, step::Spec&)>;

/// One row, with closed forms. Of several choices that the table leaves open the quickest.
Result<JobPrediction> predict_row(const JobRow& row, const Adjust& adjust = {});

/// Every table of jobs in the folder.
Result<std::vector<JobTableAccuracy>> measure_job_accuracy(const std::filesystem::path& data);

std::vector<SuiteSummary> summarize(const std::vector<JobTableAccuracy>& tables);
/// Every row; for people.
Table job_row_table(const std::vector<JobTableAccuracy>& tables);
/// Of the page of accuracies, as Markdown.
std::string job_section(const std::vector<JobTableAccuracy>& tables);

}  // namespace rehearse::cli
