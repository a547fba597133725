// Pools for prompts and for tokens, by hand and against queueing theory.
#include <numeric>

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/serving/measures.h"
#include "sim/serving/pools.h"
#include "tests/support/linear_pricer.h"

namespace rehearse::serving {
namespace {

using test::LinearPricer;

double ms(Picoseconds time) { return time.seconds().ms(); }

/// 1 ms per prompt token, and 1 ms per step.
LinearPricer by_token() {
  LinearPricer pricer;
  pricer.token = Seconds::ms(1);
  return pricer;
}

TEST_CASE("one request passes both pools") {
  // A prompt of 9 tokens: 1 + 9 = 10 ms. Keys and values take 0.5 ms per token and 0.25 ms of latency,
  // so they arrive 4.75 ms later. Two tokens follow, 1 ms each.
  const LinearPricer pricer = by_token();
  const Pool pool{.rules = {.overlapped = false, .blocks = 10}, .pricer = pricer};
  Transfer transfer{.out = {.token = Seconds::ms(0.5)}, .latency = Seconds::ms(0.25)};
  const std::vector<Request> requests = {{.input = 9, .output = 3}};
  const auto whole = run_pools(pool, pool, transfer, requests);
  REQUIRE(whole);
  const Served s = whole->front().served.front();
  CHECK(ms(s.prefilled) == Approx(10));
  CHECK(ms(s.room) == Approx(10));
  CHECK(ms(s.arrived) == Approx(14.75));
  CHECK(s.first == s.arrived);
  CHECK(ms(s.last) == Approx(16.75));
  // By five layers, of 2 ms of the step and 0.9 ms of the link each: the last one follows the step.
  transfer.layers = 5;
  const auto by_layer = run_pools(pool, pool, transfer, requests);
  REQUIRE(by_layer);
  CHECK(ms(by_layer->front().served.front().arrived) == Approx(10 + 0.9 + 0.25));
  // A slow link works from the first layer on: 2 ms, and 9 tokens of 3 ms.
  transfer.out.token = Seconds::ms(3);
  CHECK(ms(run_pools(pool, pool, transfer, requests)->front().served.front().arrived) ==
        Approx(2 + 27 + 0.25));
}

TEST_CASE("without transfer and with room, the time to the first token is that of the first pool") {
  LinearPricer pricer;
  pricer.token = Seconds::us(50);
  pricer.row = Seconds::us(100);
  Random random(3);
  std::vector<Request> requests(500), prompts;
  double at = 0;
  for (Request& r : requests) {
    at += random.exponential() / 400;
    r = {Picoseconds::from(Seconds::s(at)), 1 + random.below(60), 1 + random.below(40)};
    prompts.push_back({r.planned, r.input, 1});
  }
  const Rules rules{.tokens_per_step = 64, .overlapped = false, .blocks = 100'000};
  Rules roomy = rules;
  roomy.most_rows = 1000;
  for (const std::int64_t layers : {0, 8}) {
    const auto alone = run(rules, pricer, prompts);
    const auto both = run_pools({rules, pricer}, {roomy, pricer}, {.layers = layers}, requests);
    REQUIRE(alone);
    REQUIRE(both);
    for (std::size_t i = 0; i < requests.size(); ++i)
      CHECK(both->front().served[i].first == alone->served[i].first);
  }
}

TEST_CASE("the first pool is M/D/1") {
  // Prompts one at a time of 10 ms: mean wait rho S / (2 (1 - rho)).
  LinearPricer prompts, tokens;
  prompts.step = Seconds::ms(10);
  tokens.step = Seconds::us(1);
  for (const double rho : {0.3, 0.7}) {
    Random random(1);
    std::vector<Request> requests(100'000, Request{.output = 3});
    double at = 0;
    for (Request& request : requests) {
      at += random.exponential() * 0.01 / rho;
      request.planned = Picoseconds::from(Seconds::s(at));
    }
    const auto runs = run_pools({{.most_rows = 1, .blocks = 100}, prompts},
                                {{.blocks = 100}, tokens}, {}, requests);
    REQUIRE(runs);
    CHECK(measure(*runs).queue.mean == Approx(rho * 0.01 / (2 * (1 - rho))).epsilon(0.05));
    CHECK(use_of({&runs->front(), 1}, measure(*runs)).busy == Approx(rho).epsilon(0.02));
  }
}

TEST_CASE("a full second pool presses back on the first") {
  // Each request needs a block of 16 tokens in either pool, and both have one. Prompts take 10 ms, and
  // 5 tokens more 1 ms each. The second prompt is computed at 20 ms, when the first has left.
  const LinearPricer pricer = by_token();
  const Pool pool{.rules = {.overlapped = false, .blocks = 1}, .pricer = pricer};
  std::vector<Request> requests(3, Request{.input = 9, .output = 6});
  const auto quick = run_pools(pool, pool, {}, requests);
  REQUIRE(quick);
  CHECK(ms(quick->front().served[1].prefilled) == Approx(20));
  CHECK(ms(quick->front().served[1].room) == Approx(20));
  // With 30 tokens more, the second waits from 20 to 40 ms for the block, the third for that of the
  // first pool.
  for (Request& r : requests) r = {.input = 2, .output = 14};
  LinearPricer slow = pricer;
  slow.step = Seconds::ms(2);
  const auto slowed = run_pools(pool, {pool.rules, slow}, {}, requests);
  REQUIRE(slowed);
  const std::vector<Served>& s = slowed->front().served;
  CHECK(ms(s[0].last) == Approx(3 + 13 * 2));
  CHECK(ms(s[1].prefilled) == Approx(6));
  CHECK(ms(s[1].room) == Approx(29));
  CHECK(ms(s[2].scheduled) == Approx(29));
}

TEST_CASE("a request waits for its first token until it has a row") {
  const LinearPricer pricer = by_token();
  const std::vector<Request> requests(2, Request{.input = 1, .output = 11});
  const auto runs =
      run_pools({{.overlapped = false, .blocks = 9}, pricer},
                {{.most_rows = 1, .overlapped = false, .blocks = 9}, pricer}, {}, requests);
  REQUIRE(runs);
  const std::vector<Served>& s = runs->front().served;
  CHECK(ms(s[1].arrived) == Approx(3));  // both prompts in one step of 1 + 2 ms
  CHECK(ms(s[0].last) == Approx(13));
  CHECK(ms(s[1].first) == Approx(13));
  CHECK(ms(s[1].last) == Approx(23));
}

TEST_CASE("a link into a replica serves its senders one after another") {
  // Two prompts end at 10 ms on two replicas. Sending takes 2 ms each, and receiving 3.
  const LinearPricer pricer = by_token();
  const Pool senders{.rules = {.overlapped = false, .blocks = 9}, .pricer = pricer, .replicas = 2};
  const Pool receiver{.rules = senders.rules, .pricer = pricer};
  const Transfer transfer{.out = {.token = Seconds::ms(2.0 / 9)},
                          .in = {.token = Seconds::ms(3.0 / 9)}};
  const std::vector<Request> requests(2, Request{.input = 9, .output = 2});
  const auto runs = run_pools(senders, receiver, transfer, requests);
  REQUIRE(runs);
  CHECK(ms((*runs)[0].served[0].arrived) == Approx(13));
  CHECK(ms((*runs)[1].served[0].arrived) == Approx(16));
}

TEST_CASE("a request that does not fit in one of the pools is refused") {
  const LinearPricer pricer = by_token();
  const std::vector<Request> requests = {{.input = 20, .output = 30}};
  const auto message = [&](const Rules& prefill, const Rules& decode) {
    const auto runs = run_pools({prefill, pricer}, {decode, pricer}, {}, requests);
    REQUIRE(!runs);
    return to_string(runs.error());
  };
  CHECK(message({.blocks = 1}, {.blocks = 9}).find("needs 2 blocks") != std::string::npos);
  CHECK(message({.blocks = 2}, {.blocks = 3}).find("needs 4 blocks") != std::string::npos);
}

}  // namespace
}  // namespace rehearse::serving
