// What samples say: medians, quantiles, and the distributions that intervals come from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sim/base/check.h"

namespace rehearse {

/// The middle value; the mean of the two in the middle of an even number. `T` is a number or a
/// quantity of units.h. REQUIRES: not empty.
template <class T>
T median(std::vector<T> values) {
  REHEARSE_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

/// The middle value; the larger of the two in the middle of an even number, so that it is always one
/// of the samples. REQUIRES: not empty.
template <class T>
T upper_median(std::vector<T> values) {
  REHEARSE_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The value at a share from 0 to 1 of the order of sorted samples, interpolated linearly between
/// the nearest two. REQUIRES: not empty.
template <class T>
T quantile(std::span<const T> sorted, double share) {
  REHEARSE_CHECK(!sorted.empty());
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

/// How many standard deviations the ends of a normal distribution's 90 % interval are from its mean.
inline constexpr double kNormal90 = 1.6448536269514722;

/// The probability that Student's t exceeds `t`. REQUIRES: degrees of freedom above zero, which need
/// not be whole.
double student_above(double t, double freedom);

/// The value that Student's t exceeds with this probability. REQUIRES: 0 < above < 1.
double student_limit(double above, double freedom);

/// The value that χ² exceeds with this probability. REQUIRES: 0 < above < 1, freedom > 0.
double chi_squared_limit(double above, double freedom);

}  // namespace rehearse
