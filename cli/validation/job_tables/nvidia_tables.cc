// NVIDIA's own numbers: NeMo and Megatron-Bridge releases, and MLPerf Training; and DLPerf's of
// Megatron-LM and OneFlow on V100.
#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "cli/validation/job_tables/job_tables.h"
#include "cli/validation/job_tables/reading.h"
#include "cli/validation/job_tables/shapes.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {
namespace {

using strategies::Recompute;
using strategies::Schedule;
using workload::Dtype;

struct System {
  std::string_view name, device;
  std::uint32_t devices_per_node;  ///< that share one NVLink domain
  double gbit_per_device;
};
constexpr System kSystems[] = {
    {"DGX-H100", "h100_sxm5_80", 8, 400}, {"DGX-H200", "h200_sxm_141", 8, 400},
    {"DGX-B200", "b200_sxm_180", 8, 400}, {"DGX-B300", "b300", 8, 800},
    {"DGX-GB200", "gb200_186", 64, 400},  {"DGX-GB300", "gb300_279", 64, 800}};

/// A cell's number; 1 where it does not apply ("", "n/a"). Nothing where two stand in it
/// ("64 (0)").
std::optional<std::uint32_t> degree_of(const std::string& cell) {
  if (cell.empty() || cell == "n/a") return 1;
  std::uint32_t value = 0;
  const auto [stop, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || stop != cell.data() + cell.size()) return std::nullopt;
  return value;
}

/// The first of "37556 (36108)".
double first_number(const CsvRow& row, std::string_view column) {
  const std::string cell = row.required(column);
  double value = 0;
  const auto [stop, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const std::string_view rest(stop, static_cast<std::size_t>(cell.data() + cell.size() - stop));
  if (error != std::errc() || !(value > 0) || !(rest.empty() || rest.starts_with(" (")))
    row.report(column, fmt::format("'{}' is not a rate", cell), "a number, or two: 37556 (36108)");
  return value;
}

std::optional<Dtype> dtype_of(std::string_view precision) {
  // Of two ("FP8-CS (FP8-MX)") the first number is the first precision's.
  if (precision.starts_with("FP8") || precision.starts_with("MXFP8")) return Dtype::kFp8;
  if (precision == "BF16") return Dtype::kBf16;
  if (precision == "FP16") return Dtype::kFp16;
  return std::nullopt;
}

/// What no column says: as the recipes of Megatron-Bridge have it (scripts/performance/configs),
/// and its release notes (0.5.1: fused products of experts came with container 26.06; in 26.06.01
/// those of GPT-OSS did not work).
void follow_recipe(JobRow& job, std::string_view release, std::string_view model,
                   std::string_view system) {
  const bool gpt_oss = model.starts_with("GPT OSS");
  const bool h100 = system == "DGX-H100", gb200 = system == "DGX-GB200";
  job.attention = kCudnn;
  job.fused_experts = release >= "26.06" && !(release.starts_with("26.06.01") && gpt_oss);
  if (model.starts_with("Qwen3_30B") || (model.starts_with("Qwen3_235B") && gb200) ||
      (gpt_oss && !h100))
    job.plan.expert_exchange = strategies::ExpertExchange::kTokensOnce;
  job.plan.overlap_experts =
      (gb200 && (gpt_oss || job.fused_experts)) || (h100 && model.starts_with("Qwen3_235B"));
  if (gpt_oss && (h100 || gb200))
    job.recomputed = {"attention_norm", "feed_forward_norm", "expert_clamp", "expert_activation"};
}

std::string_view base_of(std::string_view model) { return model.substr(0, model.find(" (")); }

}  // namespace

Result<JobTable> read_nemo(const std::filesystem::path& path) {
  return read_job_table(path, "nemo", [](const CsvRow& row, JobTable& table) {
    const std::string model = row.required("model"), system = row.required("system"),
                      precision = row.text("precision"), task = row.required("task"),
                      release = row.required("release");
    const std::uint32_t devices = row.required_count("gpus");
    JobRow job{.implementation = Implementation::kMegatronFlash};
    job.name = fmt::format("{} {} {} {} x{}", release.substr(0, release.find(' ')), model,
                           precision, system, devices);
    const auto leave_out = [&](std::string_view why) {
      table.left_out.push_back(fmt::format("{}: {}", job.name, why));
    };
    if (task.find("LoRA") != std::string::npos) return leave_out("trains adapters alone");
    if (task.find("SFT") != std::string::npos) job.name += " SFT";
    const std::optional<ModelShape> shape = named_shape(base_of(model));
    if (!shape) return leave_out("a model that no workload expresses");
    if (base_of(model) != model) return leave_out("a variant that drops tokens");
    job.model = *shape;
    job.model.sequence = row.required_count("seq_len");
    const auto found = std::find_if(std::begin(kSystems), std::end(kSystems),
                                    [&](const System& s) { return s.name == system; });
    if (found == std::end(kSystems) || !cluster::find_gpu(found->device))
      return leave_out("a GPU that the catalog lacks");
    job.device = found->device;
    if (!set_devices(job, devices, found->devices_per_node)) return leave_out("no whole nodes");
    job.node_network = ByteRate::gbit_per_s(found->gbit_per_device * job.devices_per_node);
    const std::optional<Dtype> dtype = dtype_of(precision);
    if (!dtype)
      return leave_out(precision.empty() ? "its precision is not stated" : "its number format");
    std::optional<std::uint32_t> degrees[6];
    constexpr std::string_view kColumns[] = {"tp", "pp", "cp", "vp", "ep", "fsdp"};
    for (std::size_t i = 0; i < 6; ++i) {
      degrees[i] = degree_of(row.text(kColumns[i]));
      if (!degrees[i]) return leave_out("two layouts in one row");
    }
    strategies::Plan& plan = job.plan;
    plan.tensor = *degrees[0];
    plan.pipeline = *degrees[1];
    plan.context = *degrees[2];
    plan.expert = *degrees[4];
    if (plan.pipeline > 1 && *degrees[3] > 1) {
      plan.interleave = *degrees[3];
      plan.schedule = Schedule::kInterleaved;
    }
    const auto data = divided(devices, plan.tensor * plan.pipeline * plan.context);
    if (!data) return leave_out("the degrees do not divide the GPUs");
    plan.data = *data;
    follow_recipe(job, release, model, system);
    // More experts' ranks than data ranks: then tensor ranks must hold whole ones.
    if (plan.data % plan.expert != 0 && plan.tensor > 1) {
      plan.expert_tensor = 1;
      job.assumed.emplace_back("experts whole on tensor ranks");
    }
    plan.zero = *degrees[5] > 1 ? 3 : 1;
    plan.sequence_parallel = plan.tensor > 1;
    plan.asynchronous_tensor = plan.tensor > 1;
    job.training = {.global_batch = row.required_number("gbs"),
                    .microbatch = row.required_number("mbs"),
                    .dtype = *dtype,
                    .recompute = Recompute::kNone};
    job.assumed.emplace_back("distributed optimizer, overlapped collectives, no recomputation");
    set_tokens_rate(job, first_number(row, "tokens_per_s_per_gpu"));
    table.rows.push_back(std::move(job));
  });
}

Result<JobTable> read_mlperf_gpt(const std::filesystem::path& path) {
  return read_job_table(path, "mlperf-gpt3", [](const CsvRow& row, JobTable& table) {
    const std::uint32_t devices = row.required_count("num_gpus");
    const std::string model = row.required("model"), precision = row.required("precision");
    JobRow job{.name = fmt::format("{} {} x{}", row.required("system"), precision, devices)};
    const auto leave_out = [&](std::string_view why) {
      table.left_out.push_back(fmt::format("{}: {}", job.name, why));
    };
    if (model.find("175B") == std::string::npos) return leave_out("a model of unknown shape");
    job.model = gpt_shape(12288, 96, 96, row.required_count("seq_len"));
    job.implementation = Implementation::kMegatronFlash;
    job.attention = kFlash2OnHopper;  // of June 2023
    const std::optional<Dtype> dtype = dtype_of(precision);
    if (!dtype) return leave_out("its number format");
    job.device = "h100_sxm5_80";
    job.node_network = ByteRate::gbit_per_s(3200);
    if (!set_devices(job, devices, 8)) return leave_out("no whole nodes");
    job.training = {.global_batch = row.required_number("global_batch"),
                    .microbatch = row.required_number("micro_batch"),
                    .dtype = *dtype};
    job.plan.tensor = row.required_count("tp");
    job.plan.pipeline = row.required_count("pp");
    job.plan.data = row.required_count("dp");
    job.plan.interleave = 6;
    job.plan.schedule = Schedule::kInterleaved;
    job.plan.zero = 1;
    job.plan.sequence_parallel = true;
    job.plan.asynchronous_tensor = true;
    job.assumed.emplace_back(
        "6 chunks a stage, distributed optimizer, overlapped tensor parallelism");
    set_step(job, Seconds::s(row.required_number("late_step_time_s")));
    table.rows.push_back(std::move(job));
  });
}

Result<JobTable> read_dlperf_gpt(const std::filesystem::path& path) {
  return read_job_table(path, "dlperf-gpt", [](const CsvRow& row, JobTable& table) {
    JobRow job{.model = gpt_shape(row.required_count("hidden"), row.required_count("layers"),
                                  row.required_count("heads"), 2048),
               .device = "v100_sxm2_16",
               .devices_per_node = row.required_count("gpus_per_node"),
               .nodes = row.required_count("nodes"),
               .node_network = ByteRate::gbit_per_s(100)};
    job.training = {.global_batch = row.required_number("global_batch"),
                    .microbatch = row.required_number("micro_batch"),
                    .dtype = Dtype::kFp16,
                    .recompute = Recompute::kFull};
    job.plan.data = row.required_count("dp");
    job.plan.tensor = row.required_count("tp");
    job.plan.pipeline = row.required_count("pp");
    job.plan.overlap_gradients = false;
    // Without it the larger rows do not fit 16 GB.
    job.assumed.emplace_back("full recomputation");
    const std::string name = row.required("case");
    for (const std::string_view framework : {"megatron", "oneflow"}) {
      const auto rate = row.number(fmt::format("{}_seq_per_s", framework));
      if (!rate || *rate == 0) {
        table.left_out.push_back(fmt::format("{} {}: not measured", name, framework));
        continue;
      }
      job.name = fmt::format("{} {}", name, framework);
      set_step(job, Seconds::s(job.training.global_batch / *rate));
      table.rows.push_back(job);
    }
  });
}

}  // namespace rehearse::cli
