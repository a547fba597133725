// Keys and values below the device, by hand and against a store written for clarity.
#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/serving/run.h"
#include "sim/serving/tiers.h"
#include "tests/support/linear_pricer.h"

namespace rehearse::serving::tiers {
namespace {

Picoseconds ms(double t) { return Picoseconds::from(Seconds::ms(t)); }

TEST_CASE("a preempted request goes to the host and comes back") {
  // Five blocks of 4 tokens. At 3 ms the second request has 8 tokens cached, needs a third block, and none is free. Its
  // two blocks take 2 · 0.25 ms to the host. The first request ends at 8 ms; the second one's blocks are back at 8.5 ms,
  // and its last 7 tokens take 1 ms each.
  test::LinearPricer pricer;
  const std::vector<Request> requests(2, Request{.input = 8, .output = 8});
  Rules rules{.tokens_per_step = 8,
              .overlapped = false,
              .blocks = 5,
              .block_tokens = 4,
              .tiers = {{.blocks = 2, .block = Seconds::ms(0.25)}}};
  const auto computed = [](const Run& run) {
    std::int64_t tokens = 0;
    for (const StepRun& step : run.steps) tokens += step.prompt_tokens;
    return tokens;
  };
  const Result<Run> swapped = run(rules, pricer, requests);
  REQUIRE(swapped);
  CHECK(swapped->served[0].last == ms(8));
  CHECK(swapped->served[1].last == ms(15.5));
  CHECK(computed(*swapped) == 16);
  // One block on the host: it is the first, and 5 of 9 tokens are computed again.
  rules.tiers.front().blocks = 1;
  const Result<Run> half = run(rules, pricer, requests);
  REQUIRE(half);
  CHECK(computed(*half) == 16 + 5);
  // Without tiers 7 tokens are computed at 4 ms, in vain, and 8 at 8 ms; the ninth is a decode row.
  rules.tiers.clear();
  const Result<Run> again = run(rules, pricer, requests);
  REQUIRE(again);
  CHECK(computed(*again) == 16 + 7 + 8);
  CHECK(again->served[1].last == ms(16));
}

TEST_CASE("prompts go to tiers when they are computed, or when they leave the device") {
  // Three blocks. The third prompt evicts the first one's block, and the fifth that of the second.
  test::LinearPricer pricer;
  std::vector<Request> requests;
  for (const std::uint64_t name : {1, 2, 3, 1})
    requests.push_back({.input = 17, .output = 1, .prefix = {name}});
  Rules rules{.overlapped = false,
              .blocks = 3,
              .prefix_cache = true,
              .tiers = {{.blocks = 2, .block = Seconds::ms(0.5)}}};
  const auto loaded = [&] {
    return run(rules, pricer, requests, {.most_in_flight = 1})->served[3].loaded;
  };
  CHECK(loaded() == 16);
  rules.writes_through = true;  // blocks 2 and 3 are in the tier, although the device has them too
  CHECK(loaded() == 0);
  rules.tiers.front().blocks = 3;
  CHECK(loaded() == 16);
}

TEST_CASE("a server that computes nothing wakes when keys and values arrive") {
  test::LinearPricer pricer;
  std::vector<Request> requests;
  for (const std::uint64_t name : {1, 2, 3, 1})
    requests.push_back({.input = 17, .output = 1, .prefix = {name}});
  const Rules rules{.overlapped = false,
                    .blocks = 3,
                    .prefix_cache = true,
                    .tiers = {{.blocks = 2, .block = Seconds::ms(40), .latency = Seconds::ms(2)}}};
  const Result<Run> r = run(rules, pricer, requests, {.most_in_flight = 1});
  REQUIRE(r);
  // Evicted at 2 ms, the block is on the host at 2 + 40 + 2 ms, and back 42 ms later. A step takes 1 ms.
  CHECK(r->served[3].sent == ms(3));
  CHECK(r->served[3].last == ms(44 + 42 + 1));
}

/// Parts in the order of their use, and when they are there.
struct NaiveTiers {
  struct Part {
    std::uint64_t name;
    std::size_t tier;
    std::int64_t used;
    double there;
  };
  std::vector<std::int64_t> rooms;  // in parts
  std::vector<double> each, latency, in, out;
  std::vector<Part> parts = {};
  std::int64_t clock = 0;

  void drop(std::uint64_t name) {
    std::erase_if(parts, [&](const Part& p) { return p.name == name; });
  }
  std::int64_t held(std::size_t tier) const {
    return std::ranges::count_if(parts, [&](const Part& p) { return p.tier == tier; });
  }
  void put(std::uint64_t name, std::size_t tier, double from) {
    if (tier == rooms.size()) return;
    if (held(tier) == rooms[tier]) {
      const Part* oldest = nullptr;
      for (const Part& p : parts)
        if (p.tier == tier && (oldest == nullptr || p.used < oldest->used)) oldest = &p;
      const Part moved = *oldest;
      drop(moved.name);
      put(moved.name, tier + 1, std::max(from, moved.there));
    }
    in[tier] = std::max(in[tier], from) + each[tier];
    parts.push_back({name, tier, ++clock, in[tier] + latency[tier]});
  }
  Part* find(std::uint64_t name) {
    const auto found = std::ranges::find(parts, name, &Part::name);
    return found == parts.end() ? nullptr : &*found;
  }
  void store(std::uint64_t name, double now) {
    if (Part* p = find(name); p != nullptr && p->tier == 0) {
      p->used = ++clock;
      return;
    }
    drop(name);
    put(name, 0, now);
  }
  double load(std::vector<std::uint64_t> names, double now, bool keeps) {
    double ready = now;
    std::ranges::reverse(names);
    for (const std::uint64_t name : names) {
      Part* p = find(name);
      const std::size_t t = p->tier;
      out[t] = std::max({out[t], now, p->there}) + each[t];
      ready = std::max(ready, out[t] + latency[t]);
      p->used = ++clock;
      if (!keeps) drop(name);
    }
    return ready;
  }
};

TEST_CASE("tiers hold and load what stores written for clarity do") {
  std::size_t loads = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Rules rules{
        .block_tokens = 4, .prefix_cache = random.below(2) > 0, .prefix_tokens = 8};  // 2 blocks
    NaiveTiers naive;
    for (std::size_t n = random.below(3) + 1; n > 0; --n) {
      const std::int64_t parts = random.below(5) + 1;
      const double each = random.below(4), latency = random.below(3);
      rules.tiers.push_back({2 * parts + static_cast<std::int64_t>(random.below(2)),
                             Seconds::ms(0.5 * each), Seconds::ms(latency)});
      naive.rooms.push_back(parts);
      naive.each.push_back(each);
      naive.latency.push_back(latency);
    }
    naive.in = naive.out = std::vector<double>(naive.rooms.size(), 0.0);
    Tiers tiers(rules);
    double now = 0;
    for (int op = 0; op < 100; ++op) {
      now += random.below(4);
      std::vector<std::uint64_t> found;
      for (std::uint64_t part = random.below(12); found.size() < 3 && tiers.holds(part); ++part)
        found.push_back(part);
      if (random.below(2) > 0 || found.empty()) {
        const std::uint64_t part = random.below(12);
        tiers.store(part, ms(now));
        naive.store(part, now);
      } else {
        CHECK(tiers.load(found, ms(now)) == ms(naive.load(found, now, rules.prefix_cache)));
        ++loads;
      }
      for (std::uint64_t part = 0; part < 16; ++part)
        CHECK(tiers.holds(part) == (naive.find(part) != nullptr));
      for (std::size_t i = 0; i < rules.tiers.size(); ++i) {
        CHECK(tiers.held(i) == 2 * naive.held(i));
        CHECK(tiers.held(i) <= rules.tiers[i].blocks);
      }
    }
  }
  CHECK(loads > 1000);
}

}  // namespace
}  // namespace rehearse::serving::tiers
