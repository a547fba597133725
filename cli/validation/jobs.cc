// Measured steps of training jobs, predicted as `rehearse simulate --fidelity closed` does.
#include "cli/validation/job_rows.h"
#include "cli/validation/judge.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {
namespace {

PredictRow jobs_predictor(const CsvTable& table, std::vector<std::string>& unknown) {
  return [rows = JobRows(table), &unknown](Cells& cells) mutable -> Result<Verdict> {
    const Result<JobFile> job = rows.job(cells.row(), unknown);
    if (!job) return forward(job);
    const Result<step::Step> step = step::predict(
        job->spec, job->cluster, {.fidelity = step::Fidelity::kClosed, .counterfactuals = false});
    if (!step) return forward(step);
    return Verdict{cells.positive("step_s"), in_unit(step->time, &Seconds::s)};
  };
}

}  // namespace

const MeasurementKind kMeasuredJobs = {.name = "jobs",
                                       .unit = "s",
                                       .required = {"training.global_batch", "step_s"},
                                       .optional = {},
                                       .predictor = jobs_predictor};

}  // namespace rehearse::cli
