// The constants of the laws for one device, wherever they come from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "models/compute/attention_law.h"
#include "models/compute/device_facts.h"
#include "models/compute/memory_law.h"
#include "models/compute/wave_law.h"
#include "models/workload/op.h"
#include "sim/base/estimate.h"

namespace rehearse::compute {

/// Classes of ops whose errors differ.
enum class OpClass : std::uint8_t {
  kGemm,       ///< in FP32 on ordinary cores
  kEarlyGemm,  ///< the same on a device without matrix units, which runs older kernels
  kUnitGemm,   ///< in matrix units
  /// Products that need less than half of their time at the sustained rate: latency and memory.
  kThinGemm,
  kThinUnitGemm,
  kConvolution,
  kAttention,       ///< by kernels that nobody named
  kNamedAttention,  ///< by kernels of a known family
  kElementwise,     ///< and gathers
  kNorm,
  kSoftmax,
};
inline constexpr std::size_t kOpClasses = 11;
inline constexpr std::array<std::string_view, kOpClasses> kOpClassNames = {
    "gemm",      "early_gemm",      "unit_gemm",   "thin_gemm", "thin_unit_gemm", "convolution",
    "attention", "named_attention", "elementwise", "norm",      "softmax"};
constexpr std::string_view to_string(OpClass c) {
  return kOpClassNames[static_cast<std::size_t>(c)];
}

/// A 90 % interval of true ÷ predicted.
struct Width {
  double low = 1, high = 1;
};
using Widths = std::array<Width, kOpClasses>;

/// The constants of matrix products in one arithmetic.
struct MatrixConstants {
  WaveShape shape;
  double factor = 1;   ///< sustained ÷ peak, on all rates of the law
  double batched = 1;  ///< rate of a batch of products ÷ that of one
  Reread reread = {};
  /// FP8 alone: the cost of quantising an element of the left operand, as bytes moved.
  double quantise = 0;
  double from = 0, to = 0;                         ///< FLOPs of the rows it was fitted to; 0: none
  Provenance provenance = Provenance::kDatasheet;  ///< inside those bounds
};

struct Constants {
  std::array<MatrixConstants, kArithmetics> matrix;
  MemoryConstants memory;
  Provenance memory_provenance = Provenance::kDatasheet;
  AttentionConstants attention = {};
  /// Of fused attention. Absent: not known.
  std::optional<AttentionKernels> attention_kernels = {};
  /// Share of the peak matrix rate that fused attention gets, causal work counted once, instead of
  /// its law (attention_law.h).
  std::optional<double> attention_share = {};
  Widths known{};  ///< for constants from the device's own rows
  Widths other{};  ///< for constants from other devices' rows
};

/// Time of an op alone in a stream, s, and its error class.
struct Predicted {
  double seconds;
  OpClass kind;
  Provenance provenance;
};

/// How an op was timed, where it did not run inside a job.
struct Timing {
  double overhead = 0;    ///< s, that a benchmark adds to each call
  bool quantises = true;  ///< FP8 operands come in half precision
  /// Second operands (weights, keys and values) that the calls of a benchmark use in turn. What L2
  /// holds of them is read at `cache` bytes per multiprocessor and clock. 0: all is read from
  /// memory, as in a job.
  double copies = 0;
  double cache = 0;
};

/// REQUIRES: the op does not communicate.
Predicted predict(const DeviceFacts& facts, const Constants& constants, const workload::Op& op,
                  const Timing& timing = {});

}  // namespace rehearse::compute
