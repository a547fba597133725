#include "sim/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace rehearse {
namespace {

namespace policies = boost::math::policies;

/// NaN instead of an exception where there is no answer.
using Policy = policies::policy<
    policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
    policies::overflow_error<policies::ignore_error>,
    policies::evaluation_error<policies::ignore_error>, policies::promote_double<false>>;

/// Beyond 1e12 degrees of freedom it is the normal distribution to more digits than a double has.
boost::math::students_t_distribution<double, Policy> student(double freedom) {
  return boost::math::students_t_distribution<double, Policy>(std::min(freedom, 1e12));
}

}  // namespace

std::optional<std::pair<std::size_t, std::size_t>> median_interval(std::size_t n) {
  REHEARSE_CHECK(n <= 1000);  // the probability of no head is still a number
  std::optional<std::pair<std::size_t, std::size_t>> ends;
  double exactly = std::exp2(-static_cast<double>(n)), at_most = exactly;
  for (std::size_t k = 0; 2 * at_most <= 0.1; ++k) {
    ends = std::pair(k, n - 1 - k);
    exactly *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    at_most += exactly;
  }
  return ends;
}

double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 == sorted.size()) return sorted.back();
  return std::lerp(sorted[below], sorted[below + 1], place - std::floor(place));
}

SampleSpread spread_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::ranges::sort(samples);
  const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
  return {sum / static_cast<double>(samples.size()), quantile(samples, 0.5), quantile(samples, 0.9),
          samples.back()};
}

double student_above(double t, double freedom) {
  return boost::math::cdf(boost::math::complement(student(freedom), t));
}

double student_limit(double above, double freedom) {
  return boost::math::quantile(boost::math::complement(student(freedom), above));
}

double normal_limit(double share) {
  return boost::math::quantile(boost::math::normal_distribution<double, Policy>(), share);
}

double chi_squared_limit(double above, double freedom) {
  const boost::math::chi_squared_distribution<double, Policy> chi_squared(freedom);
  return boost::math::quantile(boost::math::complement(chi_squared, above));
}

}  // namespace rehearse
