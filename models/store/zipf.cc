#include "models/store/zipf.h"

#include <cmath>

#include <fmt/core.h>

namespace rehearse::store {
namespace {

/// (e^x - 1) / x, also near 0.
double expm1_over(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }
/// ln(1 + x) / x, also near 0.
double log1p_over(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }

/// Sum of k^-s for k = 1 … n: term by term, then by the formula of Euler and Maclaurin, whose next
/// term is below 1e-12 of the sum from 1000 on.
double harmonic(double n, double s) {
  constexpr double kTerms = 1000;
  double sum = 0;
  for (double k = 1; k <= std::min(n, kTerms); ++k) sum += std::pow(k, -s);
  if (n <= kTerms) return sum;
  const double log_ratio = std::log(n / kTerms);
  const double at_n = std::pow(n, -s), at_terms = std::pow(kTerms, -s);
  const double area = kTerms * at_terms * log_ratio * expm1_over((1 - s) * log_ratio);
  return sum + area + (at_n - at_terms) / 2 + s * (at_terms / kTerms - at_n / n) / 12;
}

}  // namespace

Zipf::Zipf(std::uint32_t keys, double exponent) : exponent_(exponent), keys_(keys) {
  low_ = integral(1.5) - 1;
  high_ = integral(keys_ + 0.5);
  sure_ = 2 - inverse(integral(2.5) - std::pow(2, -exponent_));
}

double Zipf::integral(double x) const {
  const double log_x = std::log(x);
  return expm1_over((1 - exponent_) * log_x) * log_x;
}

double Zipf::inverse(double integral) const {
  const double t = std::max(integral * (1 - exponent_), -1.0);
  return std::exp(log1p_over(t) * integral);
}

std::uint32_t Zipf::draw(Random& random) const {
  for (;;) {
    const double u = high_ + random.uniform() * (low_ - high_);
    const double x = inverse(u);
    const double k = std::min(std::max(std::floor(x + 0.5), 1.0), keys_);
    if (k - x <= sure_ || u >= integral(k + 0.5) - std::pow(k, -exponent_))
      return static_cast<std::uint32_t>(k) - 1;
  }
}

double zipf_share(std::uint32_t keys, double exponent, std::uint32_t top) {
  return top == 0 ? 0 : harmonic(top, exponent) / harmonic(keys, exponent);
}

Result<double> zipf_exponent(std::uint32_t keys, double top, double accesses) {
  if (keys < 1 || !(top > 0 && top < 1) || !(accesses > 0 && accesses < 1))
    return fail(fmt::format("{:g} of {} keys for {:g} of accesses", top, keys, accesses),
                "shares above 0 and below 1, of at least one key");
  const auto count = static_cast<std::uint32_t>(std::max(std::round(top * keys), 1.0));
  double low = 0, high = 10;
  if (zipf_share(keys, low, count) > accesses || zipf_share(keys, high, count) < accesses)
    return fail(fmt::format("no exponent gives {} of {} keys a share of {:g} of the accesses",
                            count, keys, accesses),
                fmt::format("{:.3g} to 1", zipf_share(keys, low, count)));
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (zipf_share(keys, middle, count) < accesses ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace rehearse::store
