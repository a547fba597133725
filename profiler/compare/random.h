// Random numbers that are the same everywhere for the same seed.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace rehearse::compare {

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a counter, mixed. Any seed is as good as another.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// One of 0 … count - 1. REQUIRES: 0 < count < 2^32.
  std::size_t below(std::size_t count) { return ((bits() >> 32) * count) >> 32; }
  /// Above 0, at most 1.
  double uniform() { return (static_cast<double>(bits() >> 11) + 1) * 0x1p-53; }
  /// Standard normal (Box and Muller).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace rehearse::compare
