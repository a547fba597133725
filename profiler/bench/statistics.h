// What samples of one time say of it. Pure functions.
#pragma once

#include <cstddef>
#include <span>

#include "sim/base/units.h"

namespace rehearse::bench {

struct Summary {
  Seconds median = Seconds::s(0), mean = Seconds::s(0), min = Seconds::s(0), p10 = Seconds::s(0),
          p90 = Seconds::s(0);
  std::size_t samples = 0;
  /// Of the mean's 95 % interval, as a share of the mean; infinite below two samples.
  double half_width = 0;
};

/// Percentiles lie between the two samples that are nearest, in proportion.
/// REQUIRES: at least one sample, each finite and above zero.
Summary summarize(std::span<const Seconds> samples);

/// The sorted samples' value at a share from 0 to 1 of their order. REQUIRES: not empty.
Seconds quantile(std::span<const Seconds> sorted, double share);

/// How many standard errors lie to each side of a mean in its 95 % interval: Student's t with
/// `samples` - 1 degrees of freedom, exact. REQUIRES: samples >= 2.
double student_95(std::size_t samples);

}  // namespace rehearse::bench
