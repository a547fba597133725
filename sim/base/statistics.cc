#include "sim/base/statistics.h"

#include <boost/math/distributions/chi_squared.hpp>
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

double student_above(double t, double freedom) {
  return boost::math::cdf(boost::math::complement(student(freedom), t));
}

double student_limit(double above, double freedom) {
  return boost::math::quantile(boost::math::complement(student(freedom), above));
}

double chi_squared_limit(double above, double freedom) {
  const boost::math::chi_squared_distribution<double, Policy> chi_squared(freedom);
  return boost::math::quantile(boost::math::complement(chi_squared, above));
}

}  // namespace rehearse
