#include "models/compute/transfer.h"

#include <algorithm>
#include <functional>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::compute {
namespace {

/// J per FP32 FLOP, by process: 4 nm, 7 to 8 nm, older.
double energy_of(const DeviceFacts& facts) {
  const auto is = [&](std::string_view prefix) { return facts.architecture.starts_with(prefix); };
  if (is("ada") || is("hopper") || is("blackwell") || is("cdna3")) return 5.5e-12;
  if (is("ampere") || is("cdna")) return 9e-12;
  return 18e-12;
}

/// An operation in half precision takes this share of that energy in matrix units: A100, 400 W,
/// sustains 0.93 of 312 TFLOP/s; T4, 70 W, about 0.4 of 65.
constexpr double kHalfEnergy = 1.0 / 7, kTf32Energy = 2.0 / 7, kFp8Energy = 1.0 / 14;

/// The share of matrix peaks that AMD's libraries reach, relative to NVIDIA's: 0.51 ÷ 0.87 for
/// MI300X in half precision (max-matmul-flops), 0.55 to 0.74 of the FP32 matrix peak for MI100 and
/// MI250.
constexpr double kAmdShare = 0.72;

/// The calibration of the device itself.
const Calibration* own_of(const DeviceFacts& facts, std::span<const Calibration> calibrations,
                          const std::function<bool(const Calibration&)>& has) {
  for (const Calibration& c : calibrations)
    if (c.device != kTypical && c.device == facts.name && has(c)) return &c;
  return nullptr;
}

/// The calibration of another device with the same chip. For a partition it is that of its own
/// device; of two candidates, the one for which `better` holds.
const Calibration* chip_of(const DeviceFacts& facts, std::span<const Calibration> calibrations,
                           const std::function<bool(const Calibration&)>& has,
                           const std::function<bool(const Calibration&)>& better) {
  const Calibration* found = nullptr;
  for (const Calibration& c : calibrations) {
    if (c.device == facts.partition_of && has(c)) return &c;
    if (c.device == kTypical || c.device == facts.name || !has(c)) continue;
    const Result<const cluster::Gpu*> gpu = cluster::find_gpu(c.device);
    if (!gpu || facts.architecture.empty() || (*gpu)->architecture != facts.architecture) continue;
    if (!found || (better(c) && !better(*found))) found = &c;
  }
  return found;
}

/// Fused attention, forward and backward, share of the half-precision peak, by the generation of
/// kernels that an architecture commonly runs. A100: FlashAttention-2 reports 0.73 forward, 0.63
/// backward at best; H100 runs its kernels at 0.35 and third-generation ones at 0.5 to 0.75.
double attention_of(const DeviceFacts& facts) {
  if (facts.vendor == "amd") return 0.3;
  if (facts.architecture.starts_with("hopper") || facts.architecture.starts_with("blackwell"))
    return 0.45;
  return facts.half_in_matrix_units ? 0.55 : 0.4;
}

}  // namespace

bool fast_memory(const DeviceFacts& facts) {
  return facts.stacked_memory && !facts.architecture.starts_with("pascal");
}

double power_share(const DeviceFacts& facts, Arithmetic arithmetic) {
  const auto& peak = facts.peaks[static_cast<std::size_t>(arithmetic)];
  if (!facts.power_limit || !peak) return 1;
  double energy = energy_of(facts);
  switch (arithmetic) {
    case Arithmetic::kFp32:
      break;
    case Arithmetic::kTf32:
      energy *= kTf32Energy;
      break;
    case Arithmetic::kHalf:
      energy *= facts.half_in_matrix_units ? kHalfEnergy : 0.5;
      break;
    case Arithmetic::kFp8:
      energy *= kFp8Energy;
      break;
  }
  return std::min(1.0, facts.power_limit->w() / (peak->flop_per_s() * energy));
}

Transferred constants_for(const DeviceFacts& facts, std::span<const Calibration> calibrations) {
  REHEARSE_CHECK(!calibrations.empty() && calibrations.front().device == kTypical);
  const Calibration& typical = calibrations.front();
  Transferred result;
  Constants& constants = result.constants;
  const auto note = [&](std::string what, const Calibration& from, const FittedTo& fitted) {
    result.sources.push_back(fmt::format("{}: {} ({})", what,
                                         from.device == facts.name ? "its own rows"
                                         : from.device == kTypical ? "shared by other devices"
                                                                   : "rows of " + from.device,
                                         fitted.source));
  };
  for (std::size_t i = 0; i < kArithmetics; ++i) {
    if (!facts.peaks[i]) continue;
    const auto arithmetic = static_cast<Arithmetic>(i);
    // Half precision on ordinary cores runs FP32 kernels.
    const Arithmetic shape_of = arithmetic == Arithmetic::kHalf && !facts.half_in_matrix_units
                                    ? Arithmetic::kFp32
                                    : arithmetic;
    const auto has = [&](const Calibration& c) { return c.find(arithmetic) != nullptr; };
    const MatrixCalibration* common = typical.find(shape_of);
    REHEARSE_CHECK(common, "no typical {}", to_string(shape_of));
    MatrixConstants& matrix = constants.matrix[i];
    matrix = common->constants;
    matrix.provenance = Provenance::kDatasheet;
    if (const Calibration* own = own_of(facts, calibrations, has)) {
      const MatrixCalibration& m = *own->find(arithmetic);
      matrix = m.constants;
      if (m.constants.shape.count == 0) {
        matrix.shape = common->constants.shape;
        matrix.quantise = common->constants.quantise;
      }
      matrix.provenance = Provenance::kInterpolated;
      note(fmt::format("{} products", to_string(arithmetic)), *own, m.fitted);
      continue;
    }
    const double power = power_share(facts, arithmetic);
    const auto has_shape = [&](const Calibration& c) {
      return c.find(arithmetic)->constants.shape.count > 0;
    };
    if (const Calibration* chip = chip_of(facts, calibrations, has, has_shape)) {
      const MatrixCalibration& m = *chip->find(arithmetic);
      const double theirs = power_share(facts_of(**cluster::find_gpu(chip->device)), arithmetic);
      if (m.constants.shape.count > 0) matrix = m.constants;
      matrix.factor = std::min(1.0, m.constants.factor * power / theirs);
      matrix.provenance = Provenance::kExtrapolated;
      note(fmt::format("{} products", to_string(arithmetic)), *chip, m.fitted);
      continue;
    }
    matrix.factor = facts.vendor == "amd" ? matrix.factor * kAmdShare : matrix.factor;
    matrix.factor = std::min(matrix.factor, power);
    note(fmt::format("{} products", to_string(arithmetic)), typical, common->fitted);
  }
  const auto has = [](const Calibration& c) { return c.memory.has_value(); };
  const Calibration* memory = own_of(facts, calibrations, has);
  constants.memory_provenance = Provenance::kInterpolated;
  if (!memory) {
    memory = chip_of(facts, calibrations, has, has);
    constants.memory_provenance = Provenance::kExtrapolated;
  }
  if (!memory) {
    REHEARSE_CHECK(typical.memory);
    memory = &typical;
    constants.memory_provenance = Provenance::kDatasheet;
  }
  constants.memory = memory->memory->constants;
  if (memory == &typical && !fast_memory(facts) && memory->memory->elementwise_gddr > 0)
    constants.memory.elementwise = memory->memory->elementwise_gddr;
  note("memory", *memory, memory->memory->fitted);
  constants.attention = attention_of(facts);
  constexpr Width kUnknown = {0.5, 2};
  const Calibration* own = nullptr;
  for (const Calibration& c : calibrations)
    if (c.device == facts.name) own = &c;
  for (std::size_t i = 0; i < kOpClasses; ++i) {
    constants.other[i] = typical.widths[i].value_or(kUnknown);
    constants.known[i] = own && own->widths[i] ? *own->widths[i] : constants.other[i];
  }
  return result;
}

}  // namespace rehearse::compute
