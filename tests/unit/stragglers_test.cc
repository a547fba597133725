#include "strategies/stragglers.h"

#include <catch2/catch.hpp>

#include "strategies/data_parallel.h"

namespace rehearse::strategies {
namespace {

using program::GradientStep;

/// Steps with one gradient each, which takes 10 and 30 us in turn.
struct Alternating {
  explicit Alternating(std::size_t count) {
    Picoseconds now(0);
    for (std::size_t s = 0; s < count; ++s) {
      const Picoseconds begin = now;
      now += Picoseconds::from(Seconds::us(s % 2 == 0 ? 10 : 30));
      timeline.ops.push_back({begin, now, std::nullopt});
      steps.push_back({.gradients = {{static_cast<std::uint32_t>(s), Bytes::mib(1)}}, .users = {}});
    }
  }
  graph::Timeline timeline;
  std::vector<GradientStep> steps;
};

TEST_CASE("the delay of the slowest of n ranks is the largest of n draws") {
  // The first step has nothing before it: 40 are left, half of 10 and half of 30 us. With two ranks
  // the slower takes 10 us in a quarter of the steps, else 30: 25 us, the mean being 20.
  const Alternating job(41);
  for (const bool overlap : {false, true}) {
    const auto two = lateness(job.steps, job.timeline, 2, overlap);
    REQUIRE(two.size() == 1);
    CHECK(two[0].us() == Approx(5));
    // With a thousand some rank is always slow.
    CHECK(lateness(job.steps, job.timeline, 1000, overlap)[0].us() == Approx(10));
  }
}

TEST_CASE("stragglers are not guessed from too few steps") {
  const Alternating job(41);
  CHECK(lateness(job.steps, job.timeline, 1, true).empty());
  const Alternating few(kStepsToTellVariation);  // one step fewer than needed
  CHECK(lateness(few.steps, few.timeline, 2, true).empty());
  Alternating cut(41);
  for (GradientStep& step : cut.steps) step.whole = false;
  CHECK(lateness(cut.steps, cut.timeline, 2, true).empty());
  CHECK(lateness({}, job.timeline, 2, true).empty());
}

TEST_CASE("ranks synchronise at each gradient that a thread sums itself") {
  // Two gradients per step: the first takes 10 or 30 us, the second always 5.
  graph::Timeline timeline;
  std::vector<GradientStep> steps;
  Picoseconds now(0);
  for (std::size_t s = 0; s < 41; ++s) {
    GradientStep step;
    for (const double us : {s % 2 == 0 ? 10.0 : 30.0, 5.0}) {
      const Picoseconds begin = now;
      now += Picoseconds::from(Seconds::us(us));
      step.gradients.push_back({static_cast<std::uint32_t>(timeline.ops.size()), Bytes::mib(1)});
      timeline.ops.push_back({begin, now, std::nullopt});
    }
    steps.push_back(step);
  }
  const auto blocking = lateness(steps, timeline, 2, false);
  CHECK(blocking[0].us() == Approx(5));
  CHECK(blocking[1].us() == Approx(0).margin(1e-9));
  // During the backward pass, nothing brings them together before the step's end.
  const auto overlapped = lateness(steps, timeline, 2, true);
  CHECK(overlapped[0].us() == Approx(5));
  CHECK(overlapped[1].us() == Approx(5));
}

}  // namespace
}  // namespace rehearse::strategies
