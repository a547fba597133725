// Measured peaks of device memory: by default, reserved by the framework's allocator on the fullest
// rank.
#include "models/memory/memory.h"

#include "cli/validation/job_rows.h"
#include "cli/validation/judge.h"
#include "strategies/step/devices.h"
#include "strategies/step/fit_recompute.h"

namespace rehearse::cli {
namespace {

/// The bytes that a measurement counts, and the stage whose rank was measured.
enum class Counted : std::uint8_t { kReserved, kAllocated, kDevice };
constexpr std::string_view kCountedNames[] = {"reserved", "allocated", "device"};
enum class Of : std::uint8_t { kFullest, kFirst, kLast };
constexpr std::string_view kOfNames[] = {"fullest", "first", "last"};

const memory::StageMemory& stage_of(const std::vector<memory::StageMemory>& memory, Of of) {
  return of == Of::kFirst ? memory.front() : of == Of::kLast ? memory.back() : fullest(memory);
}

const Estimate<Bytes>& peak_of(const memory::StageMemory& stage, Counted counted) {
  return counted == Counted::kDevice     ? stage.peak
         : counted == Counted::kReserved ? stage.reserved
                                         : stage.allocated;
}

PredictRow memory_predictor(const CsvTable& table, std::vector<std::string>& unknown) {
  return [rows = JobRows(table), &unknown](Cells& cells) mutable -> Result<Verdict> {
    const auto counted = static_cast<Counted>(cells.choice("counted", kCountedNames, 0));
    const auto of = static_cast<Of>(cells.choice("stage", kOfNames, 0));
    const JobFile job = TRY(rows.job(cells.row(), unknown));
    const workload::Layout layout =
        TRY(step::lay_out_on(job.cluster, job.spec.workload, job.spec.training, job.spec.plan));
    const std::vector<memory::StageMemory> memory = TRY(step::memory_on(layout, job.cluster));
    return Verdict{cells.positive("peak_gib"),
                   in_unit(peak_of(stage_of(memory, of), counted), &Bytes::gib)};
  };
}

}  // namespace

const MeasurementKind kMeasuredMemory = {.name = "memory",
                                         .method = Method::kMemory,
                                         .unit = "GiB",
                                         .required = {"training.global_batch", "peak_gib"},
                                         .optional = {"counted", "stage"},
                                         .predictor = memory_predictor};

}  // namespace rehearse::cli
