#include "tests/validation/studies/left_out_width.h"

#include <cmath>
#include <random>

#include <catch2/catch.hpp>

namespace rehearse::cli {
namespace {

using Catch::Detail::Approx;

TEST_CASE("two sources tell nothing of a third", "[validation]") {
  CHECK(!left_out_width({{"a", {0.1, -0.1}}, {"b", {0.2}}}));
}

TEST_CASE("the ends reach as far as sources exceed the ends of the others", "[validation]") {
  // Quantiles of all rows: -0.1 and 0.2. The share is 1 - 0.05 (1 - 1/3) = 0.967: the largest excess.
  // Below: a by 0 - (-0.1) = 0.1, b and c not. Above: c by 0.2 - 0 = 0.2, a and b not.
  const std::optional<LeftOutWidth> width =
      left_out_width({{"a", {-0.1}}, {"b", {0}}, {"c", {0.2}}});
  REQUIRE(width);
  CHECK(width->low == Approx(std::exp(-0.1 - 0.1)));
  CHECK(width->high == Approx(std::exp(0.2 + 0.2)));
  CHECK(width->sources == 3);
  CHECK(width->rows == 3);
  CHECK(!width->held);
}

TEST_CASE("a source with more rows does not weigh more", "[validation]") {
  const LeftOutErrors few = {
      {"a", {-0.1, 0.05}}, {"b", {0, 0.1}}, {"c", {0.2, 0.3}}, {"d", {-0.2}}};
  LeftOutErrors many = few;
  for (int i = 0; i < 3; ++i)
    many["a"].insert(many["a"].end(), few.at("a").begin(), few.at("a").end());
  CHECK(left_out_width(many)->low == Approx(left_out_width(few)->low));
  CHECK(left_out_width(many)->high == Approx(left_out_width(few)->high));
  CHECK(left_out_width(many)->rows == left_out_width(few)->rows + 6);
}

TEST_CASE("the interval contains the prediction, on whichever side the sources are",
          "[validation]") {
  const std::optional<LeftOutWidth> width =
      left_out_width({{"a", {0.1}}, {"b", {0.12}}, {"c", {0.11}}, {"d", {0.1}}});
  REQUIRE(width);
  CHECK(width->low == 1);
  CHECK(width->high >= std::exp(0.12));
  REQUIRE(width->held);
  CHECK(*width->held > 0);
}

TEST_CASE("nine tenths of the rows of a new source are inside", "[validation]") {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  // A source has an error of its own, twice as large as that of its rows.
  const auto source = [&](std::size_t rows) {
    const double own = 0.1 * normal(random);
    std::vector<double> x(rows);
    for (double& each : x) each = own + 0.05 * normal(random);
    return x;
  };
  double held = 0;
  constexpr int kTrials = 100;
  for (int t = 0; t < kTrials; ++t) {
    LeftOutErrors errors;
    for (int s = 0; s < 10; ++s) errors[std::to_string(s)] = source(20);
    const LeftOutWidth width = left_out_width(errors).value();
    for (const double x : source(20))
      held += width.low <= std::exp(x) && std::exp(x) <= width.high ? 1.0 / (20 * kTrials) : 0;
  }
  CHECK(held > 0.86);
  CHECK(held < 0.95);
}

}  // namespace
}  // namespace rehearse::cli
