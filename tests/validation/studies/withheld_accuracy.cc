#include "tests/validation/studies/withheld_accuracy.h"

#include <map>
#include <span>

#include <fmt/core.h>

#include "models/compute/transfer.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {
namespace {

using compute::Calibration;
using compute::DeviceFacts;

/// What jobs on other architectures say instead of those on this one, from the rows that the
/// shipped conditions were fitted to.
struct Others {
  std::string_view architecture;  ///< the beginning of the catalog's
  double gemm;
  /// Of PyTorch's own kernels: MPT's rows of the other GPU. Of fused ones: Megatron-LM's on V100
  /// for A100, on A100 for H100.
  double eager, fused;
  /// The device whose attention kernels run here, with the share that they get there: MPT's, and
  /// those of FlashAttention-2.
  std::string_view kernels_of;
  double triton, flash;
};
constexpr Others kOthers[] = {{"ampere_ga100", 1.30, 0.48, 0.76, "h100_sxm5_80", 0.19, 0.45},
                              {"hopper", 1.16, 0.48, 0.76, "a100_sxm4_80", 0.35, 0.55}};

/// Without the tables of memory-bound kernels of an architecture; those of another with HBM stand
/// for what is typical, to which its own contributed.
std::vector<Calibration> without_memory_of(const std::string& architecture) {
  std::vector<Calibration> calibrations = compute::shipped_calibrations();
  std::optional<compute::MemoryCalibration> other;
  for (Calibration& c : calibrations) {
    if (c.device == compute::kTypical || !c.memory) continue;
    const Result<const cluster::Gpu*> gpu = cluster::find_gpu(c.device);
    if (gpu && (*gpu)->architecture == architecture)
      c.memory.reset();
    else if (gpu && !other && compute::fast_memory(compute::facts_of(**gpu)))
      other = c.memory;
  }
  if (other) calibrations.front().memory = other;
  return calibrations;
}

/// Rate of half precision ÷ that of FP8 by the device's own table, without what quantising costs
/// there: training casts elsewhere. What is shipped, from H100, where it has none.
double fp8_of(const DeviceFacts& facts, std::span<const Calibration> calibrations, double shipped) {
  for (const Calibration& c : calibrations) {
    if (c.device != facts.name) continue;
    const compute::MatrixCalibration* half = c.find(compute::Arithmetic::kHalf);
    const compute::MatrixCalibration* fp8 = c.find(compute::Arithmetic::kFp8);
    if (half && fp8)
      return half->constants.factor * facts.peak(compute::Arithmetic::kHalf).flop_per_s() /
             (fp8->constants.factor * facts.peak(compute::Arithmetic::kFp8).flop_per_s());
  }
  return shipped;
}

struct Withheld {
  step::Conditions conditions;
  std::vector<Calibration> calibrations;
};

const std::string& device_of(const MeasuredJob& row) {
  return row.job().cluster.devices().front().model;
}

Result<Withheld> withheld_for(const MeasuredJob& row) {
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(device_of(row)));
  const DeviceFacts facts = compute::facts_of(gpu);
  // Whose kernels run is told by their share of the memory rate.
  const bool pytorch = row.job().spec.conditions.sustained.memory ==
                       step::conditions_for(gpu, workload::Elementwise::kUnfused).sustained.memory;
  const auto elementwise =
      pytorch ? workload::Elementwise::kUnfused : workload::Elementwise::kEager;
  Withheld w{.conditions = step::conditions_for(gpu, elementwise),
             .calibrations = without_memory_of(gpu.architecture)};
  const bool triton = row.table == "mpt";
  for (const Others& others : kOthers) {
    if (!gpu.architecture.starts_with(others.architecture)) continue;
    compute::Sustained& sustained = w.conditions.sustained;
    sustained.gemm = others.gemm;
    sustained.memory = elementwise == workload::Elementwise::kUnfused ? others.eager : others.fused;
    const cluster::Gpu& from = *TRY(cluster::find_gpu(others.kernels_of));
    sustained.attention =
        same_kernels_share(triton ? others.triton : others.flash, compute::facts_of(from), facts);
    w.conditions.fp8 = fp8_of(facts, w.calibrations, w.conditions.fp8);
    // The interval is that of architectures without jobs of their own, such as that of V100.
    const cluster::Gpu& unknown = *TRY(cluster::find_gpu("v100_sxm2_16"));
    const step::Conditions general = step::conditions_for(unknown, elementwise);
    w.conditions.fastest = general.fastest;
    w.conditions.slowest = general.slowest;
  }
  if (const auto fp8 = row.number("sustained.fp8")) w.conditions.fp8 = *fp8;
  return w;
}

std::string reason_of(const std::string& name) {
  if (name.ends_with("/zero3")) return "DeepSpeed of 2021, which waited for its communication";
  if (name == "v100_sxm2_16" || name == "gb200_186" || name == "h100_sxm5_96_500w")
    return "as far off in suite jobs, where nothing was fitted to this device either";
  if (name == "all") return "but for ZeRO-3 of 2021, and for searches of layouts";
  return "";
}

}  // namespace

std::optional<double> same_kernels_share(double share, const DeviceFacts& from,
                                         const DeviceFacts& to) {
  const auto half = static_cast<std::size_t>(compute::Arithmetic::kHalf);
  if (from.vendor != to.vendor || !from.boost_hz || !to.boost_hz || !from.peaks[half] ||
      !to.peaks[half])
    return std::nullopt;
  const double faster = to.multiprocessors * *to.boost_hz / (from.multiprocessors * *from.boost_hz);
  return share * faster * (*from.peaks[half] / *to.peaks[half]);
}

Result<JobPrediction> predict_withheld(const MeasuredJob& row) {
  const Withheld withheld = TRY(withheld_for(row));
  return predict_row(row, withheld.conditions, withheld.calibrations);
}

Result<TimedAccuracy> measure_withheld_accuracy(const std::filesystem::path& data) {
  const std::filesystem::path folder = TRY(converted(data));
  const std::vector<MeasuredJob> jobs = TRY(read_job_folder(folder / "jobs"));
  TimedAccuracy accuracy;
  std::map<std::string, TimedCase> cases;
  for (const MeasuredJob& row : jobs) {
    if (row.job().spec.workload.experts > 0) continue;
    const Result<JobPrediction> p = predict_withheld(row);
    if (!p) {
      accuracy.left_out.push_back(fmt::format("{}: {}", row.name, to_string(p.error())));
      continue;
    }
    const TimedRow timed{.name = row.name, .measured = p->measured, .predicted = p->step};
    const std::string& of_table = row.of;
    const auto add = [&](const std::string& name, bool sum) {
      TimedCase& found = cases[name];
      found.name = name;
      found.reason = reason_of(name);
      found.sum = sum;
      found.rows.push_back(timed);
    };
    add(fmt::format("{}/{}", device_of(row), of_table), false);
    // Their hosts and networks decide, not the GPU.
    if (of_table.ends_with("/zero3") || row.table == "nanotron" || row.table == "bigscience")
      continue;
    add(device_of(row), true);
    add("all", true);
  }
  for (auto& [name, found] : cases) accuracy.cases.push_back(std::move(found));
  return accuracy;
}

std::string withheld_section(const TimedAccuracy& accuracy) {
  return timed_section(
      "Whole jobs on a GPU known by its datasheet and a table of matrix products",
      R"(Dense jobs, by device, and by device and table. Everything learnt from jobs and from tables of
memory-bound kernels on the architecture is withheld, and replaced with:

- matrix products relative to benchmarks: H100's 1.30 for A100, and A100's 1.16 for H100;
- the share of the memory rate: 0.48 for PyTorch's own kernels, which MPT's rows of either GPU alone
  give, and 0.76 for fused ones, which Megatron-LM's rows on V100 alone give too;
- attention: the law of the same kernels;
- FP8: the device's own table.

Collectives keep their calibrations.)",
      accuracy);
}

}  // namespace rehearse::cli
