// An inference server, by hand and against queueing theory.
#include <cmath>
#include <numeric>

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/serving/run.h"
#include "tests/support/linear_pricer.h"

namespace rehearse::serving {
namespace {

using test::LinearPricer;

/// Requests of one token each, with exponential gaps: every one is served by a step of its own.
std::vector<Request> poisson(double rate, std::size_t count) {
  Random random(1);
  std::vector<Request> requests(count);
  double at = 0;
  for (Request& request : requests) {
    at += random.exponential() / rate;
    request.planned = Picoseconds::from(Seconds::s(at));
  }
  return requests;
}

double mean_wait(const Run& run) {
  double sum = 0;
  for (const Served& r : run.served) sum += (r.scheduled - r.queued).seconds().s();
  return sum / static_cast<double>(run.served.size());
}

TEST_CASE("one row at a time is M/D/1") {
  // Mean wait of M/D/1: rho S / (2 (1 - rho)), S = 10 ms.
  LinearPricer pricer;
  pricer.step = Seconds::ms(10);
  for (const double rho : {0.3, 0.6, 0.8}) {
    const std::vector<Request> requests = poisson(rho / 0.01, 200'000);
    const Result<Run> r = run({.most_rows = 1, .blocks = 100}, pricer, requests);
    REQUIRE(r);
    CHECK(mean_wait(*r) == Approx(rho * 0.01 / (2 * (1 - rho))).epsilon(0.04));
  }
}

TEST_CASE("one row at a time with geometric outputs is M/G/1") {
  // Pollaczek and Khinchine: mean wait = rate E[S²] / (2 (1 - rho)). With p the chance that a token
  // is the last, E[S] = t / p and E[S²] = t² (2 - p) / p².
  LinearPricer pricer;
  const double t = 0.001, p = 0.05, rate = 30;
  std::vector<Request> requests = poisson(rate, 200'000);
  Random random(2);
  for (Request& request : requests)
    while (random.uniform() >= p) ++request.output;
  const Result<Run> r = run({.most_rows = 1, .blocks = 100}, pricer, requests);
  REQUIRE(r);
  const double rho = rate * t / p, second = t * t * (2 - p) / (p * p);
  CHECK(mean_wait(*r) == Approx(rate * second / (2 * (1 - rho))).epsilon(0.05));
}

TEST_CASE("a closed loop follows Little's law and its bottleneck") {
  // Each of 4 rows gives a token in 2 ms whatever the others do: 8 requests in flight queue for
  // them, so that the throughput is 4 / (2 ms · 10 tokens).
  LinearPricer pricer;
  pricer.step = Seconds::ms(2);
  const std::vector<Request> requests(400, Request{.input = 5, .output = 10});
  const Result<Run> r =
      run({.most_rows = 4, .blocks = 100}, pricer, requests, {.most_in_flight = 8});
  REQUIRE(r);
  const double duration = r->served.back().last.seconds().s();
  CHECK(duration == Approx(400 / (4 / (0.002 * 10))));
  double response = 0;
  for (const Served& q : r->served) response += (q.last - q.sent).seconds().s();
  CHECK(response / duration == Approx(8).epsilon(0.02));  // in flight
}

TEST_CASE("a cached prefix is not computed again, but for its last token") {
  LinearPricer pricer;
  pricer.token = Seconds::ms(1);
  const Request request{.input = 32, .output = 1, .prefix = {7, 8}};
  const std::vector<Request> requests = {request, request, request};
  Rules rules{.blocks = 4, .block_tokens = 16, .prefix_cache = true, .prefix_tokens = 16};
  const Result<Run> r = run(rules, pricer, requests, {.most_in_flight = 1});
  REQUIRE(r);
  CHECK(r->steps[0].prompt_tokens == 32);
  CHECK(r->served[0].reused == 0);
  CHECK(r->served[1].reused == 16);  // the block of the last token is computed again
  CHECK(r->steps[1].prompt_tokens == 16);
  rules.prefix_cache = false;
  CHECK(run(rules, pricer, requests, {.most_in_flight = 1})->served[2].reused == 0);
}

TEST_CASE("cached prefixes give way to running requests, the oldest first") {
  LinearPricer pricer;
  std::vector<Request> requests;
  for (const std::uint64_t name : {1, 2, 3, 1, 3})
    requests.push_back({.input = 17, .output = 1, .prefix = {name}});
  // Three blocks: the third request needs two, so the first one's prefix is evicted.
  const Result<Run> r =
      run({.blocks = 3, .prefix_cache = true}, pricer, requests, {.most_in_flight = 1});
  REQUIRE(r);
  CHECK(r->served[3].reused == 0);
  CHECK(r->served[4].reused == 16);
}

TEST_CASE("a preempted request finds those of its blocks that others left in the cache") {
  // Five blocks of 4 tokens. The second request has 8 tokens cached when it needs a third block and none is free. Its two
  // full blocks stay in the cache, and the first request takes the last one for its 13th token. When that one ends, the
  // second computes 9 tokens but for the 4 of its first block.
  LinearPricer pricer;
  pricer.step = Seconds::ms(1);
  const std::vector<Request> requests(2, Request{.input = 8, .output = 8});
  const auto computed_again = [&](bool prefix_cache) {
    const Result<Run> r = run({.tokens_per_step = 8,
                               .blocks = 5,
                               .block_tokens = 4,
                               .prefix_cache = prefix_cache,
                               .prefix_tokens = 4},
                              pricer, requests);
    REQUIRE(r);
    std::int64_t tokens = 0;
    for (const StepRun& step : r->steps)
      if (step.prompts > 0) tokens = step.prompt_tokens;
    return tokens;
  };
  CHECK(computed_again(true) == 5);
  CHECK(computed_again(false) == 8);  // a step has 8 tokens; the ninth follows as a decode row
}

TEST_CASE("a request that no server state could run is refused") {
  LinearPricer pricer;
  const std::vector<Request> requests = {{.input = 100, .output = 30}};
  const auto message = [&](const Rules& rules) {
    const Result<Run> r = run(rules, pricer, requests);
    REQUIRE(!r);
    return to_string(r.error());
  };
  CHECK(message({.blocks = 8}).find("needs 9 blocks") != std::string::npos);
  CHECK(message({.tokens_per_step = 64, .chunked = false, .blocks = 9}).find("exceeds the 64") !=
        std::string::npos);
}

TEST_CASE("host time overlaps or adds") {
  LinearPricer pricer;
  pricer.step = Seconds::ms(3);
  pricer.host = Seconds::ms(2);
  const std::vector<Request> requests = {{.input = 1, .output = 4}};
  CHECK(run({.blocks = 9}, pricer, requests)->served[0].last == Picoseconds::from(Seconds::ms(12)));
  CHECK(run({.overlapped = false, .blocks = 9}, pricer, requests)->served[0].last ==
        Picoseconds::from(Seconds::ms(20)));
}

TEST_CASE("a busy server that overlaps forms a step before the one in front ends") {
  // Steps of 10 ms. The second request arrives in the first step. Formed in time, it is in the
  // second step; by an overlapped server in the third, and by one that was idle in the next.
  LinearPricer pricer;
  pricer.step = Seconds::ms(10);
  const auto scheduled = [&](bool overlapped, std::int64_t output) {
    const std::vector<Request> requests = {
        {.input = 1, .output = output},
        {.planned = Picoseconds::from(Seconds::ms(5)), .input = 1, .output = 1}};
    const Result<Run> r = run({.overlapped = overlapped, .blocks = 9}, pricer, requests);
    REQUIRE(r);
    return r->served[1].scheduled.seconds().ms();
  };
  CHECK(scheduled(false, 9) == 10);
  CHECK(scheduled(true, 9) == 20);
  CHECK(scheduled(true, 1) == 10);
}

TEST_CASE("drafts that are never accepted cost what they take") {
  // 30 requests of 2 to 31 tokens. A row with k tokens to generate has min(3, k - 1) drafts.
  LinearPricer pricer;
  pricer.row = Seconds::ms(0.5);
  std::vector<Request> requests;
  for (std::int64_t i = 0; i < 30; ++i) requests.push_back({.input = 5, .output = 2 + i});
  Rules rules{.most_rows = 1, .blocks = 99};
  const Result<Run> plain = run(rules, pricer, requests);
  rules.drafts = {0, 1, 1};
  const Result<Run> free = run(rules, pricer, requests);
  pricer.draft = Seconds::ms(0.1);
  const Result<Run> paid = run(rules, pricer, requests);
  REQUIRE(plain);
  REQUIRE(free);
  REQUIRE(paid);
  CHECK(free->served == plain->served);
  std::int64_t drafted = 0;
  for (const Request& request : requests)
    for (std::int64_t left = request.output - 1; left > 0; --left)
      drafted += std::min<std::int64_t>(3, left - 1);
  CHECK((paid->served.back().last - plain->served.back().last).seconds().ms() ==
        Approx(0.1 * static_cast<double>(drafted)));
}

TEST_CASE("accepted drafts shorten an answer by their mean") {
  // Steps of 1 ms. With all of 3 drafts accepted a step gives 4 tokens: 100 after the first take 25.
  LinearPricer pricer;
  const std::vector<Request> one = {{.input = 5, .output = 101}};
  CHECK(run({.drafts = {1, 1, 1}, .blocks = 99}, pricer, one)->served[0].last ==
        Picoseconds::from(Seconds::ms(26)));
  // Chances 0.8, 0.5 and 0.9 give 1 + 0.8 + 0.4 + 0.36 tokens per step.
  const std::vector<Request> many(20, Request{.input = 5, .output = 20'001});
  const Result<Run> r = run({.drafts = {0.8, 0.5, 0.9}, .blocks = 1'000'000}, pricer, many);
  REQUIRE(r);
  double steps = 0;
  for (const Served& served : r->served) steps += (served.last - served.first).seconds().ms();
  CHECK(20 * 20'000 / steps == Approx(2.56).epsilon(0.005));
}

TEST_CASE("requests in turn to two replicas are GI/M/1 each") {
  // The gaps at a replica are Erlang-2. With exponential service at the rate mu, the mean wait is
  // s / (mu (1 - s)), where s = A*(mu (1 - s)) and A*(x) = (rate / (rate + x))². Outputs of a step
  // each are geometric, nearly exponential with a mean of 50 steps.
  LinearPricer pricer;
  pricer.step = Seconds::us(400);
  const double p = 0.02, mu = p / 4e-4, rate = 1.5 * mu;
  std::vector<Request> requests = poisson(rate, 100'000);
  Random random(3);
  for (Request& request : requests) {
    request.input = 3200;  // decode steps at such a context run together
    while (random.uniform() >= p) ++request.output;
  }
  const auto wait = [&](Routing routing) {
    const Result<std::vector<Run>> runs =
        run_replicas({{.most_rows = 1, .blocks = 1000}, pricer, 2, routing}, requests);
    REQUIRE(runs);
    return (mean_wait(runs->at(0)) + mean_wait(runs->at(1))) / 2;
  };
  double s = 0.5;
  for (int i = 0; i < 200; ++i) s = std::pow(rate / (rate + mu * (1 - s)), 2);
  const double in_turn = wait(Routing::kRoundRobin), shortest = wait(Routing::kLeastOutstanding);
  CHECK(in_turn == Approx(s / (mu * (1 - s))).epsilon(0.05));
  // Joining the shortest queue is between that and one queue for both: M/M/2 waits
  // rho² / (mu (1 - rho²)).
  const double rho = rate / (2 * mu);
  CHECK(shortest < in_turn);
  CHECK(shortest > 0.95 * rho * rho / (mu * (1 - rho * rho)));
}

TEST_CASE("a router by prefix keeps sessions together, and weighs that against the load") {
  LinearPricer pricer;
  pricer.token = Seconds::ms(1);
  const auto session = [](std::uint64_t name, int ms) {
    return Request{.planned = Picoseconds::from(Seconds::ms(ms)),
                   .input = 33,
                   .output = 1,
                   .prefix = {name, name + 1}};
  };
  const auto counts = [&](const std::vector<Request>& requests, Routing routing) {
    const Result<std::vector<Run>> runs =
        run_replicas({{.blocks = 99, .prefix_cache = true}, pricer, 2, routing}, requests);
    REQUIRE(runs);
    std::int64_t reused = 0;
    for (const Run& run : *runs)
      for (const Served& served : run.served) reused += served.reused;
    return std::tuple(runs->at(0).served.size(), runs->at(1).served.size(), reused);
  };
  // Each request ends before the next one. Two of the three of each session find 32 tokens.
  std::vector<Request> apart;
  for (int i = 0; i < 6; ++i) apart.push_back(session(i < 3 ? 10 : 20, 100 * i));
  CHECK(counts(apart, Routing::kPrefix) == std::tuple(3, 3, 4 * 32));
  CHECK(counts(apart, Routing::kRoundRobin) == std::tuple(3, 3, 2 * 32));
  // All at once: the first session's second request has one token to compute on the replica that
  // has 33 to compute, and 33 on the other, so that the 34th goes there.
  std::vector<Request> together(40, session(10, 0));
  CHECK(counts(together, Routing::kPrefix) == std::tuple(20, 20, 0));
}

}  // namespace
}  // namespace rehearse::serving
