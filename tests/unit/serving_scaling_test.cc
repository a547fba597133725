// Replicas that a rule adds and removes, by hand.
#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/serving/load.h"
#include "sim/serving/measures.h"
#include "sim/serving/run.h"
#include "tests/support/linear_pricer.h"

namespace rehearse::serving {
namespace {

using test::LinearPricer;

Picoseconds ms(double time) { return Picoseconds::from(Seconds::ms(time)); }

/// One row at a time, 10 ms per request of one token.
LinearPricer ten_ms() {
  LinearPricer pricer;
  pricer.step = Seconds::ms(10);
  return pricer;
}

std::vector<Request> every(double gap_ms, int from, int count, double begin_ms = 0) {
  std::vector<Request> requests;
  for (int i = from; i < from + count; ++i)
    requests.push_back({.planned = ms(begin_ms + gap_ms * i)});
  return requests;
}

std::vector<Run> scaled(const LinearPricer& pricer, const Scaling& scaling,
                        const std::vector<Request>& requests) {
  const Result<std::vector<Run>> runs =
      run_replicas({.rules = {.most_rows = 1, .overlapped = false, .blocks = 100},
                    .pricer = pricer,
                    .routing = Routing::kLeastOutstanding,
                    .scaling = scaling},
                   requests);
  REQUIRE(runs);
  return *runs;
}

TEST_CASE("replicas follow the load of requests by hand") {
  // A request per 5 ms, and 10 ms each: in 100 ms, 20 requests arrive, the n-th at 5 n ms, and one
  // replica ends 10. The number of unfinished requests rises from 1 at 0 ms, and its mean until 100 ms is
  // ∫ (1 + ⌊t / 5⌋ - ⌊t / 10⌋) dt / 100 = 1 + (5 · (0 + … + 19) - 10 · (0 + … + 9)) / 100 = 6.
  // With a target of 3 per replica there should be 2 from then on.
  const LinearPricer pricer = ten_ms();
  const Scaling scaling{.most = 8,
                        .target = 3,
                        .every = Seconds::ms(100),
                        .hold = Seconds::s(0),
                        .start = Seconds::ms(20)};
  const std::vector<Run> runs = scaled(pricer, scaling, every(5, 0, 21));
  // Of 11 requests at 100 ms one ends every 10 ms: the mean until 200 ms is (11 + … + 2) / 10 = 6.5, which 3 replicas
  // should have. The last request ends at 210 ms.
  REQUIRE(runs.size() == 3);
  CHECK(runs[2].rented == ms(200));
  CHECK(runs[0].rented == ms(0));
  CHECK(runs[1].rented == ms(100));
  CHECK(runs[1].ready == ms(120));
  CHECK(runs[0].served.size() == 21);  // all arrived before it was ready
  CHECK(measure(runs).duration == Approx(0.210));
}

TEST_CASE("replicas leave after their last request, the youngest first") {
  // Until 40 ms a request arrives per 5 ms: two replicas are needed, and have no queue. At 40 ms the steps of the
  // last 40 ms are 40 + 35 ms long: 1.875 busy replicas of 0.9 each are three. Afterwards there is one per
  // 20 ms, half a replica.
  const LinearPricer pricer = ten_ms();
  std::vector<Request> requests = every(5, 0, 8);
  for (const Request& later : every(20, 0, 8, 40)) requests.push_back(later);
  Scaling scaling{.least = 2,
                  .most = 3,
                  .signal = Signal::kBusy,
                  .target = 0.9,
                  .every = Seconds::ms(40),
                  .hold = Seconds::s(0)};
  const std::vector<Run> runs = scaled(pricer, scaling, requests);
  REQUIRE(runs.size() == 3);
  CHECK(runs[2].rented == ms(40));
  CHECK(runs[2].gone == ms(80));
  CHECK(runs[1].gone > ms(10'000'000));  // no fewer than two
  // With a hold of 60 ms the wish of 40 ms is gone at 120 ms, not yet at 80 ms.
  scaling.hold = Seconds::ms(60);
  CHECK(scaled(pricer, scaling, requests)[2].gone == ms(120));
}

TEST_CASE("a queue and late first tokens add replicas") {
  // All 8 arrive at once: at 10 ms one has ended, and the step of another begins then; 7 wait, before the
  // decision, one of them for a step that begins now.
  const LinearPricer pricer = ten_ms();
  const std::vector<Request> requests(8);
  const Scaling queue{.most = 9,
                      .signal = Signal::kQueue,
                      .target = 2,
                      .every = Seconds::ms(15),
                      .hold = Seconds::s(1)};
  // At 15 ms 6 wait: 3 replicas.
  CHECK(scaled(pricer, queue, requests).size() == 3);
  // At 35 ms the first tokens took 10, 20, 30 ms: their 90th percentile is 28 ms, twice the target of 14.
  const Scaling late{.most = 9,
                     .signal = Signal::kTtft,
                     .target = 0.014,
                     .every = Seconds::ms(35),
                     .hold = Seconds::s(1)};
  const std::vector<Run> runs = scaled(pricer, late, requests);
  CHECK(runs.at(1).rented == ms(35));
  // At 70 ms those of 40 to 70 ms: 67 ms · 2 replicas / 14 ms = 9.57, at most 9.
  CHECK(runs.size() == 9);
}

TEST_CASE("a rate that swings has its mean, and its least first") {
  // Of the requests of a period of 100 s, ∫ (1 - cos(2 π t / 100)) dt / 100 = 1/4 - 1/(2 π) = 9.1 % are in the first
  // quarter, and half of them in the first half.
  const std::vector<Request> requests = draw(
      {.count = 20'000, .arrivals = Arrivals{.rate = 200, .swing = 1, .period = Seconds::s(100)}},
      1);
  const auto before = [&](int s) {
    return static_cast<double>(std::ranges::count_if(
        requests, [&](const Request& r) { return r.planned < ms(1000.0 * s); }));
  };
  CHECK(before(25) / 20'000 == Approx(0.25 - 1 / (2 * 3.14159265)).epsilon(0.05));
  CHECK(before(50) / 20'000 == Approx(0.5).epsilon(0.02));
}

TEST_CASE("a load with more than ten million decisions is an error") {
  const LinearPricer pricer = ten_ms();
  // Two requests that are 3 hours apart, and a decision every millisecond.
  std::vector<Request> requests(2);
  requests[1].planned = ms(3 * 3600e3);
  const Rules rules{.most_rows = 1, .overlapped = false, .blocks = 100};
  const auto runs = [&](Seconds every) {
    return run_replicas(
        {.rules = rules, .pricer = pricer, .scaling = Scaling{.most = 2, .every = every}},
        requests);
  };
  CHECK_FALSE(runs(Seconds::ms(1)));
  CHECK(runs(Seconds::ms(10)));
}

TEST_CASE("a scaled server is paid for from a decision to the last request") {
  const LinearPricer pricer = ten_ms();
  const Scaling scaling{.most = 2,
                        .signal = Signal::kQueue,
                        .every = Seconds::ms(15),
                        .hold = Seconds::s(1),
                        .start = Seconds::ms(500)};
  // The second replica is never ready: 80 ms of the first, and 65 ms from 15 ms on.
  const Measures m = measure(scaled(pricer, scaling, std::vector<Request>(8)));
  CHECK(m.rented == Approx(0.080 + 0.065));
  CHECK(m.most_replicas == 1);
  CHECK(m.busy == Approx(0.080 / 0.145));
  // Seven of eight steps leave requests waiting.
  CHECK(m.overloaded == Approx(7.0 / 8));
}

}  // namespace
}  // namespace rehearse::serving
