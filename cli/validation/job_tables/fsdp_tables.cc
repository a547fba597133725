// Tables of jobs with fully sharded parameters: llm-foundry's MPT and torchtitan's Llama 3.
#include <cctype>
#include <charconv>

#include <fmt/core.h>

#include "cli/validation/job_tables/job_tables.h"
#include "cli/validation/job_tables/reading.h"
#include "cli/validation/job_tables/shapes.h"
#include "models/compute/transfer.h"
#include "sim/base/check.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {
namespace {

using strategies::Recompute;

/// "A100 80GB with 1600 Gbps node-node interconnect": the number before the unit.
std::optional<double> gbit_of(std::string_view section) {
  const std::size_t unit = section.find(" Gbps");
  if (unit == std::string_view::npos) return std::nullopt;
  std::size_t from = unit;
  while (from > 0 && std::isdigit(static_cast<unsigned char>(section[from - 1]))) --from;
  double value = 0;
  const auto [end, error] = std::from_chars(section.data() + from, section.data() + unit, value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

/// Of the tables' names of GPUs.
std::optional<std::string> device_of(std::string_view gpu) {
  constexpr std::pair<std::string_view, std::string_view> kDevices[] = {
      {"a100_40gb", "a100_sxm4_40"}, {"a100_80gb", "a100_sxm4_80"},
      {"h100_80gb", "h100_sxm5_80"}, {"H100-96GB-500W", "h100_sxm5_96_500w"},
      {"H100-80GB", "h100_sxm5_80"}, {"H200", "h200_sxm_141"},
      {"A100-80GB", "a100_sxm4_80"}, {"B200", "b200_sxm_180"}};
  for (const auto& [name, device] : kDevices)
    if (gpu == name) return std::string(device);
  return std::nullopt;
}

/// Share of the peak that the Triton kernels of 2023 get, which were made for A100: fitted there
/// (docs/accuracy.md).
std::optional<double> triton_share(const std::string& device) {
  constexpr double kOnA100 = 0.35;
  const Result<const cluster::Gpu*> a100 = cluster::find_gpu("a100_sxm4_80");
  const Result<const cluster::Gpu*> gpu = cluster::find_gpu(device);
  REHEARSE_CHECK(a100 && gpu, "{} is in no catalog", device);
  return compute::same_kernels_share(kOnA100, compute::facts_of(**a100), compute::facts_of(**gpu));
}

/// The degree behind a prefix: "tp8".
std::optional<std::uint32_t> degree_of(std::string_view word, std::string_view prefix) {
  if (word.substr(0, prefix.size()) != prefix) return std::nullopt;
  std::uint32_t degree = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + prefix.size(), end, degree);
  return error == std::errc() && stop == end && degree > 0 ? std::optional(degree) : std::nullopt;
}

}  // namespace

Result<JobTable> read_mpt(const std::filesystem::path& path) {
  return read_job_table(path, "mpt", [](const CsvRow& row, JobTable& table) {
    const std::string size = row.required("model"), section = row.required("section"),
                      gpu = row.required("gpu");
    const std::uint32_t devices = row.required_count("gpus");
    JobRow job{.implementation = Implementation::kLlmFoundry};
    job.training = {.global_batch = row.required_number("globalbatchsize"),
                    .microbatch = row.required_number("microbatchsize")};
    job.name = fmt::format("{} {} seq{} x{} mb{} {}", gpu, size, row.text("seqlen_t"), devices,
                           job.training.microbatch, row.text("precision"));
    const auto leave_out = [&](std::string_view why) {
      table.left_out.push_back(fmt::format("{}: {}", job.name, why));
    };
    const std::optional<ModelShape> shape = mpt_shape(size);
    if (!shape) return leave_out("a model of unknown shape");
    job.model = *shape;
    job.model.sequence = row.required_count("seqlen_t");
    const std::optional<std::string> device = device_of(gpu);
    if (!device) return leave_out("a GPU that the catalog lacks");
    job.device = *device;
    job.attention = triton_share(job.device);
    if (!set_devices(job, devices, 8)) return leave_out("no whole nodes");
    if (const auto rate = gbit_of(section)) {
      job.node_network = ByteRate::gbit_per_s(*rate);
    } else {
      job.node_network = ByteRate::gbit_per_s(3200);
      job.assumed.emplace_back("3200 Gbit/s a node");
    }
    job.plan.data = devices;
    job.plan.zero = row.required("sharding_strategy") == "FULL_SHARD" ? 3 : 2;
    job.training.recompute =
        row.required("activation_checkpointing") == "True" ? Recompute::kFull : Recompute::kNone;
    job.training.dtype =
        row.required("precision") == "amp_fp8" ? workload::Dtype::kFp8 : workload::Dtype::kBf16;
    // PURE reduces gradients in half precision, DEFAULT in FP32.
    job.training.gradients =
        row.required("mp_mode") == "PURE" ? workload::Dtype::kBf16 : workload::Dtype::kFp32;
    set_tokens_rate(job, row.required_number("throughput_t_s_gpu"));
    table.rows.push_back(std::move(job));
  });
}

Result<JobTable> read_torchtitan(const std::filesystem::path& path) {
  return read_job_table(path, "torchtitan", [](const CsvRow& row, JobTable& table) {
    const std::string model = row.required("model"), layout = row.required("parallelism"),
                      precision = row.required("precision"), kept = row.required("activation_ckpt");
    const std::uint32_t devices = row.required_count("num_gpus");
    JobRow job{.implementation = row.required("torch_compile") == "yes"
                                     ? Implementation::kTorchtitanCompiled
                                     : Implementation::kTorchtitan,
               .node_network = ByteRate::gbit_per_s(3200)};
    job.name = fmt::format("{} {} {} {} {}{}", model, layout, row.text("seq_len"), precision, kept,
                           job.implementation == Implementation::kTorchtitan ? " eager" : "");
    const auto leave_out = [&](std::string_view why) {
      table.left_out.push_back(fmt::format("{}: {}", job.name, why));
    };
    const std::optional<ModelShape> shape = named_shape(model);
    if (!shape) return leave_out("a model of unknown shape");
    job.model = *shape;
    job.model.sequence = row.required_count("seq_len");
    const std::optional<std::string> device = device_of(row.required("gpu"));
    if (!device) return leave_out("a GPU that the catalog lacks");
    job.device = *device;
    if (!set_devices(job, devices, 8)) return leave_out("no whole nodes");
    job.attention = kFlash2OnHopper;  // which PyTorch's SDPA calls
    std::uint32_t fsdp = 1;
    for (const std::string_view word : split(layout, ' ')) {
      if (const auto d = degree_of(word, "fsdp"))
        fsdp = *d;
      else if (const auto t = degree_of(word, "tp"))
        job.plan.tensor = *t;
      else if (const auto p = degree_of(word, "pp"))
        job.plan.pipeline = *p;
      else if (const auto c = degree_of(word, "cp"))
        job.plan.context = *c;
      else if (word == "asynctp")
        job.plan.asynchronous_tensor = true;
      else if (word != "1f1b" && !word.empty())
        return leave_out(fmt::format("'{}'", word));
    }
    job.plan.data = fsdp;
    job.plan.zero = 3;
    job.plan.sequence_parallel = job.plan.tensor > 1;
    if (job.plan.data * job.plan.tensor * job.plan.pipeline * job.plan.context != devices)
      return leave_out("the degrees do not make up the GPUs");
    // A data-parallel rank's batch is one microbatch, or one per stage of the pipeline.
    const double local = row.required_number("local_batch");
    job.training.microbatch = local / job.plan.pipeline;
    job.training.global_batch = row.number("global_batch").value_or(local * job.plan.data);
    if (precision != "bf16") job.training.dtype = workload::Dtype::kFp8;
    if (precision == "float8_rowwise") {
      job.fp8 = 1;
      job.plan.quantised_gathers = false;
    }
    if (job.plan.context > 1) {
      job.plan.context_balanced = false;
      job.assumed.emplace_back("a ring in which the last rank has most of attention");
    }
    job.training.gradients = workload::Dtype::kFp32;
    if (kept == "full") {
      job.training.recompute = Recompute::kFull;
    } else {
      job.training.recompute = Recompute::kSelective;
      if (kept == "config default") job.assumed.emplace_back("selective recomputation");
    }
    if (const auto rate = row.number("tokens_per_s_per_gpu")) set_tokens_rate(job, *rate);
    if (const auto peak = row.number("peak_mem_gib")) job.peak = Bytes::gib(*peak);
    table.rows.push_back(std::move(job));
  });
}

}  // namespace rehearse::cli
