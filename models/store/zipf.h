// Zipf's law: the k-th most popular of n keys is drawn in proportion to k^-exponent.
#pragma once

#include <cstdint>

#include "sim/base/random.h"
#include "sim/base/result.h"

namespace rehearse::store {

/// Draws keys, 0 the most popular. In constant time whatever n (rejection-inversion: Hoermann and
/// Derflinger, ACM TOMACS 6(3), 1996).
class Zipf {
 public:
  /// REQUIRES: keys >= 1, exponent >= 0 and finite.
  Zipf(std::uint32_t keys, double exponent);

  std::uint32_t draw(Random& random) const;

 private:
  double integral(double x) const;  ///< integral of the density, up to a constant
  double inverse(double integral) const;

  double exponent_;
  double keys_;
  double low_, high_;  ///< integrals that bound the area that is drawn from
  double sure_;        ///< closer than this to its key, a point needs no test
};

/// The share of all draws of the `top` most popular of `keys`; within 1e-6 of the sum.
/// REQUIRES: top <= keys, keys >= 1.
double zipf_share(std::uint32_t keys, double exponent, std::uint32_t top);

/// The exponent for which the share `top` of the keys takes the share `accesses` of the draws, as
/// publications state it ("1 % of rows take 92 % of accesses"). Fails if no exponent from 0 to 10
/// does.
Result<double> zipf_exponent(std::uint32_t keys, double top, double accesses);

}  // namespace rehearse::store
