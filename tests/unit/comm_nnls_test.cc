// Non-negative least squares against systems solved by hand and against the conditions that its
// answer must meet.
#include <cmath>
#include <random>

#include <catch2/catch.hpp>

#include "models/comm/nnls.h"

namespace rehearse::comm {
namespace {

std::vector<double> ones(const Equations& e) { return std::vector<double>(e.size(), 1.0); }

TEST_CASE("an interior solution is that of least squares") {
  // x = 1, y = 2 solves all three.
  Equations e(2);
  e.add({1, 0}, 1);
  e.add({0, 1}, 2);
  e.add({1, 1}, 3);
  const auto x = nnls(e, ones(e));
  CHECK(x[0] == Approx(1));
  CHECK(x[1] == Approx(2));
}

TEST_CASE("negative unknowns become zero, and the others are solved again") {
  // Unconstrained: x = -1, y = 3. With x = 0: y + y = 2 + 3 in the mean, 2.5.
  Equations e(2);
  e.add({1, 1}, 2);
  e.add({0, 1}, 3);
  const auto x = nnls(e, ones(e));
  CHECK(x[0] == Approx(0).margin(1e-12));
  CHECK(x[1] == Approx(2.5));
  // All negative: nothing is best.
  Equations none(1);
  none.add({1}, -4);
  CHECK(nnls(none, ones(none))[0] == 0);
}

TEST_CASE("weights count squared, columns may differ in scale by 1e12") {
  // (w=3)(x - 1), (w=1)(x - 2): (9 * 1 + 2) / 10.
  Equations e(1);
  e.add({1e-12}, 1);
  e.add({1e-12}, 2);
  CHECK(nnls(e, {3, 1})[0] == Approx(1.1e12));
}

TEST_CASE("the conditions of Karush, Kuhn and Tucker hold") {
  const std::uint64_t seed = 77;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t n = 1 + random() % 6, rows = n + random() % 20;
    Equations e(n);
    double size = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      std::vector<double> c(n);
      for (double& v : c) v = normal(random);
      const double value = normal(random) * 3;
      e.add(c, value);
      size += value * value;
    }
    const auto x = nnls(e, ones(e));
    for (std::size_t c = 0; c < n; ++c) {
      double gradient = 0;  // of half the sum of squares
      for (std::size_t r = 0; r < rows; ++r) {
        double residual = -e.values()[r];
        for (std::size_t k = 0; k < n; ++k) residual += e.coefficients()[r * n + k] * x[k];
        gradient += e.coefficients()[r * n + c] * residual;
      }
      CHECK(x[c] >= 0);
      if (x[c] > 1e-9)
        CHECK(gradient == Approx(0).margin(1e-9 * std::max(size, 1.0)));
      else
        CHECK(gradient >= -1e-9 * std::max(size, 1.0));
    }
  }
}

TEST_CASE("a few outliers do not move a robust answer") {
  Equations e(2);
  for (int i = 1; i <= 20; ++i) e.add({1, static_cast<double>(i)}, i == 5 ? 100 : 2 + 3.0 * i);
  const auto x = robust_nnls(e, 1e-6);
  CHECK(x[0] == Approx(2).epsilon(1e-3));
  CHECK(x[1] == Approx(3).epsilon(1e-3));
  CHECK(std::abs(nnls(e, ones(e))[0] - 2) > 1);
}

}  // namespace
}  // namespace rehearse::comm
