// The constants of the laws for one device, wherever they come from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "models/compute/device_facts.h"
#include "models/compute/wave_law.h"
#include "sim/base/estimate.h"

namespace rehearse::compute {

/// Classes of ops whose errors differ.
enum class OpClass : std::uint8_t {
  kGemm,      ///< large enough to fill the device
  kThinGemm,  ///< less than half a wave, or bound by memory
  kConvolution,
  kAttention,
  kElementwise,  ///< gathers too
  kNorm,
  kSoftmax,
};
inline constexpr std::size_t kOpClasses = 7;
inline constexpr std::array<std::string_view, kOpClasses> kOpClassNames = {
    "gemm", "thin_gemm", "convolution", "attention", "elementwise", "norm", "softmax"};
constexpr std::string_view to_string(OpClass c) {
  return kOpClassNames[static_cast<std::size_t>(c)];
}

/// A 90 % interval of measured ÷ predicted.
struct Width {
  double low = 1, high = 1;
};

/// Kernels bound by memory: passes × bytes ÷ (share × peak rate) + call.
struct MemoryShares {
  double elementwise = 0.83;
  double norm = 0.60;     ///< of the bytes read and written once; a row is read twice
  double softmax = 0.65;  ///< the same
  double call = 5e-6;     ///< s, of a kernel
};

struct Constants {
  std::array<WaveShape, kArithmetics> waves;
  /// Sustained ÷ peak, on all rates of the wave law.
  std::array<double, kArithmetics> factors;
  std::array<Provenance, kArithmetics> origins;  ///< of the factors, within their envelope
  MemoryShares memory;
  Provenance memory_origin;
  double attention;  ///< share of the peak matrix rate of fused attention, causal work counted once
  std::array<Width, kOpClasses> widths;
};

/// Those of a device of which nothing was measured.
Constants datasheet_constants(const DeviceFacts& facts);

}  // namespace rehearse::compute
