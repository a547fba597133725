// Properties of pools for prompts and for tokens, on random rules and loads.
#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/serving/pools.h"
#include "tests/support/linear_pricer.h"
#include "tests/support/naive_server.h"

namespace rehearse::serving::pools {
namespace {

struct Setting {
  Rules prefill, decode;
  std::size_t senders, receivers;
  Transfer transfer = {};
  std::vector<Request> requests = {};
  RunOptions options = {};

  Result<std::vector<Run>> run(const StepPricer& pricer) const {
    return run_pools({prefill, pricer, senders}, {decode, pricer, receivers}, transfer, requests,
                     options);
  }
};

/// Small pools, so that rows, tokens, blocks and links all run out.
Setting random_setting(std::uint64_t seed) {
  Random random(seed);
  const auto between = [&](std::int64_t a, std::int64_t b) {
    return a + static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(b - a + 1)));
  };
  const auto rules = [&] {
    return Rules{.tokens_per_step = between(24, 64),
                 .most_rows = between(1, 9),
                 .chunked = random.below(3) > 0,
                 .overlapped = random.below(2) > 0,
                 .blocks = between(12, 40),
                 .block_tokens = between(1, 2) * 4};
  };
  Setting s{.prefill = rules(),
            .decode = rules(),
            .senders = random.below(3) + 1,
            .receivers = random.below(3) + 1};
  const auto us = [](std::int64_t fives) { return Seconds::us(5 * static_cast<double>(fives)); };
  s.transfer = {.out = {.token = us(between(0, 60))},
                .in = {.token = us(between(0, 60))},
                .latency = us(10 * between(0, 3)),
                .layers = between(0, 1) * between(1, 6)};
  if (random.below(3) == 0) {
    s.decode.reserve = random.below(2) > 0 ? 1 : 0.5;
    s.decode.least_reserve = s.decode.reserve == 1 ? 1 : 0.125;
    s.decode.reserve_decay = 1.0 / 64;
  }
  Picoseconds at{0};
  for (std::int64_t n = between(1, 40); n > 0; --n) {
    s.requests.push_back({.planned = at, .input = between(1, 24), .output = between(1, 24)});
    at += Picoseconds::from(Seconds::ms(5 * random.exponential()));
  }
  s.options.most_in_flight = between(0, 9);
  return s;
}

/// As test::naive_pools takes times.
const test::LinearPricer kPricer = [] {
  test::LinearPricer pricer;
  pricer.token = Seconds::us(50);
  pricer.row = Seconds::us(100);
  return pricer;
}();

TEST_CASE("pools: equal steps that run together change nothing") {
  std::size_t together = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    INFO("seed " << seed);
    Setting s = random_setting(seed);
    for (Request& request : s.requests) request.output *= 1 + static_cast<std::int64_t>(seed % 3);
    s.decode.blocks *= 1 + static_cast<std::int64_t>(seed % 3);
    const auto fast = s.run(kPricer);
    s.options.single = true;
    const auto slow = s.run(kPricer);
    REQUIRE(fast);
    REQUIRE(slow);
    for (std::size_t i = 0; i < fast->size(); ++i) {
      CHECK((*fast)[i].served == (*slow)[i].served);
      together += (*slow)[i].steps.size() - (*fast)[i].steps.size();
    }
  }
  CHECK(together > 1000);
}

TEST_CASE("pools: a simulation written for clarity gives the same times") {
  std::int64_t preempted = 0, waited = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    INFO("seed " << seed);
    Setting s = random_setting(seed);
    s.prefill.overlapped = s.decode.overlapped = false;
    s.decode.reserve = 0;
    s.options.most_in_flight = s.transfer.layers = 0;
    const auto runs = s.run(kPricer);
    REQUIRE(runs);
    const test::NaiveTokens naive = test::naive_pools(
        {s.prefill, kPricer, s.senders}, {s.decode, kPricer, s.receivers}, s.transfer, s.requests);
    for (std::size_t i = 0; i < s.requests.size(); ++i) {
      const Served& r = (*runs)[i % s.senders].served[i / s.senders];
      REQUIRE(r.first == naive.first[i]);
      REQUIRE(r.last == naive.last[i]);
    }
    preempted += naive.preempted;
    waited += naive.waited;
  }
  CHECK(preempted > 100);
  CHECK(waited > 100);
}

TEST_CASE("pools: requests, tokens and blocks are conserved") {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    INFO("seed " << seed);
    const Setting s = random_setting(seed);
    const auto runs = s.run(kPricer);
    REQUIRE(runs);
    std::size_t requests = 0;
    std::int64_t tokens = 0, gaps = 0, prompts = 0, computed = 0;
    for (const Run& run : *runs) {
      requests += run.served.size();
      for (const auto& [gap, count] : run.gaps) gaps += count;
      for (const Served& r : run.served) {
        CHECK(r.sent <= r.queued);
        CHECK(r.queued <= r.scheduled);
        CHECK(r.scheduled < r.prefilled);
        CHECK(r.prefilled <= r.first);
        tokens += r.output - 1;
        prompts += r.input;
        if (r.output == 1) {
          CHECK(r.last == r.prefilled);
          CHECK(r.arrived == Picoseconds(0));
          continue;
        }
        CHECK(r.room <= r.arrived);
        CHECK(r.prefilled <= r.arrived);
        CHECK(r.arrived <= r.first);
        CHECK(r.first < r.last);
      }
    }
    CHECK(requests == s.requests.size());
    CHECK(gaps == tokens);
    for (std::size_t i = 0; i < runs->size(); ++i) {
      const bool first = i < s.senders;
      Picoseconds end{0};
      for (const StepRun& step : (*runs)[i].steps) {
        CHECK(step.start >= end);
        CHECK(step.held <= (*runs)[i].blocks);
        if (first) {
          CHECK(step.decode_rows == 0);
          computed += step.prompt_tokens;
        }
        end = step.start + step.each * step.steps;
      }
    }
    // Prompts that lost their blocks are computed again.
    CHECK(computed >= prompts);
  }
}

TEST_CASE("pools: no prompt arrives later by layer than whole") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Setting s = random_setting(seed);
    // One sender, and room for all, so that the order of the prompts is the same.
    s.senders = 1;
    s.options.most_in_flight = 0;
    s.prefill.blocks = s.decode.blocks = 100'000;
    s.decode.reserve = 0;
    s.transfer.layers = 0;
    const auto whole = s.run(kPricer);
    REQUIRE(whole);
    std::size_t sooner = 0;
    for (const std::int64_t layers : {1, 2, 7}) {
      s.transfer.layers = layers;
      const auto by_layer = s.run(kPricer);
      REQUIRE(by_layer);
      for (std::size_t i = 0; i < s.requests.size(); ++i) {
        const Served &a = by_layer->front().served[i], &b = whole->front().served[i];
        CHECK(a.prefilled == b.prefilled);
        CHECK(a.arrived <= b.arrived);
        sooner += a.arrived < b.arrived;
        if (layers == 1) CHECK(a.arrived == b.arrived);
      }
    }
    if (s.transfer.out.token > Seconds::us(20)) CHECK((sooner > 0 || s.requests.size() < 5));
  }
}

}  // namespace
}  // namespace rehearse::serving::pools
