#include "profiler/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "sim/base/statistics.h"

namespace rehearse::bench {

double student_95(std::size_t samples) {
  return student_limit(0.025, static_cast<double>(samples) - 1);
}

Summary summarize(std::span<const Seconds> samples) {
  std::vector<double> sorted;
  for (const Seconds sample : samples) sorted.push_back(sample.s());
  std::ranges::sort(sorted);
  const auto at = [&](double share) { return Seconds::s(quantile(sorted, share)); };
  const auto n = static_cast<double>(sorted.size());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  double squares = 0;  // around the mean: the samples differ little
  for (const double s : sorted) squares += (s - mean) * (s - mean);
  const double half_width =
      sorted.size() < 2 ? std::numeric_limits<double>::infinity()
                        : student_95(sorted.size()) * std::sqrt(squares / (n - 1) / n) / mean;
  return {.median = at(0.5),
          .mean = Seconds::s(mean),
          .min = Seconds::s(sorted.front()),
          .p10 = at(0.1),
          .p90 = at(0.9),
          .samples = sorted.size(),
          .half_width = half_width};
}

}  // namespace rehearse::bench
