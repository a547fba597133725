#include <cmath>

#include <fmt/core.h>

#include "cli/validation/job_tables/job_tables.h"
#include "cli/validation/job_tables/reading.h"
#include "cli/validation/job_tables/shapes.h"

namespace rehearse::cli {
namespace {

using strategies::Recompute;
using strategies::Schedule;

/// DGX A100 with eight HDR ports (arXiv:2104.04473, section 5).
void on_selene(JobRow& job) {
  job.device = "a100_sxm4_80";
  job.node_network = ByteRate::gbit_per_s(1600);
  job.training.dtype = workload::Dtype::kFp16;
  job.plan.overlap_gradients = false;
}

/// From the paper's FLOP count (equation 3), which holds recomputation.
Seconds step_of(const JobRow& job, double tflops_per_gpu) {
  const double s = job.model.sequence, h = job.model.hidden, l = job.model.layers;
  const double flops = 96 * job.training.global_batch * s * l * h * h *
                       (1 + s / (6 * h) + job.model.vocabulary / (16 * l * h));
  return Seconds::s(flops / (tflops_per_gpu * 1e12 * job.devices()));
}

void interleave(JobRow& job, std::uint32_t chunks) {
  job.plan.interleave = chunks;
  if (chunks > 1) job.plan.schedule = Schedule::kInterleaved;
}

/// Microbatches and chunks that divide what they have to. The table lacks them: the first is the
/// microbatch of 1 (4 without pipeline) without interleaving.
void open_choices(JobRow& job, bool microbatch) {
  std::vector<double> sizes = {job.training.microbatch};
  if (microbatch)
    sizes = job.plan.pipeline > 1 ? std::vector<double>{1, 2, 4} : std::vector<double>{4, 8, 2, 1};
  for (const double size : sizes) {
    const auto count = divided(job.training.global_batch, size * job.plan.data);
    if (!count) continue;
    for (std::uint32_t v = 1; v <= 8; ++v) {
      if (v > 1 && (job.plan.pipeline == 1 || *count % job.plan.pipeline != 0)) continue;
      if (!divided(job.model.layers, static_cast<double>(job.plan.pipeline) * v)) continue;
      job.choices.push_back({size, v});
    }
  }
  if (job.choices.empty()) return;
  job.training.microbatch = job.choices.front().microbatch;
  interleave(job, job.choices.front().interleave);
}

struct Published {
  double billions;
  std::uint32_t hidden, layers, heads;
};
/// SC21 table 1, and GPT-3.
constexpr Published kPublished[] = {
    {1.7, 2304, 24, 24},      {3.6, 3072, 30, 32},      {7.5, 4096, 36, 32},
    {18.4, 6144, 40, 48},     {39.1, 8192, 48, 64},     {76.1, 10240, 60, 80},
    {145.6, 12288, 80, 96},   {174.6, 12288, 96, 96},   {310.1, 16384, 96, 128},
    {529.6, 20480, 105, 128}, {1008.0, 25600, 128, 160}};

}  // namespace

Result<JobTable> read_sc21_scaling(const std::filesystem::path& path) {
  return read_job_table(path, "sc21-table1", [](const CsvRow& row, JobTable& table) {
    JobRow job{.name = fmt::format("{}B", row.required_number("params_billion")),
               .model = gpt_shape(row.required_count("hidden"), row.required_count("layers"),
                                  row.required_count("heads"), 2048)};
    on_selene(job);
    job.training.global_batch = row.required_number("global_batch");
    job.training.recompute = Recompute::kFull;
    job.plan.tensor = row.required_count("tp");
    job.plan.pipeline = row.required_count("pp");
    const std::uint32_t devices = row.required_count("num_gpus");
    const auto data = divided(devices, job.plan.tensor * job.plan.pipeline);
    if (!data || !set_devices(job, devices, 8)) {
      table.left_out.push_back(job.name + ": tensor and pipeline degree do not divide the GPUs");
      return;
    }
    job.plan.data = *data;
    job.assumed.emplace_back("microbatch and interleaving: see choices");
    open_choices(job, true);
    if (job.choices.empty()) {
      table.left_out.push_back(job.name + ": no microbatch divides the batch");
      return;
    }
    set_step(job, step_of(job, row.required_number("tflops_per_gpu")));
    table.rows.push_back(std::move(job));
  });
}

Result<JobTable> read_sc21_schemes(const std::filesystem::path& path) {
  return read_job_table(path, "sc21-table2", [](const CsvRow& row, JobTable& table) {
    const double billions = row.required_number("params_billion");
    const std::string scheme = row.required("scheme");
    const std::uint32_t devices = row.required_count("num_gpus");
    JobRow job{.name = fmt::format("{} {}B {} GPUs", scheme, billions, devices)};
    for (const Published& p : kPublished)
      if (std::abs(p.billions / billions - 1) < 5e-3)
        job.model = gpt_shape(p.hidden, p.layers, p.heads, 2048);
    if (job.model.hidden == 0) {
      table.left_out.push_back(job.name + ": a model of unknown shape");
      return;
    }
    on_selene(job);
    job.training.global_batch = row.required_number("global_batch");
    job.training.microbatch = row.required_number("micro_batch");
    job.training.recompute = Recompute::kFull;
    std::uint32_t model_parallel = row.required_count("model_parallel_size_as_transcribed");
    if (scheme == "ZeRO-3") {
      job.plan.zero = 3;
      job.plan.overlap_gradients = true;
      model_parallel = 1;
    } else {
      job.plan.tensor = std::min(8U, std::max(1U, model_parallel));
      job.plan.pipeline = std::max(1U, model_parallel / job.plan.tensor);
    }
    const auto data = divided(devices, std::max(1U, model_parallel));
    if (!data || !set_devices(job, devices, 8)) {
      table.left_out.push_back(job.name + ": model parallelism does not divide the GPUs");
      return;
    }
    job.plan.data = *data;
    job.assumed.emplace_back("interleaving: see choices; tensor parallelism fills a node");
    open_choices(job, false);
    if (job.choices.empty()) {
      table.left_out.push_back(job.name + ": the microbatch does not divide the batch");
      return;
    }
    set_step(job, step_of(job, row.required_number("tflops_per_gpu")));
    table.rows.push_back(std::move(job));
  });
}

Result<JobTable> read_seqsel(const std::filesystem::path& path) {
  const Result<CsvTable> columns = CsvTable::load(path);
  if (!columns) return forward(columns);
  const bool times = columns->has("iteration_s"), sizes = columns->has("activation_gib"),
             shares = columns->has("activation_pct_of_none");
  const std::string name = times ? "seqsel-table5" : sizes ? "seqsel-fig1" : "seqsel-fig7";
  if (!times && !sizes && !shares)
    if (Status ok = columns->require({"iteration_s"}); !ok) return forward(ok);
  return read_job_table(path, name, [&](const CsvRow& row, JobTable& table) {
    JobRow job{.name = row.required("model") + " " + row.required("mode"),
               .model = gpt_shape(row.required_count("hidden"), row.required_count("num_blocks"),
                                  row.required_count("attn_heads"), row.required_count("seq_size")),
               .implementation = Implementation::kMegatron2022};
    job.model.feed_forward = row.required_count("feedforward");
    job.model.head_size = row.required_count("attn_size");
    on_selene(job);
    job.training.global_batch = row.required_number("batch_size");
    job.training.microbatch = row.required_number("microbatch_size");
    constexpr std::string_view kRecompute[] = {"none", "attn_only", "full"};
    job.training.recompute = static_cast<Recompute>(row.choice("activation_recompute", kRecompute));
    constexpr std::string_view kTensor[] = {"ar", "rs_ag"};
    job.plan.sequence_parallel = row.choice("tensor_par_comm_type", kTensor) == 1;
    job.training.gradients = workload::Dtype::kFp32;
    job.plan.zero = row.text("optimizer_sharding") == "True" ? 1 : 0;
    job.plan.tensor = row.required_count("tensor_par");
    job.plan.pipeline = row.required_count("pipeline_par");
    job.plan.data = row.required_count("data_par");
    interleave(job, row.required_count("pipeline_interleaving"));
    const std::uint32_t devices = row.required_count("num_procs");
    if (!set_devices(job, devices, 8)) {
      table.left_out.push_back(fmt::format("{}: {} GPUs are no whole nodes", job.name, devices));
      return;
    }
    job.assumed.emplace_back("vocabulary 51200");
    if (times) set_step(job, Seconds::s(row.required_number("iteration_s")));
    if (sizes) {
      job.states = Bytes::gib(row.required_number("param_grad_opt_gib"));
      job.activations = Bytes::gib(row.required_number("activation_gib"));
    }
    if (shares) job.activation_share = row.required_number("activation_pct_of_none") / 100;
    table.rows.push_back(std::move(job));
  });
}

}  // namespace rehearse::cli
