// Measured steps of training jobs, predicted as `rehearse simulate --fidelity closed` does.
#include <fmt/core.h>

#include "cli/validation/job_rows.h"
#include "cli/validation/judge.h"
#include "sim/base/text.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {
namespace {

/// The workload and the cluster of a row: equal for plans of one job on equal devices.
std::string group_of(const CsvTable& table, std::size_t row) {
  std::string group;
  for (const std::string& column : table.columns())
    if (column.starts_with("workload.") || column.starts_with("cluster."))
      group += fmt::format("{},", trim(table.cell(row, column)));
  return group;
}

PredictRow jobs_predictor(const CsvTable& table, std::vector<std::string>& unknown) {
  return [rows = JobRows(table), &table, &unknown](Cells& cells) mutable -> Result<Verdict> {
    const JobFile job = TRY(rows.job(cells.row(), unknown));
    const step::Step step = TRY(step::predict(
        job.spec, job.cluster, {.fidelity = step::Fidelity::kClosed, .counterfactuals = false}));
    return Verdict{.measured = cells.positive("step_s"),
                   .predicted = in_unit(step.time, &Seconds::s),
                   .group = group_of(table, cells.row()),
                   .samples = step.layout.samples_per_step,
                   .parts = step::parts_of(step, job.spec, job.cluster)};
  };
}

}  // namespace

const MeasurementKind kMeasuredJobs = {.name = "jobs",
                                       .method = Method::kClosed,
                                       .unit = "s",
                                       .required = {"training.global_batch", "step_s"},
                                       .predictor = jobs_predictor};

}  // namespace rehearse::cli
