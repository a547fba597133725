// Kernels of inference servers: the times of a layer's parts at few tokens, by laws whose
// constants are fitted to tables of operator latencies (kernels.yaml).
//
// With BW the device's memory rate, P its peak rate in the arithmetic of the operands:
//   product    start + depth·k + quantise·m·k / BW + (T_m⁴ + T_c⁴)^¼
//              T_m = bytes / (memory·BW), T_c = waves of tiles of 64 or 128 × 128 at share·P (16 to 64 rows where
//              weights are widened to half precision: Frantar et al., MARLIN, 2024)
//   decode     start + bytes / (memory·BW) + row·rows·kv heads + root·√context
//   context    start + 4·heads·size·pairs / (share·P) · rounding · (1 + short / context) + I/O / (io·BW)
//   mixture    start + depth·(H + I) + pass·4·pairs·(H + I) / BW + (T_m³ + T_c³)^⅓
//              T_m streams the weights of the active experts, T_c multiplies pairs + tile rows each
//   all-reduce min(start + rank·(g-2) + bytes·(g-1) / (one·link),
//                  start + 2·rank·(g-2) + 2·bytes·(g-1) / g / (two·link))
// docs/concepts/serving-price.md has the evidence. Tables exist for four architectures; another
// device takes the shares of the nearest one with its own peaks, and a wider interval.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/compute/device_facts.h"
#include "models/workload/weight_format.h"
#include "sim/base/estimate.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::serving {

using workload::bytes_of;
using workload::kWeightFormats;
using workload::kWeightsNames;
using Weights = workload::WeightFormat;

/// The format of cached keys and values.
enum class CacheFormat : std::uint8_t { kBf16, kFp8 };
inline constexpr std::string_view kCacheFormatNames[] = {"bf16", "fp8"};
constexpr double bytes_of(CacheFormat f) { return f == CacheFormat::kBf16 ? 2 : 1; }

/// A product's share of peak holds up to this many rows; the last one holds beyond. Libraries
/// change their tile there.
inline constexpr std::array<double, 6> kRungs = {16, 64, 128, 256, 512, 1024};

struct ProductLaw {
  Seconds start = Seconds::s(0), depth = Seconds::s(0);
  double memory = 1;
  double quantise = 0;  ///< bytes moved per element of the left operand
  std::array<double, kRungs.size() + 1> share = {};
};
struct DecodeLaw {
  Seconds start = Seconds::s(0), row = Seconds::s(0), root = Seconds::s(0);
  double memory = 1;
};
struct ContextLaw {
  Seconds start = Seconds::s(0);
  double share = 1;
  double narrow = 1;  ///< share for heads of 64 ÷ share
  double tokens = 0;  ///< `short`: context at which the rate halves
  double io = 1;
};
struct MixtureLaw {
  Seconds start = Seconds::s(0), depth = Seconds::s(0);
  double memory = 1, pass = 0, share = 1, tile = 0;
};
struct ReduceLaw {
  Seconds one_start = Seconds::s(0), two_start = Seconds::s(0), rank = Seconds::s(0);
  double one = 1, two = 1;
};

/// Causal attention of prompt chunks: all of a step's, in one kernel.
struct ContextWork {
  double pairs = 0;   ///< of queries and keys
  double slowed = 0;  ///< Σ pairs ÷ context, for `short`
  double blocks = 0;  ///< Σ of blocks of 128 queries
  double queries = 0;
  double keys = 0;
};

/// The experts of a layer on one rank.
struct Experts {
  double hidden, width;  ///< width: of an expert's share on this rank
  double held;           ///< experts on this rank
  Weights weights;
};

/// The laws on one device. A value.
class Kernels {
 public:
  /// `link`: of the device to others of its node, one direction. A framework may have products of its
  /// own for prompts, and from a version on another kernel of experts; others have those of the table. An
  /// empty version is the newest.
  Kernels(const compute::DeviceFacts& facts, ByteRate link, std::string_view framework,
          std::string_view version);

  /// Seconds, of m × k by k × n. Activations are half precision.
  double product(Weights weights, double m, double n, double k) const;
  /// Of one query per row. `bytes` of keys and values, `context`: mean per row, `flops` of scores and
  /// values: they count where many heads share one key (latent attention).
  double decode(CacheFormat cache, double bytes, double rows, double kv_heads, double context,
                double flops) const;
  double context(CacheFormat cache, const ContextWork& work, double heads, double kv_heads,
                 double size) const;
  /// Of `pairs` of tokens and experts, which use `active` experts of this rank.
  double mixture(const Experts& experts, double pairs, double active) const;
  /// Over `ranks` devices.
  double all_reduce(double bytes, double ranks) const;
  /// An all-gather that leaves so many bytes on each of `ranks` devices, or a reduce-scatter of as
  /// many: half of the bytes of an all-reduce in two phases, with its start.
  double gather(double bytes, double ranks) const;
  /// A kernel that moves so many bytes, without its start.
  double moving(double bytes) const { return bytes / (0.8 * memory_rate_); }

  /// interpolated: a table of this architecture; extrapolated: of its family; datasheet: otherwise.
  Provenance provenance() const { return provenance_; }
  const std::string& source() const { return source_; }

 private:
  double peak(Weights weights) const { return weights == Weights::kBf16 ? half_ : low_; }

  double memory_rate_, half_, low_, link_, multiprocessors_;
  std::array<ProductLaw, kWeightFormats> products_;
  std::array<bool, kWeightFormats> widened_ = {};  ///< multiplied in half precision
  std::array<MixtureLaw, kWeightFormats> mixtures_;
  std::array<DecodeLaw, 2> decode_;
  std::array<ContextLaw, 2> context_;
  ReduceLaw reduce_;
  Provenance provenance_;
  std::string source_;
};

}  // namespace rehearse::serving
