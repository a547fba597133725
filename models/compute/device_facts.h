// Facts of a device for the laws of this module: published peaks by kind of arithmetic.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "models/workload/op.h"
#include "sim/base/units.h"
#include "sim/cluster/catalog.h"

namespace rehearse::compute {

/// The arithmetic of a matrix operation. A format that a device lacks is replaced by the next wider
/// one (arithmetic_of).
enum class Arithmetic : std::uint8_t { kFp32, kTf32, kHalf, kFp8 };
inline constexpr std::size_t kArithmetics = 4;
inline constexpr std::array<std::string_view, kArithmetics> kArithmeticNames = {"fp32", "tf32",
                                                                                "half", "fp8"};
constexpr std::string_view to_string(Arithmetic a) {
  return kArithmeticNames[static_cast<std::size_t>(a)];
}

struct DeviceFacts {
  std::string name;
  std::string vendor;
  std::string architecture;
  std::string partition_of = {};  ///< as cluster::Gpu::partition_of
  double multiprocessors = 1;
  /// The peak rate of matrix operations, by Arithmetic; absent if the device has no unit for it.
  /// FP32 is the matrix peak where a vendor has one (AMD), else that of ordinary cores.
  std::array<std::optional<FlopRate>, kArithmetics> peaks = {};
  /// The peak of BF16 ÷ that of half precision, which is that of FP16: 0.5 on MI100.
  double bf16_share = 1;
  /// Whether half precision runs in matrix units; without, it is FP32 arithmetic at the half rate.
  bool half_in_matrix_units = false;
  ByteRate memory_rate = ByteRate::gb_per_s(1);
  bool stacked_memory = false;  ///< HBM
  std::optional<Bytes> l2 = {};
  std::optional<Watts> power_limit = {};
  std::optional<double> boost_hz = {};  ///< highest clock

  /// REQUIRES: the device has it.
  FlopRate peak(Arithmetic a) const { return *peaks[static_cast<std::size_t>(a)]; }
};

DeviceFacts facts_of(const cluster::Gpu& gpu);

/// The arithmetic in which operands of this format are multiplied: that of the format where the
/// device has it, else the next wider one.
Arithmetic arithmetic_of(const DeviceFacts& facts, workload::Dtype dtype);

/// The peak rate of products of operands in this format.
FlopRate peak_of(const DeviceFacts& facts, workload::Dtype dtype);

/// Whether products in this arithmetic run in matrix units of the device, instead of ordinary cores.
inline bool in_matrix_units(const DeviceFacts& facts, Arithmetic a) {
  return a != Arithmetic::kFp32 && (a != Arithmetic::kHalf || facts.half_in_matrix_units);
}

/// Whether a device can train in this format: FP8 needs matrix units of its own, because frameworks
/// cast operands to it only for these. A wider format runs on any device.
bool trains_in(const cluster::Gpu& gpu, workload::Dtype dtype);

}  // namespace rehearse::compute
