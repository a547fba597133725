// Fused attention: scores never reach memory.
//
// A kernel is cut into blocks of up to 128 queries of one head. Each block meets its keys in
// tiles of 128. With F FLOPs of the peak per multiprocessor and clock, a block of r queries takes,
// in clocks,
//   key   = family · (4 r size / (share · factor · F) + exponentials · r / 16)
//   block = keys · key + fixed
// and the kernel
//   time = start + norm(Σ block / multiprocessors + tail · (the longest block), moved) + copied
// where causal blocks meet half of the keys and half a block on average, and all keys at most.
// Operands move while blocks compute: norm(x, y) = (x^q + y^q)^(1/q), at `memory` of the memory
// rate. `factor` is that of matrix products, `family` the one factor of a family of kernels, and
// `size` the head size, which kernels have in steps: 32, 64, 96, 128, 192, 256. Exponentials run at
// 16 per multiprocessor and clock. `start` follows the clock.
//
// Few queries that see all keys (decoding) wait for memory, block after block. Two blocks a
// multiprocessor divide the keys into `parts` of a tile or more, which another kernel merges:
//   block = keys · key + block of decoding,  chain = keys / parts · key of decoding + the same
//   time  = start + norm(Σ block / multiprocessors, chain, moved) + merge + parts · part
// FlashAttention-2 divides only where heads share keys.
// docs/concepts/op-cost.md has the source, a worked example and the errors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "models/compute/device_facts.h"
#include "models/workload/op.h"

namespace rehearse::compute {

/// Kernels that were written alike.
enum class AttentionKernels : std::uint8_t {
  kFlashAttention2,  ///< for any GPU since Ampere
  kTensorRt,         ///< TensorRT-LLM
  kAsynchronous,  ///< for the asynchronous units of Hopper and later: FlashAttention-3, FlashInfer
};
inline constexpr std::size_t kAttentionFamilies = 3;
inline constexpr std::array<std::string_view, kAttentionFamilies> kAttentionFamilyNames = {
    "flash_attention_2", "tensorrt", "asynchronous"};

/// Waits of kernels for few queries, s.
struct Decoding {
  double block = 0;  ///< of a block
  double key = 0;    ///< of a key in one block; 0: loads of others hide it
  double merge = 0;  ///< of the kernel that merges parts, at 1.7 GHz
  double part = 0;   ///< of each part that it merges, at 1.7 GHz
};

/// The constants of a family of kernels.
struct AttentionFamily {
  double factor = 1;  ///< time of a key ÷ that of the law
  double start = 0;   ///< s at 1.7 GHz
  double tail = 0;    ///< of the longest block, that shows
  Decoding decoding = {};
};

struct AttentionConstants {
  double share = 1;         ///< rate of products in a block ÷ that of a matrix product
  double exponentials = 1;  ///< that products do not hide, of all
  double fixed = 0;         ///< clocks of a block
  double memory = 1;        ///< share of the peak memory rate
  double overlap = 2;       ///< q
  std::array<AttentionFamily, kAttentionFamilies> families = {};
  AttentionFamily blackwell = {};  ///< `asynchronous` on Blackwell, where kernels were rewritten
};

/// The least head size of a kernel that holds this one.
double head_of_kernel(double size);

/// The kernels that a device runs. Where nobody says which: before Hopper FlashAttention-2, later
/// the mean factor of all, and otherwise those for asynchronous units.
AttentionFamily family_of(const DeviceFacts& facts, const AttentionConstants& constants,
                          std::optional<AttentionKernels> kernels);

/// Seconds. `sustained`: rate of matrix products, FLOP/s; `moved`: s to move queries, keys, values
/// and result. REQUIRES: attention.
double attention_time(const DeviceFacts& facts, const AttentionConstants& constants,
                      const AttentionFamily& family, double sustained, double moved,
                      const workload::Op& op);

}  // namespace rehearse::compute
