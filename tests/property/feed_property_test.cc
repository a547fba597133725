// Properties of an accelerator that a pipeline feeds: it is never faster than alone or than its
// units, a slower one waits no longer, free storage helps; and what one run shows of another work.
#include <cmath>

#include <catch2/catch.hpp>

#include "models/input/feed.h"
#include "models/input/limits.h"
#include "models/input/simulate.h"
#include "sim/base/random.h"

namespace rehearse {
namespace {

using namespace input;

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
  const Result<Seconds> lasts = Feed(p).time_of({units, time});
  INFO((lasts ? "" : to_string(lasts.error())));
  REQUIRE(lasts);
  REQUIRE(*lasts >= time);
  return lasts->s();
}

TEST_CASE("feed: work is never faster than alone, or than its units arrive") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
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

/// Of all kinds that feed a job.
Pipeline any_pipeline(Random& random) {
  Pipeline p = random_feed(random);
  if (p.host) p.host->smt = 1 + random.uniform();
  if (random.below(3) == 0) p.sources[0].total = p.sources[0].connection.value() * 3;
  if (random.below(3) == 0) p.sources[0].requests_per_s = 50 + 500 * random.uniform();
  if (random.below(2) == 0) p.sources[0].latency.exponential = random.uniform();
  for (Stage& s : p.stages) {
    if (random.below(3) == 0) s.time.lognormal = random.uniform();
    if (random.below(4) == 0) s.serial.mean = Seconds::ms(random.uniform());
    if (random.below(4) == 0) s.ordered = false;
    if (random.below(4) == 0) s.visits = 0.5 + random.uniform();
    if (random.below(6) == 0) s.split = 1 + random.below(4);
    if (random.below(6) == 0) s.shuffle = random.below(10);
  }
  if (random.below(4) == 0)
    p.loop = Loop{.in_flight = static_cast<std::uint64_t>(least_in_flight(p)) + random.below(60)};
  return p;
}

/// The run of this very work.
Result<double> by_its_own_run(Pipeline p, std::uint32_t units, Seconds time) {
  p.sources.push_back({.name = "accelerator", .latency = {.mean = time}});
  p.stages.push_back(
      {.name = "accelerator", .source = p.sources.size() - 1, .batch = units, .queue = 0});
  const Result<Flow> flow = simulate(p);
  if (!flow) return tl::unexpected(flow.error());
  const double slower = 1 / (flow->units_per_s.value * time.s());
  return slower < 1 + 1e-6 ? 1 : slower;
}

TEST_CASE("feed: what runs of other work have shown is what a run of this work shows") {
  std::size_t unheld = 0, never = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed);
    const Pipeline p = any_pipeline(random);
    INFO("seed " << seed);
    const Feed feed(p);
    const std::uint32_t units = 1 + random.below(4);
    const double due = units / limits_of(p).front().units_per_s;
    for (int i = 0; i < 8; ++i) {
      const Seconds time = Seconds::s(due * std::exp(std::log(0.05) + random.uniform() * 5));
      INFO("units " << units << ", share " << time.s() / due);
      const Result<Seconds> kept = feed.time_of({static_cast<double>(units), time});
      const Result<double> own = by_its_own_run(p, units, time);
      REQUIRE(kept.has_value() == own.has_value());
      if (!own) continue;
      REQUIRE(*kept / time == Approx(*own).epsilon(1e-9));
      if (*own == 1) ++never;
      if (*own > 2) ++unheld;
    }
  }
  CHECK(never > 8);
  CHECK(unheld > 6);
}

}  // namespace
}  // namespace rehearse
