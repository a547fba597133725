// Where a series changed.
#include <cmath>

#include <catch2/catch.hpp>

#include "profiler/compare/change_points.h"
#include "profiler/compare/judge.h"
#include "tests/support/compare_random.h"

namespace rehearse::compare {
namespace {

/// Level by number of the run, with noise.
template <class Level>
std::vector<double> series(std::size_t runs, double noise, std::uint64_t seed, Level level) {
  Random random(seed);
  std::vector<double> values;
  for (std::size_t i = 0; i < runs; ++i)
    values.push_back(level(static_cast<double>(i)) * (1 + noise * random.normal()));
  return values;
}

TEST_CASE("a series without a change is one flat segment") {
  const ChangePoints found = find_changes(series(40, 0.01, 1, [](double) { return 0.2; }));
  REQUIRE(found.segments.size() == 1);
  const Segment& s = found.segments.front();
  CHECK_FALSE(s.drifts);
  CHECK(s.first == 0);
  CHECK(s.count == 40);
  CHECK(s.jump.scale == 0);
  CHECK(s.end.value == Approx(0.2).epsilon(0.01));
  CHECK(s.noise == Approx(0.01).epsilon(0.4));
  CHECK(found.belief.length.value >= 38);
  CHECK(found.belief.drifts < 0.2);
  REQUIRE(found.began.size() == 40);
  CHECK(found.began.front() == Approx(1));
  for (std::size_t i = 5; i < 40; ++i) CHECK(found.began[i] < 0.3);
}

TEST_CASE("the level lies in its 90 % interval nine times of ten") {
  std::size_t of_segment = 0, of_belief = 0;
  constexpr std::size_t kSeries = 100;
  for (std::size_t k = 0; k < kSeries; ++k) {
    const ChangePoints found = find_changes(series(20, 0.01, k, [](double) { return 0.2; }));
    const Ranged &level = found.segments.back().end, &belief = found.belief.level;
    of_segment += level.low < 0.2 && 0.2 < level.high;
    of_belief += belief.low < 0.2 && 0.2 < belief.high;
  }
  for (const std::size_t within : {of_segment, of_belief}) {
    CHECK(within >= 80);
    CHECK(within <= 97);
  }
}

TEST_CASE("a jump is found where it is, with its size and the length since") {
  const auto values = series(40, 0.01, 2, [](double i) { return i < 25 ? 1.0 : 1.06; });
  const ChangePoints found = find_changes(values);
  REQUIRE(found.segments.size() == 2);
  const Segment& now = found.segments.back();
  CHECK(now.first == 25);
  CHECK(now.count == 15);
  CHECK_FALSE(now.drifts);
  CHECK(now.jump.change == Approx(0.06).margin(0.01));
  CHECK(now.jump.low(0.05) < 0.06);
  CHECK(now.jump.high(0.05) > 0.06);
  CHECK(judge(now.jump, 0.03) == Verdict::kFail);
  CHECK(found.belief.length.value == 15);
  CHECK(found.belief.length.low >= 14);
  CHECK(found.belief.level.low < 1.06);
  CHECK(found.belief.level.high > 1.06);
  // The first value after it shows the change.
  CHECK(found.began[25] > 0.5);
}

TEST_CASE("a drift is one segment that rises, not many that jump") {
  const auto values = series(40, 0.01, 3, [](double i) { return 1 + 0.003 * i; });
  const ChangePoints found = find_changes(values);
  REQUIRE(found.segments.size() == 1);
  const Segment& s = found.segments.front();
  CHECK(s.drifts);
  CHECK(s.slope == Approx(std::log(1 + 0.003 * 39) / 39).epsilon(0.2));
  CHECK(s.drift.change == Approx(0.117).margin(0.02));
  CHECK(judge(s.drift, 0.03) == Verdict::kFail);
  CHECK(found.belief.drifts > 0.95);
  CHECK(found.belief.level.value == Approx(1.117).epsilon(0.01));
}

TEST_CASE("a jump after a drift, and a fall, are distinguished") {
  const auto values = series(60, 0.005, 4, [](double i) { return i < 30 ? 1 + 0.004 * i : 0.95; });
  const ChangePoints found = find_changes(values);
  REQUIRE(found.segments.size() == 2);
  CHECK(found.segments[0].drifts);
  CHECK(found.segments[1].first == 30);
  CHECK_FALSE(found.segments[1].drifts);
  CHECK(found.segments[1].jump.change < -0.12);
  CHECK(judge(found.segments[1].jump, 0.03) == Verdict::kPass);
}

TEST_CASE("one bad run does not change the level before it or after it") {
  auto values = series(30, 0.005, 5, [](double) { return 1.0; });
  values[14] *= 1.2;
  const ChangePoints found = find_changes(values);
  CHECK(found.segments.back().end.value == Approx(1).epsilon(0.005));
  CHECK(found.belief.level.value == Approx(1).epsilon(0.005));
}

TEST_CASE("equal values and very different scales are handled") {
  for (const double scale : {1e-9, 1.0, 1e9}) {
    const ChangePoints flat = find_changes(std::vector<double>(12, scale));
    REQUIRE(flat.segments.size() == 1);
    CHECK(flat.segments.front().end.value == Approx(scale));
    std::vector<double> jump(12, scale);
    for (std::size_t i = 6; i < 12; ++i) jump[i] *= 3;
    const ChangePoints found = find_changes(jump);
    REQUIRE(found.segments.size() == 2);
    CHECK(found.segments[1].first == 6);
    CHECK(found.segments[1].jump.change == Approx(2).epsilon(0.05));
  }
  CHECK(!find_changes(std::vector<double>{1, 2, 3}).segments.empty());
}

}  // namespace
}  // namespace rehearse::compare
