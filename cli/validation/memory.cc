// Measured peaks of device memory: reserved by the framework's allocator on the fullest rank.
#include "models/memory/memory.h"

#include "cli/validation/job_rows.h"
#include "cli/validation/judge.h"
#include "strategies/lay_out.h"
#include "strategies/step/devices.h"

namespace rehearse::cli {
namespace {

PredictRow memory_predictor(const CsvTable& table, std::vector<std::string>& unknown) {
  return [rows = JobRows(table), &unknown](Cells& cells) mutable -> Result<Verdict> {
    const Result<JobFile> job = rows.job(cells.row(), unknown);
    if (!job) return forward(job);
    const Result<workload::Layout> layout =
        strategies::lay_out(job->spec.workload, job->spec.training, job->spec.plan);
    if (!layout) return forward(layout);
    const Result<std::vector<memory::StageMemory>> memory = step::memory_on(*layout, job->cluster);
    if (!memory) return forward(memory);
    const memory::StageMemory& fullest = memory::fullest(*memory);
    // The driver's and NCCL's contexts are outside the allocator.
    Estimate<Bytes> peak = fullest.peak;
    for (Bytes* bytes : {&peak.value, &peak.low, &peak.high})
      *bytes = *bytes - fullest.parts.context;
    return Verdict{cells.positive("peak_gib"), in_unit(peak, &Bytes::gib)};
  };
}

}  // namespace

const MeasurementKind kMeasuredMemory = {.name = "memory",
                                         .unit = "GiB",
                                         .required = {"training.global_batch", "peak_gib"},
                                         .optional = {},
                                         .predictor = memory_predictor};

}  // namespace rehearse::cli
