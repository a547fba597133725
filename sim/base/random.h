// Random numbers that are the same everywhere for a seed (the distributions of the standard library
// are not): SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#pragma once

#include <cmath>
#include <cstdint>

namespace rehearse {

/// One number from another, every bit depending on every bit.
constexpr std::uint64_t mixed(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

class Random {
 public:
  /// A stream is the same as that of another seed, shifted by some distance. Each drawn number
  /// meets another stream with a probability of 2^-64, so any seed is as good as another.
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    const std::uint64_t value = mixed(state_);
    state_ += 0x9e3779b97f4a7c15;
    return value;
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// In [0, n). REQUIRES: n > 0.
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32);
  }
  /// Exponentially distributed, mean 1.
  double exponential() { return -std::log1p(-uniform()); }
  /// Normally distributed, mean 0, deviation 1 (Box and Muller).
  double normal() {
    const double radius = std::sqrt(2 * exponential());
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  std::uint64_t state_;
};

/// One of many streams of a seed.
inline Random random_stream(std::uint64_t seed, std::uint64_t number) {
  return Random(mixed(mixed(seed) ^ number));
}

}  // namespace rehearse
