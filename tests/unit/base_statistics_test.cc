// Middles, quantiles and limits of distributions.
#include <catch2/catch.hpp>

#include "sim/base/statistics.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

TEST_CASE("a median is the middle, of quantities too") {
  CHECK(median<double>({3, 1, 2}) == 2);
  CHECK(median<double>({4, 1, 2, 3}) == 2.5);
  CHECK(median<Seconds>({Seconds::s(4), Seconds::s(1)}) == Seconds::s(2.5));
  CHECK(upper_median<double>({4, 1, 2, 3}) == 3);
}

// Between the 4th and 5th of five samples: 0.9 · 4 = 3.6.
TEST_CASE("quantiles are linear between samples") {
  CHECK(quantile({1, 2, 3, 4, 8}, 0.9) == Approx(4 + 0.6 * 4));
  CHECK(quantile({1, 2, 3, 4, 8}, 0) == 1);
  CHECK(quantile({1, 2, 3, 4, 8}, 1) == 8);
  CHECK(quantile({}, 0.5) == 0);
  const SampleSpread spread = spread_of({8, 1, 2, 3, 4});
  CHECK(spread.mean == Approx(3.6));
  CHECK(spread.median == 3);
  CHECK(spread.p90 == Approx(6.4));
  CHECK(spread.most == 8);
  CHECK(spread_of({}).most == 0);
}

// Tables of chi-squared: 5 % above 18.307 at 10 degrees of freedom, 95 % above 3.940.
TEST_CASE("chi-squared exceeds its limits with the requested probability") {
  CHECK(chi_squared_limit(0.05, 10) == Approx(18.307).epsilon(1e-4));
  CHECK(chi_squared_limit(0.95, 10) == Approx(3.940).epsilon(1e-4));
}

// 90 % stay below 1.2816 standard deviations, and the upper end of the interval is 1.6449 away.
TEST_CASE("what an estimate stays below with a probability") {
  const Estimate<Seconds> step{Seconds::s(2), Seconds::s(1.9), Seconds::s(3),
                               Provenance::kExtrapolated};
  CHECK(value_at(step, 0.5) == Seconds::s(2));
  CHECK(value_at(step, 0.9).s() == Approx(2 + 1.2816 / 1.6449).epsilon(1e-4));
  CHECK(value_at(step, 0.95).s() == Approx(3));
}

}  // namespace
}  // namespace rehearse
