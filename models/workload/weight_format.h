// The format of weights in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rehearse::workload {

enum class WeightFormat : std::uint8_t { kBf16, kFp8, kFp8Block, kNvfp4, kMxfp4, kInt4 };
inline constexpr std::size_t kWeightFormats = 6;
inline constexpr std::string_view kWeightsNames[] = {"bf16",  "fp8",   "fp8_block",
                                                     "nvfp4", "mxfp4", "int4"};
/// Bytes of a weight, with the scales of its block.
constexpr double bytes_of(WeightFormat w) {
  constexpr double kBytes[] = {2, 1, 1, 0.5625, 0.53125, 0.53125};
  return kBytes[static_cast<std::size_t>(w)];
}

}  // namespace rehearse::workload
