// Noise for the tests of the comparison of runs.
#pragma once

#include <cmath>
#include <numbers>

#include "sim/base/random.h"

namespace rehearse::compare {

class Random : public rehearse::Random {
 public:
  using rehearse::Random::Random;

  std::uint64_t bits() { return next(); }
  /// Above 0, at most 1.
  double uniform() { return (static_cast<double>(bits() >> 11) + 1) * 0x1p-53; }
  /// Standard normal (Box and Muller).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
};

}  // namespace rehearse::compare
