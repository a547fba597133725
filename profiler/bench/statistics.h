// Statistics of the samples of one time. Pure functions.
#pragma once

#include <cstddef>
#include <span>

#include "sim/base/units.h"

namespace rehearse::bench {

struct Summary {
  Seconds median = Seconds::s(0), mean = Seconds::s(0), min = Seconds::s(0), p10 = Seconds::s(0),
          p90 = Seconds::s(0);
  std::size_t samples = 0;
  /// The half-width of the mean's 95 % interval, relative to the mean; infinite with fewer than two
  /// samples.
  double half_width = 0;
};

/// Percentiles are interpolated linearly between the two nearest samples.
/// REQUIRES: at least one sample, each finite and above zero.
Summary summarize(std::span<const Seconds> samples);

/// Half-width of the 95 % interval of a mean, in standard errors: Student's t with
/// `samples` - 1 degrees of freedom. REQUIRES: samples >= 2.
double student_95(std::size_t samples);

}  // namespace rehearse::bench
