// Statistics of samples: medians, quantiles, and limits of distributions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/estimate.h"

namespace rehearse {

/// The middle value; the mean of the two in the middle of an even number. Of numbers, and of
/// quantities with units. REQUIRES: not empty.
template <class T>
T median(std::vector<T> values) {
  REHEARSE_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) * 0.5;
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

/// Which of n ascending samples are the ends of an interval of at least 90 % for the median of their
/// distribution; nothing below 5 samples. The samples at k and n - 1 - k miss the median with
/// probability 2 P(B <= k), B being the number of heads of n coins. REQUIRES: n <= 1000.
std::optional<std::pair<std::size_t, std::size_t>> median_interval(std::size_t n);

/// The value below which this share of the samples lies, linear between samples; 0 without samples.
/// REQUIRES: ascending samples, 0 <= share <= 1.
double quantile(const std::vector<double>& sorted, double share);

/// How samples are distributed; all 0 without samples.
struct SampleSpread {
  double mean = 0, median = 0, p90 = 0, most = 0;
};
SampleSpread spread_of(std::vector<double> samples);

/// The value, in standard deviations above the mean, that a normal distribution stays below with
/// this probability. REQUIRES: 0 < share < 1.
double normal_limit(double share);

/// How many standard deviations the ends of a normal distribution's 90 % interval are from its mean.
inline constexpr double kNormal90 = 1.6448536269514722;

/// The value that a quantity stays below with this probability, by a normal distribution above its
/// value: `value` at 0.5, `high` at 0.95. REQUIRES: 0.5 <= share < 1.
template <class Q>
Q value_at(const Estimate<Q>& estimate, double share) {
  if (share <= 0.5) return estimate.value;
  return estimate.value + (estimate.high - estimate.value) * (normal_limit(share) / kNormal90);
}

/// The probability that Student's t exceeds `t`. REQUIRES: degrees of freedom above zero, which need
/// not be whole.
double student_above(double t, double freedom);

/// The value that Student's t exceeds with this probability. REQUIRES: 0 < above < 1.
double student_limit(double above, double freedom);

/// The value that chi-squared exceeds with this probability. REQUIRES: degrees of freedom above
/// zero, 0 < above < 1.
double chi_squared_limit(double above, double freedom);

}  // namespace rehearse
