// Jobs that take turns on the same GPUs, against what can be said by hand.
#include "models/sharing/crossover.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/engine/engine.h"
#include "sim/program/lower.h"

namespace rehearse {
namespace {

using Catch::Contains;
using sharing::Links;
using sharing::take_turns;
using sharing::Turns;
using sharing::TurnTaker;

TurnTaker job(double compute_ms, double exposed_ms, double hidden_ms = 0) {
  return {.name = "j",
          .compute = Seconds::ms(compute_ms),
          .exposed = Seconds::ms(exposed_ms),
          .hidden = Seconds::ms(hidden_ms)};
}

constexpr Links kAllLinks[] = {Links::kFair,    Links::kPriority,  Links::kCoflow,
                               Links::kEchelon, Links::kFirstCome, Links::kApart};

Turns turns(const std::vector<TurnTaker>& jobs, Links links = Links::kFair) {
  const Result<Turns> found = take_turns(jobs, links);
  INFO((found ? "" : to_string(found.error())));
  REQUIRE(found);
  return *found;
}

TEST_CASE("two equal jobs gain (C + N) / C, as long as N <= C") {
  for (const Links links : kAllLinks)
    for (const double n : {0.0, 10.0, 20.0, 50.0, 90.0, 100.0}) {
      INFO(n << " ms of 100 ms, links " << sharing::kLinksNames[static_cast<int>(links)]);
      const Turns found = turns({job(100, n), job(100, n)}, links);
      CHECK(found.gain == Approx((100 + n) / 100));
      CHECK(found.rates[0] == Approx(found.rates[1]));
    }
  // Longer communication than all others can fill, on links of their own: as fast as alone.
  CHECK(turns({job(100, 150), job(100, 150)}, Links::kApart).gain == Approx(2));
}

TEST_CASE("if synchronisations do not overlap, shared links give the result of separate links") {
  // During the other's turn there is room for hidden and exposed work: N + H <= C.
  for (const Links links : kAllLinks)
    for (const double hidden : {0.0, 30.0, 60.0})
      for (const double n : {0.0, 10.0, 40.0}) {
        INFO(hidden << " and " << n << " ms of 100 ms, links "
                    << sharing::kLinksNames[static_cast<int>(links)]);
        CHECK(turns({job(100, n, hidden), job(100, n, hidden)}, links).gain ==
              Approx((100 + n) / 100));
      }
}

TEST_CASE("full links limit the gain") {
  // 100 ms of computing, 60 ms of it during communication, and 90 ms more: 150 ms of the links for
  // 190 ms alone.
  for (const Links links : {Links::kFair, Links::kCoflow, Links::kEchelon, Links::kFirstCome}) {
    INFO("links " << sharing::kLinksNames[static_cast<int>(links)]);
    const Turns found = turns({job(100, 90, 60), job(100, 90, 60)}, links);
    CHECK(found.gain <= 190.0 / 150 * 1.005);
    CHECK(found.gain > 1.1);
  }
  CHECK(turns({job(100, 150), job(100, 150)}, Links::kFirstCome).gain ==
        Approx(250.0 / 150).epsilon(0.01));
  // The first goes before: it is as fast as the GPUs let it.
  const Turns found = turns({job(100, 90, 60), job(100, 90, 60)}, Links::kPriority);
  CHECK(found.rates[0] >= found.rates[1]);
  CHECK(found.rates[0] > 0.9);
  CHECK(found.gain <= 190.0 / 150 * 1.005);
}

TEST_CASE("no link exceeds its rate, and jobs lose only on links that they share") {
  for (const Links links : kAllLinks)
    for (int a = 1; a <= 4; ++a)
      for (int n = 0; n <= 5; ++n)
        for (int h = 0; h <= a; ++h) {
          const std::vector<TurnTaker> jobs = {job(10 * a, 7 * n, 9 * h), job(25, 11, 13)};
          const Turns found = turns(jobs, links);
          INFO(a << " " << n << " " << h << " " << sharing::kLinksNames[static_cast<int>(links)]);
          double carried = 0;
          for (std::size_t j = 0; j < jobs.size(); ++j) {
            CHECK(found.rates[j] <= 1);
            carried += found.rates[j] *
                       ((jobs[j].hidden + jobs[j].exposed) / (jobs[j].compute + jobs[j].exposed));
          }
          if (links != Links::kApart) CHECK(carried <= 1.01);
          // Turns may fall in another order, which may suit them.
          CHECK(found.gain <= turns(jobs, Links::kApart).gain * 1.05);
        }
}

TEST_CASE("the worked example: two jobs whose synchronisations meet") {
  // 3 ms of forward, 7 ms of backward during 7 ms of communication, 5 ms more of it: 12 ms of links
  // for 15 ms alone. Links that are full: 15 / 12, where links apart give 15 / 10.
  const std::vector<TurnTaker> jobs = {job(10, 5, 7), job(10, 5, 7)};
  CHECK(turns(jobs, Links::kApart).gain == Approx(1.5));
  CHECK(turns(jobs, Links::kFirstCome).gain == Approx(1.25).epsilon(0.01));
}

TEST_CASE("several equal jobs gain until the GPUs are full") {
  // C + N = 300 ms hold three turns of 100 ms; a fourth job has to wait.
  std::vector<TurnTaker> jobs;
  for (const double gain : {1, 2, 3, 3}) {
    jobs.push_back(job(100, 200));
    CHECK(turns(jobs, Links::kApart).gain == Approx(gain));
  }
  // One link carries 200 ms of each iteration: no more than 300 / 200 of the work.
  CHECK(turns(jobs).gain == Approx(1.5).epsilon(0.02));
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

TEST_CASE("no job is faster than alone, and the GPUs run one job at a time") {
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
  const Result<program::Lowered> lowered =
      program::lower(sharing::turns_program(jobs, iterations, Links::kFair));
  REQUIRE(lowered);
  const Result<graph::Timeline> timeline = engine::run(lowered->graph);
  REQUIRE(timeline);
  std::vector<std::pair<Picoseconds, Picoseconds>> leases;
  for (std::size_t op = 0; op < lowered->graph.size(); op += 5) {
    CHECK(timeline->ops[op].end == timeline->ops[op + 1].start);
    leases.emplace_back(timeline->ops[op].start, timeline->ops[op + 1].end);
  }
  std::sort(leases.begin(), leases.end());
  for (std::size_t i = 1; i < leases.size(); ++i) CHECK(leases[i - 1].second <= leases[i].first);
}

TEST_CASE("both memories have to fit") {
  std::vector<TurnTaker> jobs = {job(10, 2), job(10, 2)};
  for (TurnTaker& j : jobs) j.memory = Bytes::gib(9);
  CHECK(take_turns(jobs, Links::kFair, Bytes::gib(18)));
  const Result<Turns> refused = take_turns(jobs, Links::kFair, Bytes::gib(16));
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
  const std::vector<TurnTaker> hidden = {job(10, 0, 11)};
  const Result<Turns> more = take_turns(hidden);
  REQUIRE_FALSE(more);
  CHECK_THAT(to_string(more.error()), Contains("overlaps 11.0 ms") && Contains("10.0 ms"));
}

}  // namespace
}  // namespace rehearse
