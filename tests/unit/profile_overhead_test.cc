// What recording costs, from runs with and without it.
#include "cli/commands/profile_overhead.h"

#include <catch2/catch.hpp>

namespace rehearse::cli {
namespace {

MeasuredSteps steps(const std::vector<double>& ms, double ranges, double calls) {
  MeasuredSteps measured{.steps = {}, .ranges_per_step = ranges, .calls_per_step = calls};
  for (const double each : ms) measured.steps.push_back(Seconds::s(each * 1e-3));
  return measured;
}

constexpr Seconds kPerRange = Seconds::ns(100);

TEST_CASE("the cost of a range excludes steps without recording, and the part explained by calls") {
  // Without: 10.001 ms; 10 ranges took 1 us of it. With: 12 ms, and 1000 ranges took
  // 100 us.
  const RunPair pair{.wall_recorded = Seconds::s(1.5),
                     .wall_plain = Seconds::s(1),
                     .recorded = steps({11.5, 12, 12, 12, 13}, 1000, 400),
                     .plain = steps({10.001, 10.001, 10.001}, 10, 0)};
  const Overhead overhead = overhead_of({pair}, kPerRange);
  CHECK(overhead.step_plain->s() == Approx(0.010));
  CHECK(overhead.step_share->value == Approx(0.2));
  CHECK(overhead.wall_share.value == Approx(0.5));
  CHECK(overhead.wall_plain.s() == Approx(1));
  // 12 - 10 - 0.1 ms over 400 calls
  CHECK(overhead.cost_per_call->s() == Approx(1.9e-3 / 400));
  CHECK(overhead.step_share->low <= overhead.step_share->value);
  CHECK(overhead.step_share->high >= overhead.step_share->value);
}

TEST_CASE("the median of several pairs counts, within minimum and maximum") {
  std::vector<RunPair> pairs;
  for (const double wall : {1.1, 1.4, 1.2})
    pairs.push_back({.wall_recorded = Seconds::s(wall),
                     .wall_plain = Seconds::s(1),
                     .recorded = steps({10 * wall}, 0, 0),
                     .plain = steps({10}, 0, 0)});
  const Overhead overhead = overhead_of(pairs, kPerRange);
  CHECK(overhead.pairs == 3);
  CHECK(overhead.wall_share.value == Approx(0.2));
  CHECK(overhead.wall_share.low == Approx(0.1));
  CHECK(overhead.wall_share.high == Approx(0.4));
  CHECK(overhead.step_share->value == Approx(0.2));
  CHECK(overhead.step_share->high == Approx(0.4));
  CHECK_FALSE(overhead.cost_per_call);  // no calls are recorded
}

TEST_CASE("a step that is faster with recording has no cost, not a negative one") {
  const RunPair pair{.wall_recorded = Seconds::s(1),
                     .wall_plain = Seconds::s(1),
                     .recorded = steps({9}, 0, 100),
                     .plain = steps({10}, 0, 0)};
  const Overhead overhead = overhead_of({pair}, kPerRange);
  CHECK(overhead.step_share->value == Approx(-0.1));
  CHECK(overhead.cost_per_call->s() == 0);
}

TEST_CASE("without steps whole runs are compared") {
  const RunPair pair{.wall_recorded = Seconds::s(1.1),
                     .wall_plain = Seconds::s(1),
                     .recorded = steps({9}, 0, 100),
                     .plain = {}};
  const Overhead overhead = overhead_of({pair}, kPerRange);
  CHECK(overhead.wall_share.value == Approx(0.1));
  CHECK_FALSE(overhead.step_plain);
  CHECK_FALSE(overhead.step_share);
}

}  // namespace
}  // namespace rehearse::cli
