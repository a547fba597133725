// A wall clock that was stepped or slewed while recording, taken back.
#include "profiler/ingest/capture_clock.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <random>

#include <catch2/catch.hpp>

#include "profiler/ingest/input.h"
#include "tests/support/capture_builder.h"
#include "tests/support/capture_run.h"
#include "tests/support/data.h"

namespace rehearse::ingest {
namespace {

using capture::ClockPair;

constexpr std::uint64_t kWall = 1700000000000000000, kBoot = 5'000'000'000'000;
constexpr double kSecond = 1e9;

/// A wall clock whose truth is known: `gained(t)` is what it gained, in ns, t ns after the begin,
/// beyond a usual drift of 20 ppm.
template <class Gained>
struct Wall {
  Gained gained;
  std::uint64_t at(double t) const {
    return kWall + static_cast<std::uint64_t>(std::llround(t * (1 + 20e-6) + gained(t)));
  }
  /// Pairs each second, read within 200 ns of each other.
  std::vector<ClockPair> pairs(int seconds, std::uint64_t seed = 1) const {
    std::mt19937_64 random(seed);
    std::vector<ClockPair> found;
    for (int s = 0; s <= seconds; ++s) {
      const double t = s * kSecond;
      found.push_back(
          {at(t + static_cast<double>(random() % 200)), kBoot + static_cast<std::uint64_t>(t)});
    }
    return found;
  }
  /// How far a row of the moment t lies from where it should, ns, when it is written by the next
  /// second.
  double error(const MachineClock& clock, double t) const {
    const auto written =
        kBoot + static_cast<std::uint64_t>((std::floor(t / kSecond) + 1) * kSecond);
    const double steady =
        static_cast<double>(static_cast<std::int64_t>(clock.steady(at(t), written) - kWall));
    return steady - t * (1 + 20e-6);
  }
};
template <class Gained>
Wall(Gained) -> Wall<Gained>;

TEST_CASE("a clock that only drifts is left as it is") {
  const Wall wall{[](double) { return 0.0; }};
  const MachineClock clock(wall.pairs(60));
  CHECK_FALSE(clock.was_set());
  CHECK(clock.steady(kWall + 12345, UINT64_MAX) == kWall + 12345);
  CHECK_FALSE(MachineClock(std::vector<ClockPair>{}).was_set());
  CHECK_FALSE(MachineClock(std::vector<ClockPair>{{kWall, kBoot}}).was_set());
}

TEST_CASE("a pair whose reader lost its core between the clocks moves nothing") {
  const Wall wall{[](double) { return 0.0; }};
  std::vector<ClockPair> pairs = wall.pairs(60);
  pairs[30].realtime_ns += 20'000'000;
  pairs.back().realtime_ns += 3'000'000;
  CHECK_FALSE(MachineClock(pairs).was_set());
}

TEST_CASE("rows after a clock step are moved, forward or back") {
  for (const double step : {2.0 * kSecond, -2.0 * kSecond, 0.3 * kSecond, -30.0 * kSecond}) {
    INFO("step of " << step / kSecond << " s");
    const Wall wall{[&](double t) { return t < 20.4 * kSecond ? 0.0 : step; }};
    const MachineClock clock(wall.pairs(60));
    REQUIRE(clock.was_set());
    for (double t = 0; t < 60 * kSecond; t += 0.07 * kSecond) {
      // Within the second of the step nobody knows on which side of it a row lies.
      if (t > 20 * kSecond && t < 21 * kSecond) continue;
      INFO(t / kSecond << " s");
      CHECK(std::abs(wall.error(clock, t)) < 20'000);
    }
  }
}

TEST_CASE("after a long clock step forward the side of each row is certain") {
  const Wall wall{[](double t) { return t < 20.4 * kSecond ? 0.0 : 5 * kSecond; }};
  const MachineClock clock(wall.pairs(60));
  for (double t = 20 * kSecond; t < 21 * kSecond; t += 0.01 * kSecond) {
    INFO(t / kSecond << " s");
    CHECK(std::abs(wall.error(clock, t)) < 20'000);
  }
}

TEST_CASE("a clock that was slewed is taken back gradually") {
  // 500 ppm for 20 s: 10 ms.
  const Wall wall{
      [](double t) { return std::clamp(t - 15 * kSecond, 0.0, 20 * kSecond) * 500e-6; }};
  const MachineClock clock(wall.pairs(60));
  REQUIRE(clock.was_set());
  for (double t = 0; t < 60 * kSecond; t += 0.13 * kSecond) {
    INFO(t / kSecond << " s");
    CHECK(std::abs(wall.error(clock, t)) < 20'000);
  }
}

TEST_CASE("processes of one machine have one clock, before a step and after it") {
  const auto folder = test::scratch_folder() / "set_clock";
  std::filesystem::create_directories(folder);
  const Wall wall{[](double t) { return t < 10.5 * kSecond ? 0.0 : -3 * kSecond; }};
  const std::vector<ClockPair> pairs = wall.pairs(30);
  // One process from the begin on; the other began after the step.
  for (const int first : {0, 15}) {
    test::CaptureBuilder builder;
    const auto begin = static_cast<std::size_t>(first);
    builder
        .process({.host = "host",
                  .process = static_cast<std::uint32_t>(10 + first),
                  .rank = first == 0 ? 0 : 1,
                  .realtime_ns = pairs[begin].realtime_ns,
                  .monotonic_ns = pairs[begin].monotonic_ns})
        .text(1, "range");
    for (std::size_t s = begin; s + 1 < pairs.size(); ++s) {
      // A range of 1 ms each second, at the same moments in both.
      const double end = static_cast<double>(s) * kSecond + 0.2 * kSecond;
      builder.rows(70, {{.time = wall.at(end), .span = 1'000'000, .text = 1}})
          .clock(pairs[s + 1].realtime_ns, pairs[s + 1].monotonic_ns);
    }
    std::ofstream(folder / ("host-" + std::to_string(10 + first) + ".cap"), std::ios::binary)
        << builder.trailer(0, 0).bytes();
  }
  const auto trace = read_inputs(std::array{folder}, {});
  REQUIRE(trace);
  REQUIRE(trace->ranks.size() == 2);
  const auto &early = trace->ranks[0].host_ops, &late = trace->ranks[1].host_ops;
  REQUIRE(early.size() == 30);
  REQUIRE(late.size() == 15);
  for (std::size_t k = 1; k < early.size(); ++k)
    CHECK((early[k].start - early[k - 1].start).seconds().s() == Approx(1).margin(1e-4));
  for (std::size_t k = 0; k < late.size(); ++k)
    CHECK(std::abs((late[k].start - early[k + 15].start).seconds().us()) < 1);
  CHECK(test::problems(*trace, trace::ProblemKind::kClockSkew) == 1);
}

}  // namespace
}  // namespace rehearse::ingest
