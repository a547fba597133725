// Fused attention: scores never reach memory.
//
// A kernel is cut into blocks of up to 128 queries of one head. Each block meets its keys in
// tiles of 128. With F FLOPs of the peak per multiprocessor and clock, a block of r queries takes,
// in clocks,
//   key   = family · (4 r size / (share · factor · F) + exponentials · r / 16)
//   block = keys · key + fixed
// and the kernel
//   time = start + Σ block / multiprocessors + tail · (the longest block) + bytes / (memory · rate)
// where causal blocks meet half of the keys and half a block on average, and all keys at most. Few
// queries with many keys (decoding) divide the keys of a block over idle multiprocessors. `factor`
// is that of matrix products, `family` the one factor of a family of kernels, and `size` the head
// size, which kernels have in steps: 32, 64, 96, 128, 192, 256. Exponentials run at 16 per
// multiprocessor and clock. `start` follows the clock.
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

/// Of a family of kernels.
struct AttentionFamily {
  double factor;  ///< time of a key ÷ that of the law
  double start;   ///< s at 1.7 GHz
};

struct AttentionConstants {
  double share = 1;         ///< rate of products in a block ÷ that of a matrix product
  double exponentials = 1;  ///< that products do not hide, of all
  double fixed = 0;         ///< clocks of a block
  double tail = 0;          ///< of the longest block, that shows
  double memory = 1;        ///< share of the peak memory rate
  std::array<AttentionFamily, kAttentionFamilies> families = {{{1, 0}, {1, 0}, {1, 0}}};
};

/// The least head size of a kernel that holds this one.
double head_of_kernel(double size);

/// The kernels that a device runs. Where nobody says which: before Hopper FlashAttention-2, later
/// the mean of all, with the start of those for asynchronous units.
AttentionFamily family_of(const DeviceFacts& facts, const AttentionConstants& constants,
                          std::optional<AttentionKernels> kernels);

/// Seconds to compute, with the start and without memory. `sustained`: rate of matrix products,
/// FLOP/s. REQUIRES: attention, and a device with a peak of this arithmetic.
double attention_time(const DeviceFacts& facts, const AttentionConstants& constants,
                      const AttentionFamily& family, Arithmetic arithmetic, double sustained,
                      const workload::Op& op);

}  // namespace rehearse::compute
