// Statistics of samples.
#include <cmath>
#include <random>

#include <catch2/catch.hpp>

#include "profiler/bench/measure.h"

namespace rehearse::bench {
namespace {

std::vector<Seconds> of(std::initializer_list<double> values) {
  std::vector<Seconds> samples;
  for (const double value : values) samples.push_back(Seconds::s(value));
  return samples;
}

TEST_CASE("a summary of five samples, by hand") {
  const Summary s = summarize(of({5, 1, 4, 2, 3}));
  CHECK(s.median == Seconds::s(3));
  CHECK(s.mean == Seconds::s(3));
  CHECK(s.min == Seconds::s(1));
  CHECK(s.p10.s() == Approx(1.4));
  CHECK(s.p90.s() == Approx(4.6));
  CHECK(s.samples == 5);
  // Deviation √2.5, error √0.5, Student's t of four degrees of freedom 2.776.
  CHECK(s.half_width == Approx(2.776 * std::sqrt(0.5) / 3).epsilon(0.01));
}

TEST_CASE("one sample has no uncertainty estimate, equal samples have none") {
  CHECK(std::isinf(summarize(of({2})).half_width));
  CHECK(summarize(of({2})).p90 == Seconds::s(2));
  CHECK(summarize(of({2, 2, 2})).half_width == 0);
}

TEST_CASE("Student's t agrees with its table") {
  for (const auto& [samples, t] : {std::pair(2, 12.706),
                                   {3, 4.303},
                                   {4, 3.182},
                                   {5, 2.776},
                                   {10, 2.262},
                                   {30, 2.045},
                                   {120, 1.980},
                                   {1000, 1.962}}) {
    INFO(samples);
    CHECK(student_95(static_cast<std::size_t>(samples)) == Approx(t).epsilon(0.01));
  }
}

TEST_CASE("the interval of a mean holds the true mean in 95 of 100 experiments") {
  std::mt19937 random(7);
  std::normal_distribution<double> times(10, 1);
  int inside = 0;
  constexpr int kExperiments = 2000;
  for (int i = 0; i < kExperiments; ++i) {
    std::vector<Seconds> samples;
    for (int n = 0; n < 12; ++n) samples.push_back(Seconds::s(times(random)));
    const Summary s = summarize(samples);
    if (std::abs(s.mean.s() - 10) <= s.half_width * s.mean.s()) ++inside;
  }
  CHECK(inside > 0.935 * kExperiments);
  CHECK(inside < 0.965 * kExperiments);
}

}  // namespace
}  // namespace rehearse::bench
