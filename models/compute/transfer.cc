#include "models/compute/transfer.h"

#include <algorithm>
#include <functional>
#include <initializer_list>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::compute {
namespace {

constexpr std::string_view kCoreArchitecture = "x86_core";

bool is(const DeviceFacts& facts, std::initializer_list<std::string_view> generations) {
  return std::ranges::any_of(generations,
                             [&](std::string_view g) { return facts.architecture.starts_with(g); });
}

/// J per FLOP, by process: 4 nm, 7 to 8 nm, older.
struct Energy {
  double fp32, half;
};
Energy energy_of(const DeviceFacts& facts) {
  if (is(facts, {"blackwell"})) return {5.5e-12, 0.5e-12};
  if (is(facts, {"ada"})) return {5.5e-12, 1.29e-12};
  if (is(facts, {"hopper", "cdna3"})) return {5.5e-12, 0.79e-12};
  if (is(facts, {"ampere_ga100"})) return {15.2e-12, 1.19e-12};
  // Twice the lanes of GA100 per multiprocessor, or FP32 in matrix units: a bound.
  if (is(facts, {"ampere", "cdna"})) return {9e-12, 1.29e-12};
  return {17.3e-12, 1.77e-12};
}

/// The calibration of the device itself.
const Calibration* own_of(const DeviceFacts& facts, std::span<const Calibration> calibrations,
                          const std::function<bool(const Calibration&)>& has) {
  for (const Calibration& c : calibrations)
    if (c.device != kTypical && c.device == facts.name && has(c)) return &c;
  return nullptr;
}

/// "pascal" of "pascal_gp104".
std::string_view generation_of(std::string_view architecture) {
  return architecture.substr(0, architecture.find('_'));
}
std::string_view chip_of(std::string_view architecture) { return architecture; }

/// The calibration of another device with the same chip or generation. For a partition it is that
/// of its own device; of two candidates, the one for which `better` holds.
const Calibration* other_of(const DeviceFacts& facts, std::span<const Calibration> calibrations,
                            std::string_view (*part)(std::string_view),
                            const std::function<bool(const Calibration&)>& has,
                            const std::function<bool(const Calibration&)>& better) {
  const Calibration* found = nullptr;
  for (const Calibration& c : calibrations) {
    if (c.device == kTypical || c.device == facts.name || !has(c)) continue;
    if (c.device == facts.partition_of) return &c;
    const Result<const cluster::Gpu*> gpu = cluster::find_gpu(c.device);
    if (!gpu || facts.architecture.empty() ||
        part((*gpu)->architecture) != part(facts.architecture))
      continue;
    if (!found || (better(c) && !better(*found))) found = &c;
  }
  return found;
}

}  // namespace

bool fast_memory(const DeviceFacts& facts) {
  return facts.stacked_memory && !facts.architecture.starts_with("pascal");
}

double power_share(const DeviceFacts& facts, Arithmetic arithmetic) {
  const auto& peak = facts.peaks[static_cast<std::size_t>(arithmetic)];
  if (!facts.power_limit || !peak) return 1;
  const auto [fp32, half] = energy_of(facts);
  double energy = fp32;
  switch (arithmetic) {
    case Arithmetic::kFp32: break;
    case Arithmetic::kTf32: energy = 2 * half; break;
    case Arithmetic::kHalf: energy = facts.half_in_matrix_units ? half : 0.5 * fp32; break;
    case Arithmetic::kFp8: energy = 0.5 * half; break;
  }
  return std::min(1.0, facts.power_limit->w() / (peak->flop_per_s() * energy));
}

double issue_share(const DeviceFacts& facts, Arithmetic arithmetic) {
  const bool matrix_units = in_matrix_units(facts, arithmetic);
  // AMD's libraries: 0.51 of the peak on MI300X in half precision (max-matmul-flops), where
  // NVIDIA's reach 0.87; 0.55 to 0.74 of the FP32 matrix peak on MI100 and MI250.
  if (facts.vendor == "amd") return matrix_units ? 0.72 : 0.6;
  if (matrix_units || is(facts, {"volta", "turing", "ampere_ga100"})) return 1;
  return 0.8;
}

double spare_share(const DeviceFacts& facts) {
  // Of Volta, Turing, GA102 and Ada; GA100 and later chips of data centres have more.
  constexpr double kFull = 1024;
  if (facts.vendor != "nvidia" || !facts.half_in_matrix_units || !facts.boost_hz) return 1;
  const double flops =
      facts.peak(Arithmetic::kHalf).flop_per_s() / (facts.multiprocessors * *facts.boost_hz);
  return flops < 0.75 * kFull ? kFull / flops : 1;
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
    const auto has_shape = [&](const Calibration& c) {
      return has(c) && c.find(arithmetic)->constants.shape.count > 0;
    };
    const MatrixCalibration* common = typical.find(shape_of);
    REHEARSE_CHECK(common, "no typical {}", to_string(shape_of));
    MatrixConstants& matrix = constants.matrix[i];
    matrix = common->constants;
    matrix.provenance = Provenance::kDatasheet;
    // Where a device has a factor alone, the shape is that of its generation.
    const auto take = [&](const MatrixConstants& from) {
      const Calibration* near = other_of(facts, calibrations, generation_of, has_shape, has_shape);
      const bool whole = from.shape.count > 0;
      if (whole || near) matrix = whole ? from : near->find(arithmetic)->constants;
      matrix.factor = from.factor;
      matrix.from = from.from;
      matrix.to = from.to;
    };
    const double power = power_share(facts, arithmetic);
    const double issue = issue_share(facts, arithmetic) *
                         (in_matrix_units(facts, arithmetic) ? spare_share(facts) : 1);
    // Power limits a batch of products like one.
    const auto limit_batched = [&](MatrixConstants& m) {
      m.batched = std::min(m.batched, std::max(1.0, power / m.factor));
    };
    const auto adopt = [&](const Calibration& other) {
      const MatrixCalibration& m = *other.find(arithmetic);
      const DeviceFacts its = facts_of(**cluster::find_gpu(other.device));
      const double theirs = std::min(issue_share(its, arithmetic), power_share(its, arithmetic));
      take(m.constants);
      // A partition has the kernels of its device, and its power per multiprocessor.
      if (facts.partition_of != other.device)
        matrix.factor = std::min(matrix.factor / theirs * issue, power);
      limit_batched(matrix);
      matrix.provenance = Provenance::kExtrapolated;
      note(fmt::format("{} products", to_string(arithmetic)), other, m.fitted);
    };
    if (const Calibration* own = own_of(facts, calibrations, has)) {
      const MatrixCalibration& m = *own->find(arithmetic);
      take(m.constants);
      matrix.provenance = Provenance::kInterpolated;
      note(fmt::format("{} products", to_string(arithmetic)), *own, m.fitted);
      continue;
    }
    if (const Calibration* chip = other_of(facts, calibrations, chip_of, has, has_shape)) {
      adopt(*chip);
      continue;
    }
    if (const Calibration* near =
            other_of(facts, calibrations, generation_of, has_shape, has_shape)) {
      adopt(*near);
      matrix.provenance = Provenance::kDatasheet;
      continue;
    }
    matrix.factor = std::min(matrix.factor * issue, power);
    limit_batched(matrix);
    note(fmt::format("{} products", to_string(arithmetic)), typical, common->fitted);
  }
  if (facts.architecture == kCoreArchitecture)
    for (MatrixConstants& matrix : constants.matrix) {
      // Blocks of a core's registers are small: the law without tiles is a roofline.
      WaveShape& shape = matrix.shape;
      shape.tiles[0] = {.rows = 1, .columns = 1, .share = 1, .fixed = 0};
      shape.count = 1;
      shape.cap = shape.memory = 1;
      shape.launch = shape.step = shape.cut = shape.clock = 0;
    }
  const auto has = [](const Calibration& c) { return c.memory.has_value(); };
  const Calibration* memory = own_of(facts, calibrations, has);
  constants.memory_provenance = Provenance::kInterpolated;
  if (!memory) {
    memory = other_of(facts, calibrations, chip_of, has, has);
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
  if (typical.attention) constants.attention = typical.attention->constants;
  constexpr Width kUnknown = {0.5, 2};
  const Calibration* own = nullptr;
  for (const Calibration& c : calibrations)
    if (c.device == facts.name) own = &c;
  for (std::size_t i = 0; i < kOpClasses; ++i) {
    constants.other[i] = typical.widths[i].value_or(kUnknown);
    // Attention was measured on NVIDIA's GPUs alone.
    const bool attention = i == static_cast<std::size_t>(OpClass::kAttention) ||
                           i == static_cast<std::size_t>(OpClass::kNamedAttention);
    if (attention && facts.vendor != "nvidia") constants.other[i] = kUnknown;
    constants.known[i] = own && own->widths[i] ? *own->widths[i] : constants.other[i];
  }
  return result;
}

}  // namespace rehearse::compute
