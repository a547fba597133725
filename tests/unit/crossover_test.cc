// Jobs that take turns on the same GPUs, against what can be said by hand.
#include "models/sharing/crossover.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/engine/engine.h"

namespace rehearse {
namespace {

using Catch::Contains;
using sharing::take_turns;
using sharing::Turns;
using sharing::TurnTaker;

TurnTaker job(double compute_ms, double exposed_ms) {
  return {.name = "j", .compute = Seconds::ms(compute_ms), .exposed = Seconds::ms(exposed_ms)};
}

Turns turns(const std::vector<TurnTaker>& jobs) {
  const Result<Turns> found = take_turns(jobs);
  INFO((found ? "" : to_string(found.error())));
  REQUIRE(found);
  return *found;
}

TEST_CASE("two equal jobs gain (C + N) / C, as long as N <= C") {
  for (const double n : {0.0, 10.0, 20.0, 50.0, 90.0, 100.0}) {
    INFO(n << " ms of 100 ms");
    const Turns found = turns({job(100, n), job(100, n)});
    CHECK(found.gain == Approx((100 + n) / 100));
    CHECK(found.rates[0] == Approx(found.rates[1]));
  }
  // Longer communication than all others can fill: everybody is as fast as alone.
  CHECK(turns({job(100, 150), job(100, 150)}).gain == Approx(2));
}

TEST_CASE("several equal jobs gain until the GPUs are full") {
  // C + N = 300 ms hold three turns of 100 ms; a fourth job has to wait.
  CHECK(turns({job(100, 200), job(100, 200)}).gain == Approx(2));
  CHECK(turns({job(100, 200), job(100, 200), job(100, 200)}).gain == Approx(3));
  CHECK(turns({job(100, 200), job(100, 200), job(100, 200), job(100, 200)}).gain == Approx(3));
}

TEST_CASE("a job alone is as fast as alone, and without communication nothing is gained") {
  CHECK(turns({job(100, 30)}).gain == Approx(1));
  CHECK(turns({job(100, 0), job(40, 0), job(7, 0)}).gain == Approx(1).epsilon(0.01));
}

TEST_CASE("unequal jobs: turns alternate, and the short one waits for the long one") {
  // 100 + 10 ms and 30 + 60 ms: the long one has the GPUs for 100 ms of every 130 ms, since the
  // short one asks again 60 ms into its turn. Rates 110 / 130 and 90 / 130.
  const Turns found = turns({job(100, 10), job(30, 60)});
  CHECK(found.rates[0] == Approx(110.0 / 130).epsilon(0.01));
  CHECK(found.rates[1] == Approx(90.0 / 130).epsilon(0.01));
  CHECK(found.gain == Approx(200.0 / 130).epsilon(0.01));
}

TEST_CASE("nobody is faster than alone, and the GPUs do one thing at a time") {
  for (int a = 1; a <= 6; ++a)
    for (int b = 1; b <= 6; ++b)
      for (int n = 0; n <= 6; ++n) {
        const std::vector<TurnTaker> jobs = {job(10 * a, 7 * n), job(13 * b, 5)};
        const Turns found = turns(jobs);
        double busy = 0;
        for (std::size_t j = 0; j < jobs.size(); ++j) {
          CHECK(found.rates[j] <= 1);
          busy += found.rates[j] * (jobs[j].compute / (jobs[j].compute + jobs[j].exposed));
        }
        INFO(a << " " << b << " " << n);
        CHECK(busy <= 1.005);
        CHECK(found.gain >= 0.99);
      }
}

TEST_CASE("no job comes between forward and backward of another") {
  const std::vector<TurnTaker> jobs = {job(90, 30), job(60, 15)};
  const std::uint32_t iterations[] = {20, 20};
  const Result<graph::Graph> graph = sharing::turns_graph(jobs, iterations);
  REQUIRE(graph);
  const Result<graph::Timeline> timeline = engine::run(*graph);
  REQUIRE(timeline);
  std::vector<std::pair<Picoseconds, Picoseconds>> leases;
  for (std::size_t op = 0; op < graph->size(); op += 3) {
    CHECK(timeline->ops[op].end == timeline->ops[op + 1].start);
    leases.emplace_back(timeline->ops[op].start, timeline->ops[op + 1].end);
  }
  std::sort(leases.begin(), leases.end());
  for (std::size_t i = 1; i < leases.size(); ++i) CHECK(leases[i - 1].second <= leases[i].first);
}

TEST_CASE("both memories have to fit") {
  std::vector<TurnTaker> jobs = {job(10, 2), job(10, 2)};
  for (TurnTaker& j : jobs) j.memory = Bytes::gib(9);
  CHECK(take_turns(jobs, Bytes::gib(18)));
  const Result<Turns> refused = take_turns(jobs, Bytes::gib(16));
  REQUIRE_FALSE(refused);
  CHECK_THAT(to_string(refused.error()), Contains("18") && Contains("16") && Contains("together"));
}

TEST_CASE("jobs that take no time, and ones that are too unequal, are refused") {
  CHECK_FALSE(take_turns({}));
  const std::vector<TurnTaker> none = {job(10, 0), job(0, 0)};
  CHECK_FALSE(take_turns(none));
  const std::vector<TurnTaker> unequal = {job(1e6, 0), job(1e-3, 0)};
  const Result<Turns> refused = take_turns(unequal);
  REQUIRE_FALSE(refused);
  CHECK_THAT(to_string(refused.error()), Contains("too short"));
}

}  // namespace
}  // namespace rehearse
