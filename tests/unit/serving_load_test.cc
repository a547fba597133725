// Loads of an inference server: think times, conversations, priorities, deadlines and drawn requests.
#include <algorithm>
#include <cmath>

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/serving/load.h"
#include "sim/serving/run.h"
#include "tests/support/linear_pricer.h"

namespace rehearse::serving::loads {
namespace {

using test::LinearPricer;

Picoseconds ms(double time) { return Picoseconds::from(Seconds::ms(time)); }

/// Outputs of a step each, nearly exponential as a whole: geometric with a mean of 50.
std::int64_t geometric(Random& random) {
  std::int64_t output = 1;
  while (random.uniform() >= 0.02) ++output;
  return output;
}

double mean_wait(const std::vector<Served>& served, std::int32_t priority = 0) {
  double sum = 0, count = 0;
  for (const Served& r : served)
    if (r.priority == priority) {
      sum += (r.scheduled - r.queued).seconds().s();
      ++count;
    }
  return sum / count;
}

TEST_CASE("users who think are the machines of a repairman") {
  // M/M/1//N: with N users, mean service S and mean think time Z, the share of time without a request is
  // p0 = 1 / Σ_k N! / (N - k)! (S / Z)^k, and the throughput (1 - p0) / S.
  LinearPricer pricer;
  pricer.step = Seconds::us(400);
  const double service = 50 * 4e-4, think = 0.08;
  Random random(4);
  std::vector<Request> requests(40'000, Request{.input = 3200});
  for (Request& request : requests) {
    request.output = geometric(random);
    request.think = Picoseconds::from(Seconds::s(think * random.exponential()));
  }
  for (const int users : {1, 3, 6}) {
    double sum = 0, term = 1;
    for (int k = 0; k <= users; ++k, term *= (users - k + 1) * service / think) sum += term;
    const Result<Run> r = run({.most_rows = 1, .overlapped = false, .blocks = 1000}, pricer,
                              requests, {.most_in_flight = users});
    REQUIRE(r);
    const double throughput = 40'000 / r->served.back().last.seconds().s();
    CHECK(throughput == Approx((1 - 1 / sum) / service).epsilon(0.02));
  }
}

TEST_CASE("a user's think time begins when an answer ends, and occupies a place in flight") {
  LinearPricer pricer;  // steps of 1 ms
  const std::vector<Request> requests(3, Request{.input = 1, .output = 2, .think = ms(5)});
  const auto sent = [&](std::int64_t in_flight) {
    const Result<Run> r = run({.blocks = 9}, pricer, requests, {.most_in_flight = in_flight});
    REQUIRE(r);
    std::vector<double> at;
    for (const Served& served : r->served) at.push_back(served.sent.seconds().ms());
    return at;
  };
  CHECK(sent(1) == std::vector<double>{0, 7, 14});
  CHECK(sent(2) == std::vector<double>{0, 0, 7});
}

TEST_CASE("the lowest number is served first, and the highest loses its blocks") {
  // Cobham, Operations Research 2 (1954): with W0 = rate E[S²] / 2 and one request at a time, the first class
  // waits W0 / (1 - rho1), the second W0 / ((1 - rho1) (1 - rho1 - rho2)).
  LinearPricer pricer;
  pricer.step = Seconds::ms(10);
  Random random(5);
  std::vector<Request> requests(200'000);
  double at = 0;
  for (Request& request : requests) {
    request.planned = Picoseconds::from(Seconds::s(at += 0.01 / 0.8 * random.exponential()));
    request.priority = random.below(4) == 0 ? 0 : 7;
  }
  const Rules rules{.most_rows = 1, .overlapped = false, .by_priority = true, .blocks = 100};
  const Result<Run> r = run(rules, pricer, requests);
  REQUIRE(r);
  const double w0 = 0.8 / 0.01 * 1e-4 / 2;
  CHECK(mean_wait(r->served, 0) == Approx(w0 / (1 - 0.2)).epsilon(0.03));
  CHECK(mean_wait(r->served, 7) == Approx(w0 / ((1 - 0.2) * (1 - 0.8))).epsilon(0.05));

  // Five blocks of 4 tokens: one of two requests must go. In order of arrival it is the second.
  std::vector<Request> two(2, Request{.input = 8, .output = 8});
  two[0].priority = 1;
  Rules small{.tokens_per_step = 16, .blocks = 5, .block_tokens = 4};
  const auto first_ends = [&] {
    const Result<Run> both = run(small, pricer, two);
    REQUIRE(both);
    return both->served[0].last < both->served[1].last;
  };
  CHECK(first_ends());
  small.by_priority = true;
  CHECK_FALSE(first_ends());
}

TEST_CASE("a request leaves at its deadline, and its place goes to the next") {
  // Steps of 10 ms, one row. The first request would take 50 ms and leaves after the step that runs at 25 ms.
  LinearPricer pricer;
  pricer.step = Seconds::ms(10);
  std::vector<Request> requests(2, Request{.input = 1, .output = 5});
  requests[0].deadline = ms(25);
  Rules rules{.most_rows = 1, .blocks = 9};
  const auto ends = [&] {
    const Result<Run> r = run(rules, pricer, requests);
    REQUIRE(r);
    return std::pair(r->served[0].last, r->served[1].last);
  };
  CHECK(ends() == std::pair(ms(50), ms(100)));
  rules.drops = true;
  CHECK(ends() == std::pair(ms(30), ms(80)));
  const Served left = run(rules, pricer, requests)->served[0];
  CHECK(left.dropped);
  CHECK(left.output == 3);
}

TEST_CASE("bursts of a Poisson process are an interrupted one") {
  // Kuczura, BSTJ 52 (1973): gaps of a process with rate l in bursts, which end with the rate a and begin with b,
  // have A*(s) = l (s + b) / (s² + (l + a + b) s + l b). GI/M/1 waits s / (mu (1 - s)), s = A*(mu (1 - s)).
  LinearPricer pricer;
  pricer.step = Seconds::us(400);
  const double mu = 1 / (50 * 4e-4), a = 1 / 0.5, b = 1 / 1.5, rate = 0.5 * mu;
  std::vector<Request> requests =
      draw({.count = 300'000,
            .input = {3200, 3200},
            .arrivals = Arrivals{.rate = rate, .bursts = Bursts{Seconds::s(0.5), Seconds::s(1.5)}}},
           1);
  Random random(6);
  for (Request& request : requests) request.output = geometric(random);
  const double l = rate * 4;  // a quarter of the time is in bursts
  double s = 0.5;
  for (int i = 0; i < 2000; ++i) {
    const double x = mu * (1 - s);
    s = l * (x + b) / (x * x + (l + a + b) * x + l * b);
  }
  const Result<Run> r =
      run({.most_rows = 1, .overlapped = false, .blocks = 1000}, pricer, requests);
  REQUIRE(r);
  CHECK(requests.back().planned.seconds().s() == Approx(300'000 / rate).epsilon(0.03));
  CHECK(mean_wait(r->served) == Approx(s / (mu * (1 - s))).epsilon(0.06));
}

TEST_CASE("drawn requests have their lengths, classes and turns") {
  Load load{.count = 20'000, .input = {.most = 1'000'000, .median = 300, .sigma = 0.5}};
  std::vector<Request> requests = draw(load, 1);
  std::vector<std::int64_t> inputs;
  for (const Request& r : requests) inputs.push_back(r.input);
  std::ranges::sort(inputs);
  CHECK(inputs[10'000] == Approx(300).epsilon(0.02));
  CHECK(inputs[16'827] == Approx(300 * std::exp(0.5 * 1.0)).epsilon(0.02));  // Φ(1) = 0.8413

  load = {.count = 20'000,
          .pairs = {{10, 1}, {20, 2}},
          .classes = {0.25, 0.75},
          .deadlines = {Seconds::s(1), Seconds::s(9)}};
  requests = draw(load, 1);
  std::size_t urgent = 0, short_ones = 0;
  for (const Request& r : requests) {
    CHECK(r.input == 10 * r.output);
    CHECK(r.deadline == ms(r.priority == 0 ? 1000 : 9000));
    urgent += r.priority == 0;
    short_ones += r.output == 1;
  }
  CHECK(urgent == Approx(5000).epsilon(0.05));
  CHECK(short_ones == Approx(10'000).epsilon(0.05));

  load = {.count = 8, .input = {5, 5}, .output = {2, 2}, .turns = {3, 3}};
  requests = draw(load, 1);
  REQUIRE(requests.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(requests[i].follows == (i % 3 > 0));
    CHECK(requests[i].input == 5 + 7 * static_cast<std::int64_t>(i % 3));
  }
}

TEST_CASE("a router by prefix keeps a conversation together") {
  LinearPricer pricer;
  const std::vector<Request> requests =
      draw({.count = 60, .input = {40, 40}, .output = {8, 8}, .turns = {6, 6}}, 1);
  const auto reused = [&](Routing routing) {
    const Result<std::vector<Run>> runs =
        run_replicas({{.blocks = 9999, .prefix_cache = true}, pricer, 3, routing}, requests,
                     {.most_in_flight = 2});
    REQUIRE(runs);
    std::int64_t sum = 0;
    for (const Run& run : *runs)
      for (const Served& r : run.served) sum += r.reused;
    return sum;
  };
  // Each turn finds the prompt and the answer before it, in blocks of 16, but for the answer's last token.
  std::int64_t all = 0;
  for (std::int64_t turn = 1; turn < 6; ++turn) all += 10 * ((48 * turn - 1) / 16 * 16);
  CHECK(reused(Routing::kPrefix) == all);
  CHECK(reused(Routing::kRoundRobin) < all / 2);
}

}  // namespace
}  // namespace rehearse::serving::loads
