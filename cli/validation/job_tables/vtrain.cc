#include <fmt/core.h>

#include "cli/validation/job_tables/job_tables.h"
#include "cli/validation/job_tables/reading.h"
#include "cli/validation/job_tables/shapes.h"

namespace rehearse::cli {

Result<JobTable> read_vtrain(const std::filesystem::path& path, strategies::Recompute recompute) {
  const std::string name =
      recompute == strategies::Recompute::kFull ? "vtrain-multi" : "vtrain-single";
  return read_job_table(path, name, [&](const CsvRow& row, JobTable& table) {
    JobRow job{.model = gpt_shape(row.required_count("hidden"), row.required_count("layers"),
                                  row.required_count("heads"), row.required_count("seq_len")),
               .device = "a100_sxm4_80",
               .node_network = ByteRate::gbit_per_s(800)};
    job.assumed.emplace_back("FP16, vocabulary 51200, A100 with 80 GB");
    job.training = {.global_batch = row.required_number("global_batch"),
                    .microbatch = row.required_number("micro_batch"),
                    .dtype = workload::Dtype::kFp16,
                    .recompute = recompute};
    job.plan.tensor = row.required_count("tp");
    job.plan.data = row.required_count("dp");
    job.plan.pipeline = row.required_count("pp");
    job.plan.overlap_gradients = false;
    job.name = fmt::format("h{} l{} tp{} dp{} pp{} mb{} gb{}", job.model.hidden, job.model.layers,
                           job.plan.tensor, job.plan.data, job.plan.pipeline,
                           job.training.microbatch, job.training.global_batch);
    const std::uint32_t devices = row.required_count("num_gpus");
    if (!set_devices(job, devices, 8)) {
      table.left_out.push_back(fmt::format("{}: {} GPUs are no whole nodes", job.name, devices));
      return;
    }
    set_step(job, Seconds::ms(row.required_number("iteration_ms")));
    table.rows.push_back(std::move(job));
  });
}

}  // namespace rehearse::cli
