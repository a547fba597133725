#include "sim/base/statistics.h"

#include <algorithm>
#include <cstddef>

#include <boost/math/distributions/students_t.hpp>

#include "sim/base/check.h"

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

double upper_median(std::vector<double> values) {
  REHEARSE_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median(std::vector<double> values) {
  REHEARSE_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double student_above(double t, double freedom) {
  return boost::math::cdf(boost::math::complement(student(freedom), t));
}

double student_limit(double above, double freedom) {
  return boost::math::quantile(boost::math::complement(student(freedom), above));
}

}  // namespace rehearse
