#include <array>

#include "cli/validation/job_tables/job_tables.h"
#include "cli/validation/job_tables/reading.h"
#include "cli/validation/job_tables/recalled_files.h"

namespace rehearse::cli {
namespace {

constexpr std::string_view kNoYes[] = {"no", "yes"};
/// In the order of Implementation.
constexpr std::string_view kImplementationNames[] = {"megatron_2021", "megatron_2022",
                                                     "megatron_flash"};

bool yes(const CsvRow& row, std::string_view column) { return row.choice(column, kNoYes) == 1; }

JobRow read(const CsvRow& row) {
  JobRow job{.table = row.required("table"), .name = row.required("job")};
  job.implementation =
      static_cast<Implementation>(row.choice("implementation", kImplementationNames));
  job.model = {.hidden = row.required_count("hidden"),
               .layers = row.required_count("layers"),
               .heads = row.required_count("heads"),
               .kv_heads = row.required_count("kv_heads"),
               .feed_forward = row.required_count("feed_forward"),
               .vocabulary = row.required_count("vocabulary"),
               .sequence = row.required_count("sequence"),
               .gated = yes(row, "gated")};
  job.model.head_size = job.model.hidden / job.model.heads;
  job.model.rms_norm = job.model.gated;
  job.training.global_batch = row.required_number("global_batch");
  job.training.microbatch = row.required_number("microbatch");
  job.training.dtype = static_cast<workload::Dtype>(row.choice("dtype", workload::kDtypeNames));
  job.training.recompute =
      static_cast<strategies::Recompute>(row.choice("recompute", strategies::kRecomputeNames));
  job.plan.data = row.required_count("data");
  job.plan.tensor = row.required_count("tensor");
  job.plan.pipeline = row.required_count("pipeline");
  job.plan.context = row.required_count("context");
  job.plan.interleave = row.required_count("interleave");
  if (job.plan.interleave > 1) job.plan.schedule = strategies::Schedule::kInterleaved;
  job.plan.sequence_parallel = yes(row, "sequence_parallel");
  job.plan.zero = row.required_count("zero");
  job.plan.overlap_gradients = false;
  job.device = row.required("device");
  if (!set_devices(job, row.required_count("devices"), 8))
    row.report("devices", "no whole nodes", "a multiple of 8");
  job.node_network = row.required_quantity<ByteRate>("node_network_gbit", 1e9 / 8);
  job.assumed = {row.required("assumed")};
  set_step(job, Seconds::s(row.required_number("step_s")));
  return job;
}

}  // namespace

std::vector<JobTable> recalled_jobs() {
  std::vector<JobTable> tables;
  for (JobRow& job :
       shipped_rows<JobRow>(recalled_files::recalled_jobs_csv, "recalled_jobs.csv", read)) {
    if (tables.empty() || tables.back().name != job.table) tables.push_back({.name = job.table});
    tables.back().rows.push_back(std::move(job));
  }
  return tables;
}

}  // namespace rehearse::cli
