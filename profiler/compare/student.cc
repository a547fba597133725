#include "profiler/compare/student.h"

#include <cmath>
#include <initializer_list>

namespace rehearse::compare {
namespace {

/// The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  if (std::abs(d) < kTiny) d = kTiny;
  d = 1 / d;
  double value = d;
  for (int m = 1; m < 500; ++m) {
    const double at = a + 2 * m;
    const double even = m * (b - m) * x / ((at - 1) * at);
    const double odd = -(a + m) * (a + b + m) * x / (at * (at + 1));
    for (const double term : {even, odd}) {
      d = 1 + term * d;
      c = 1 + term / c;
      if (std::abs(d) < kTiny) d = kTiny;
      if (std::abs(c) < kTiny) c = kTiny;
      d = 1 / d;
      value *= d * c;
    }
    if (std::abs(d * c - 1) < 1e-14) break;
  }
  return value;
}

/// The regularised incomplete beta function I_x(a, b).
double beta_share(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                   : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_above(double t, double freedom) {
  const double tail = 0.5 * beta_share(0.5 * freedom, 0.5, freedom / (freedom + t * t));
  return t >= 0 ? tail : 1 - tail;
}

double student_limit(double above, double freedom) {
  if (above > 0.5) return -student_limit(1 - above, freedom);
  double low = 0, high = 1;
  while (student_above(high, freedom) > above && high < 1e12) high *= 2;
  for (int i = 0; i < 100 && high - low > 1e-10 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (student_above(middle, freedom) > above ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace rehearse::compare
