#include "profiler/bench/random_data.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>

namespace rehearse::bench {
namespace {

constexpr std::size_t kBlock = std::size_t{4} << 20;

std::uint16_t to_bf16(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

/// Exponent and mantissa of that many bits; too small a value becomes zero. |value| <= 1.
std::uint32_t to_small_float(float value, int exponent_bits, int mantissa_bits) {
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(value), &exponent);  // 0.5 to 1
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int stored = exponent - 1 + bias;
  const std::uint32_t sign = std::signbit(value) ? 1U << (exponent_bits + mantissa_bits) : 0;
  if (fraction == 0 || stored <= 0) return sign;
  const auto mantissa =
      static_cast<std::uint32_t>((fraction * 2 - 1) * static_cast<float>(1 << mantissa_bits));
  return sign | static_cast<std::uint32_t>(stored) << mantissa_bits | mantissa;
}

std::vector<unsigned char> make_block(std::string_view dtype) {
  std::vector<unsigned char> block(kBlock);
  std::mt19937 generator(20260101);
  const auto next = [&] {  // uniform; the library's distributions differ between compilers
    return static_cast<float>(generator()) / 2147483648.0F - 1.0F;
  };
  const auto fill = [&](auto encode) {
    using Element = decltype(encode(0.0F));
    for (std::size_t at = 0; at < kBlock; at += sizeof(Element)) {
      const Element element = encode(next());
      std::memcpy(block.data() + at, &element, sizeof element);
    }
  };
  if (dtype == "bf16")
    fill(to_bf16);
  else if (dtype == "fp16")
    fill([](float v) { return static_cast<std::uint16_t>(to_small_float(v, 5, 10)); });
  else if (dtype == "fp8")
    fill([](float v) { return static_cast<std::uint8_t>(to_small_float(v, 4, 3)); });
  else if (dtype == "fp32" || dtype == "tf32")
    fill([](float v) { return v; });
  else
    fill([&](float) { return static_cast<std::uint32_t>(generator()); });
  return block;
}

}  // namespace

const std::vector<unsigned char>& random_block(std::string_view dtype) {
  static std::map<std::string, std::vector<unsigned char>, std::less<>> blocks;
  auto found = blocks.find(dtype);
  if (found == blocks.end()) found = blocks.emplace(dtype, make_block(dtype)).first;
  return found->second;
}

}  // namespace rehearse::bench
