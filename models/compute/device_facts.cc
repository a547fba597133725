#include "models/compute/device_facts.h"

#include <algorithm>

namespace rehearse::compute {
namespace {

/// AMD's matrix units take FP32: at twice the vector rate in CDNA 1 and 2, at the rate that the
/// catalog gives as `fp32` in CDNA 3.
FlopRate fp32_of(const cluster::Gpu& gpu) {
  const bool doubled =
      gpu.architecture.starts_with("cdna1") || gpu.architecture.starts_with("cdna2");
  return doubled ? gpu.fp32 * 2 : gpu.fp32;
}

}  // namespace

DeviceFacts facts_of(const cluster::Gpu& gpu) {
  DeviceFacts facts{.name = gpu.name,
                    .vendor = gpu.vendor,
                    .architecture = gpu.architecture,
                    .partition_of = gpu.partition_of};
  facts.multiprocessors = std::max(1.0, static_cast<double>(gpu.multiprocessors));
  const std::optional<FlopRate> half = gpu.fp16_tensor ? gpu.fp16_tensor : gpu.bf16_tensor;
  if (half && gpu.bf16_tensor) facts.bf16_share = *gpu.bf16_tensor / *half;
  facts.peaks = {fp32_of(gpu), gpu.tf32_tensor, half ? half : gpu.fp16, gpu.fp8_tensor};
  facts.half_in_matrix_units = half.has_value();
  facts.memory_rate = gpu.memory_rate;
  facts.stacked_memory = gpu.memory_type.starts_with("HBM");
  facts.l2 = gpu.l2;
  facts.power_limit = gpu.power_limit;
  facts.boost_hz = gpu.boost_hz;
  return facts;
}

Arithmetic arithmetic_of(const DeviceFacts& facts, workload::Dtype dtype) {
  const auto has = [&](Arithmetic a) {
    return facts.peaks[static_cast<std::size_t>(a)].has_value();
  };
  switch (dtype) {
    case workload::Dtype::kFp8:
      if (has(Arithmetic::kFp8)) return Arithmetic::kFp8;
      [[fallthrough]];
    case workload::Dtype::kFp16:
    case workload::Dtype::kBf16:
      return has(Arithmetic::kHalf) ? Arithmetic::kHalf : Arithmetic::kFp32;
    case workload::Dtype::kTf32:
      return has(Arithmetic::kTf32) ? Arithmetic::kTf32 : Arithmetic::kFp32;
    case workload::Dtype::kFp32: break;
  }
  return Arithmetic::kFp32;
}

FlopRate peak_of(const DeviceFacts& facts, workload::Dtype dtype) {
  const Arithmetic arithmetic = arithmetic_of(facts, dtype);
  const bool bf16 = dtype == workload::Dtype::kBf16 && arithmetic == Arithmetic::kHalf;
  return facts.peak(arithmetic) * (bf16 ? facts.bf16_share : 1);
}

bool trains_in(const cluster::Gpu& gpu, workload::Dtype dtype) {
  return dtype != workload::Dtype::kFp8 || gpu.fp8_tensor.has_value();
}

}  // namespace rehearse::compute
