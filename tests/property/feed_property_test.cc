// Properties of an accelerator that a pipeline feeds: it is never faster than alone or than its
// units, a slower one waits no longer, free storage helps.
#include <cmath>

#include <catch2/catch.hpp>

#include "models/input/feed.h"
#include "models/input/limits.h"
#include "models/store/random.h"

namespace rehearse {
namespace {

using namespace input;
using store::Random;

/// Constant times, so that runs of different work can be compared.
Pipeline random_feed(Random& random) {
  Pipeline p{.seed = random.next()};
  if (random.below(2) == 0) p.host = Host{.cores = 1 + random.below(16), .loaded = 0.9};
  p.sources.push_back({.name = "store",
                       .latency = {.mean = Seconds::ms(20 * random.uniform())},
                       .connection = ByteRate::bytes_per_s(1e7 + 9e7 * random.uniform())});
  const std::uint32_t stages = 1 + random.below(3);
  for (std::uint32_t i = 0; i < stages; ++i) {
    Stage s{.name = "stage", .workers = 1 + random.below(4), .threads = 1 + random.below(3)};
    s.time.mean = Seconds::ms(0.1 + 5 * random.uniform());
    if (random.below(2) == 0) s.source = 0, s.bytes = Bytes::b(1e6 * random.uniform());
    if (random.below(3) == 0) s.batch = 1 + random.below(8);
    if (random.below(3) == 0) s.queue = random.below(20);
    p.stages.push_back(std::move(s));
  }
  return p;
}

double fed(const Pipeline& p, double units, Seconds time) {
  const Result<double> slower = slowdown(p, {units, time});
  INFO((slower ? "" : to_string(slower.error())));
  REQUIRE(slower);
  REQUIRE(*slower >= 1);
  return time.s() * *slower;
}

TEST_CASE("feed: work is never faster than alone, nor than its units allow") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const Pipeline p = random_feed(random);
    INFO("seed " << seed);
    const double rate = limits_of(p).front().units_per_s;
    const double units = 0.2 + 12 * random.uniform();
    const double due = units / rate;
    // Faster than its input, about as fast, and slower.
    double before = 0;
    for (const double share : {0.1, 0.9, 1.1, 3.0}) {
      const double time = fed(p, units, Seconds::s(share * due));
      REQUIRE(time >= share * due);
      // On a host that is not full cores are faster than the law.
      REQUIRE(time >= due * (p.host ? 0.9 * 0.98 : 0.98));
      REQUIRE(time >= before * 0.98);
      before = time;
      const double free = fed(with_free_storage(p), units, Seconds::s(share * due));
      // Without reads more threads are at work at a time, and by the law its cores are slower.
      if (!p.host) REQUIRE(free <= time * 1.02);
    }
  }
}

}  // namespace
}  // namespace rehearse
