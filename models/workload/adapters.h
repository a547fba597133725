// Low-rank adapters (LoRA: Hu et al., 2021). The weights of the model are frozen. Each adapted matrix
// W, in × out, gets a pair of small matrices, which alone are trained:
//
//   y = x W + s (x A) B      A: in × r, B: r × out
//
//  - A frozen matrix has no weight-gradient product, no accumulation, no gradient and no state of the
//    optimizer. The gradient of its input stays, because earlier adapters need it.
//  - An input that only the gradient of a frozen matrix would need is not saved.
//  - Per token, an adapter adds 2 r (in + out) FLOPs to forward and twice as many to backward,
//    r (in + out) parameters, and the r saved values of x A. The traffic is that of PEFT's modules:
//    s (x A) B is scaled, then added.
//  - Where tensor parallelism divides the columns of W it divides those of B; where it divides the
//    rows of W, the rows of A.
//
// The gradient of the first block's input is counted too, although nothing needs it.
//
// The frozen matrices of blocks with attention may be stored in 4 bits (QLoRA: Dettmers et al., 2023).
// Each pass writes them in the format of operands first, a matrix before its product.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/base/result.h"

namespace rehearse::workload {

struct Workload;

/// The matrices of a block with attention that get adapters.
enum class Adapted : std::uint8_t {
  kAttention,    ///< those around the scores: queries, keys, values and the projection
  kFeedForward,  ///< the others
  kAll,
};
inline constexpr std::string_view kAdaptedNames[] = {"attention", "feed_forward", "all"};

/// The number format of frozen weights.
enum class Frozen : std::uint8_t {
  kAsTrained,
  kNf4,  ///< matrices of blocks with attention as 4-bit normal floats; the others as trained
};
inline constexpr std::string_view kFrozenNames[] = {"as_trained", "nf4"};

/// Bytes of a parameter in 4 bits with double quantisation (QLoRA, section 3): a constant of 8 bits
/// for each 64 parameters, and one of 32 bits for each 256 of those, 4.127 bits in all.
inline constexpr double kNf4Bytes = (4 + 8.0 / 64 + 32.0 / (64 * 256)) / 8;
/// Without the constants: the part that ZeRO-3 shards and gathers. Every rank has all constants, which
/// are no parameters (FSDP with bitsandbytes).
inline constexpr double kNf4Sharded = 0.5;

/// The workload with adapters of this rank. Fails for recorded work, whose backward cannot be taken
/// apart, and where no layer has attention. REQUIRES: rank > 0.
Result<Workload> with_adapters(Workload workload, std::uint32_t rank, Adapted targets,
                               Frozen frozen = Frozen::kAsTrained);

}  // namespace rehearse::workload
