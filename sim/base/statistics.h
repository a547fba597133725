// Statistics of samples: medians, quantiles, and limits of distributions.
#pragma once

#include <algorithm>
#include <vector>

namespace rehearse {

/// The middle value; the mean of the two in the middle of an even number. Of numbers, and of
/// quantities with units. REQUIRES: not empty.
template <class T>
T median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) * 0.5;
}

/// The middle value; the larger of the two in the middle of an even number, so that it is always one
/// of the samples. REQUIRES: not empty.
double upper_median(std::vector<double> values);

/// The value below which this share of the samples lies, linear between samples; 0 without samples.
/// REQUIRES: ascending samples, 0 <= share <= 1.
double quantile(const std::vector<double>& sorted, double share);

/// How samples are distributed; all 0 without samples.
struct SampleSpread {
  double mean = 0, median = 0, p90 = 0, most = 0;
};
SampleSpread spread_of(std::vector<double> samples);

/// The probability that Student's t exceeds `t`. REQUIRES: degrees of freedom above zero, which need
/// not be whole.
double student_above(double t, double freedom);

/// The value that Student's t exceeds with this probability. REQUIRES: 0 < above < 1.
double student_limit(double above, double freedom);

/// The value that chi-squared exceeds with this probability. REQUIRES: degrees of freedom above
/// zero, 0 < above < 1.
double chi_squared_limit(double above, double freedom);

}  // namespace rehearse
