// Properties of pipelines: no rate above what the operational laws allow, the bound reached where
// nothing varies, the knee of a delay and a server, and every time of a line of single workers.
#include <algorithm>
#include <cmath>

#include <catch2/catch.hpp>

#include "models/input/limits.h"
#include "models/input/run.h"
#include "models/input/simulate.h"
#include "models/input/tune.h"
#include "tests/support/pipeline_text.h"

namespace rehearse {
namespace {

using namespace input;
using test::between;

Pipeline random_pipeline(Random& random, bool varies) {
  Pipeline p{.seed = random.next()};
  if (random.below(2) == 0)
    p.host = Host{.cores = 1 + random.below(16),
                  .loaded = between(random, 0.6, 1),
                  .smt = between(random, 1, 1.3)};
  if (random.below(2) == 0) {
    Source s{.name = "store", .latency = {.mean = Seconds::ms(between(random, 0, 20))}};
    if (random.below(2) == 0) s.connection = ByteRate::bytes_per_s(between(random, 1e7, 1e8));
    if (random.below(2) == 0) s.total = ByteRate::bytes_per_s(between(random, 1e7, 1e9));
    if (random.below(3) == 0) s.requests_per_s = between(random, 100, 5000);
    if (random.below(3) == 0) s.request = Bytes::kib(64);
    if (random.below(3) == 0) s.hits = random.uniform();
    if (varies) s.latency.exponential = random.uniform();
    p.sources.push_back(std::move(s));
  }
  const std::uint32_t stages = 1 + random.below(4);
  for (std::uint32_t i = 0; i < stages; ++i) {
    Stage s{.name = "stage", .workers = 1 + random.below(4), .threads = 1 + random.below(3)};
    s.time.mean = Seconds::ms(between(random, 0.1, 5));
    if (varies && random.below(2) == 0) s.time.exponential = random.uniform();
    if (varies && random.below(3) == 0 && s.time.exponential == 0) s.time.lognormal = 0.5;
    if (random.below(3) == 0) s.serial.mean = Seconds::ms(between(random, 0.1, 2));
    if (!p.sources.empty() && random.below(2) == 0)
      s.source = 0, s.bytes = Bytes::b(between(random, 1e3, 1e6));
    if (random.below(4) == 0) s.visits = between(random, 0.1, 2.5);
    if (random.below(4) == 0) s.batch = 1 + random.below(8);
    if (random.below(4) == 0) s.split = 1 + random.below(8);
    if (random.below(4) == 0) s.shuffle = random.below(50);
    if (random.below(3) == 0) s.queue = random.below(20);
    s.ordered = random.below(2) == 0;
    p.stages.push_back(std::move(s));
  }
  if (random.below(3) == 0) p.step = ServiceTime{.mean = Seconds::ms(between(random, 0.1, 10))};
  return p;
}

TEST_CASE("input: no pipeline is faster than the operational laws allow") {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    Random random(seed);
    const bool varies = seed % 2 == 0;
    const Pipeline p = random_pipeline(random, varies);
    INFO("seed " << seed);
    const Result<Flow> flow = simulate(p);
    INFO((flow ? "" : to_string(flow.error())));
    REQUIRE(flow);
    const Limit tightest = limits_of(p).front();
    INFO(to_string(p, tightest) << " " << tightest.units_per_s);
    // Where nothing varies only the share of visits in the measured part is off; else chance is.
    const double slack =
        varies ? 0.05 + 3 * (flow->units_per_s.high / flow->units_per_s.value - 1) : 0.02;
    // On a host that is not full cores are faster than the law, which takes all threads as busy.
    REQUIRE(flow->units_per_s.value <= tightest.units_per_s * (1 + slack));
    REQUIRE(flow->units_per_s.value > 0);
    for (const double busy : flow->busy) REQUIRE(busy <= 1 + 1e-9);
  }
}

TEST_CASE("input: takes that read unequally keep to the mean of their reads where nothing waits") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Pipeline p{.sources = {{.name = "store", .latency = {.mean = Seconds::ms(1)}}}};
    p.sources[0].connection = ByteRate::bytes_per_s(between(random, 1e7, 1e8));
    if (random.below(2) == 0) p.sources[0].request = Bytes::kib(64);
    Stage s{.name = "read", .source = 0};
    double sum = 0;
    const std::uint32_t takes = 1 + random.below(30);
    for (std::uint32_t i = 0; i < takes; ++i) {
      s.reads.push_back(Bytes::b(random.below(4) == 0 ? 0 : between(random, 1e3, 1e6)));
      sum += s.reads.back().b();
    }
    s.reads.push_back(Bytes::kib(128));
    s.bytes = Bytes::b((sum + Bytes::kib(128).b()) / (takes + 1));
    p.stages.push_back(s);
    // Rounds are measured as a whole, or cut at their end.
    const Result<Flow> flow = simulate(p);
    REQUIRE(flow);
    REQUIRE(flow->units_per_s.value == Approx(limits_of(p).front().units_per_s).epsilon(0.01));
    // After it, a step that takes longer than any read waits for none of them, however they lie.
    double longest = 0;
    for (const Bytes read : s.reads)
      longest = std::max(longest, requests_of(p.sources[0], s, read) * 1e-3 +
                                      (read / *p.sources[0].connection).s());
    p.step = ServiceTime{.mean = Seconds::s(longest * 1.01)};
    REQUIRE(simulate(p)->units_per_s.value == Approx(1 / (longest * 1.01)).epsilon(1e-3));
  }
}

TEST_CASE("input: with constant times and enough queue room the bound is reached") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    Pipeline p{.seed = seed};
    for (std::uint32_t i = 0, n = 1 + random.below(5); i < n; ++i) {
      Stage s{.name = "stage", .workers = 1 + random.below(8)};
      s.time.mean = Seconds::ms(between(random, 0.5, 5));
      if (random.below(4) == 0) s.batch = 1 + random.below(4);
      s.queue = 4 * s.slots() + 32;
      p.stages.push_back(std::move(s));
    }
    INFO("seed " << seed);
    const Result<Flow> flow = simulate(p);
    INFO((flow ? "" : to_string(flow.error())));
    REQUIRE(flow);
    REQUIRE(flow->units_per_s.value == Approx(limits_of(p).front().units_per_s).epsilon(0.01));
  }
}

/// A closed network of `customers` that think for `delay` and are then served one at a time,
/// exponentially, `service` in the mean: requests per second, exactly (mean value analysis, Reiser
/// and Lavenberg, J. ACM 27(2), 1980).
double delay_and_server_rate(std::uint32_t customers, Seconds delay, Seconds service) {
  double queue = 0, rate = 0;
  for (std::uint32_t n = 1; n <= customers; ++n) {
    const double response = service.s() * (1 + queue);
    rate = n / (response + delay.s());
    queue = rate * response;
  }
  return rate;
}

TEST_CASE("input: a delay and a server have the knee of mean value analysis") {
  for (const std::uint32_t threads : {1U, 2U, 4U, 8U, 16U, 30U}) {
    const ServiceTime delay{.mean = Seconds::ms(160), .exponential = 1};
    const ServiceTime serial{.mean = Seconds::ms(19), .exponential = 1};
    Stage fetch{.name = "fetch", .threads = threads, .time = delay, .serial = serial};
    fetch.queue = 1000, fetch.ordered = false;
    const Pipeline p{.stages = {fetch}};
    const Result<Flow> flow = simulate(p);
    REQUIRE(flow);
    INFO(threads << " threads");
    CHECK(flow->units_per_s.value ==
          Approx(delay_and_server_rate(threads, delay.mean, serial.mean)).epsilon(0.025));
  }
}

TEST_CASE("input: tuned, a pipeline is as fast as the program says") {
  for (std::uint64_t seed = 101; seed <= 120; ++seed) {
    Random random(seed);
    Pipeline p{.seed = seed};
    if (random.below(4) != 0)
      p.host = Host{.cores = 1 + random.below(48),
                    .loaded = between(random, 0.7, 1),
                    .smt = between(random, 1, 1.3)};
    if (random.below(2) == 0)
      p.sources.push_back(Source{.name = "s3",
                                 .latency = {.mean = Seconds::ms(between(random, 1, 100))},
                                 .total = ByteRate::bytes_per_s(between(random, 1e7, 1e9))});
    for (std::uint32_t i = 0, n = 1 + random.below(4); i < n; ++i) {
      Stage s{.name = "stage", .most_workers = 8 + random.below(56)};
      s.time.mean = Seconds::ms(between(random, 0.5, 20));
      if (i == 0 && !p.sources.empty()) s.source = 0, s.bytes = Bytes::b(between(random, 1e3, 1e6));
      if (random.below(4) == 0) s.batch = 1 + random.below(8);
      if (random.below(4) == 0) s.visits = 0.5;
      if (random.below(4) == 0) s.serial.mean = Seconds::ms(between(random, 0.1, 3));
      if (random.below(4) == 0) s.most_threads = 16;
      s.ordered = random.below(2) == 0;
      p.stages.push_back(std::move(s));
    }
    INFO("seed " << seed);
    const Result<Tuned> tuned = tune(p);
    INFO((tuned ? "" : to_string(tuned.error())));
    REQUIRE(tuned);
    INFO(to_string(tuned->pipeline, tuned->limit));
    const Result<Flow>& flow = tuned->flow;
    REQUIRE(flow);
    // A stage that may have no more threads, and whose cores are others' too, is slower at times
    // than the law has it, and nothing makes up for that.
    bool held_back = false;
    for (std::size_t i = 0; i < tuned->pipeline.stages.size(); ++i) {
      const Stage& s = tuned->pipeline.stages[i];
      held_back |= p.host && s.slots() == s.most_workers * s.most_threads && flow->busy[i] > 0.99;
    }
    const double ratio = flow->units_per_s.value / tuned->units_per_s;
    CHECK(ratio > (held_back ? 0.9 : 0.98));
    CHECK(ratio < 1.02);
    // No setting that chance finds is faster: by the law, or in a run with ample room where the law,
    // which is a bound, promises more than the advised setting's.
    for (int other = 0; other < 20; ++other) {
      Pipeline q = p;
      for (Stage& s : q.stages) {
        s.workers = 1 + random.below(s.most_workers);
        s.threads = 1 + random.below(s.most_threads);
      }
      if (q.host && busy_threads(q) > 2 * q.host->cores) continue;
      if (limits_of(q).front().units_per_s <= tuned->units_per_s * 1.001) continue;
      for (Stage& s : q.stages) s.queue = 10'000;
      const Result<Flow> run = simulate(q);
      REQUIRE(run);
      CHECK(run->units_per_s.value <= flow->units_per_s.value * 1.001);
    }
  }
}

TEST_CASE("input: takes that skip a stage do not overtake others") {
  // Of places that are freed one by one, the even takes would only ever wait for even ones.
  for (const double visits : {0.5, 0.25, 1.5}) {
    Stage fetch{.name = "fetch", .workers = 19, .visits = visits, .queue = 200, .ordered = false};
    fetch.time.mean = Seconds::ms(70);
    Stage decode{.name = "decode", .workers = 6, .queue = 12, .ordered = false};
    decode.time.mean = Seconds::ms(5);
    const Pipeline p{.stages = {fetch, decode}};
    const Limit limit = limits_of(p).front();
    REQUIRE(limit.kind == LimitKind::kThreads);
    REQUIRE(limit.index == 0);
    CHECK(simulate(p)->units_per_s.value == Approx(limit.units_per_s).epsilon(0.01));
  }
}

TEST_CASE("input: a host with fewer cores than stages is tuned too") {
  for (std::size_t stages = 1; stages <= 6; ++stages) {
    Pipeline p{.host = Host{.cores = 1, .loaded = 0.9, .smt = 1.1}};
    for (std::size_t i = 0; i < stages; ++i)
      p.stages.push_back({.name = "stage", .time = {.mean = Seconds::ms(2 + double(i))}});
    INFO(stages << " stages");
    const Result<Tuned> tuned = tune(p);
    INFO((tuned ? "" : to_string(tuned.error())));
    REQUIRE(tuned);
    CHECK(tuned->units_per_s == Approx(limits_of(tuned->pipeline).front().units_per_s));
  }
}

TEST_CASE("input: takes that skip a stage run ahead only as far as there is room") {
  // Every other take of the only stage; its rate is that of those that are worked on, twice over.
  for (const bool ordered : {false, true}) {
    Stage s{.name = "stage", .workers = 30, .visits = 0.5, .ordered = ordered};
    s.time.mean = Seconds::ms(10);
    const Pipeline p{.stages = {s}};
    const Result<Run> run = run_units(p, 4000, Start::kTogether);
    REQUIRE(run);
    const std::vector<Seconds>& ends = run->ends;
    CHECK(1000 / (ends[1999] - ends[999]).s() == Approx(6000).epsilon(0.05));
    CHECK(1000 / (ends[3799] - ends[2799]).s() == Approx(6000).epsilon(0.05));
    const Result<Flow> flow = simulate(p);
    REQUIRE(flow);
    CHECK(flow->units_per_s.value == Approx(6000).epsilon(0.01));
  }
}

// end(i, k) = max(end(i, k-1), end(i-1, k), end(i+1, k - room)) + time(i, k)
TEST_CASE("input: a chain of single workers follows its recursion, to the picosecond") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    Pipeline p{.seed = seed};
    const std::size_t stages = 1 + random.below(4);
    constexpr std::size_t kUnits = 60;
    for (std::size_t i = 0; i < stages; ++i) {
      Stage s{.name = "stage", .queue = random.below(4), .ordered = random.below(2) == 0};
      s.time = {.mean = Seconds::ms(between(random, 1, 5)), .exponential = random.uniform()};
      p.stages.push_back(std::move(s));
    }
    const Result<Run> run = run_units(p, kUnits, Start::kTogether);
    REQUIRE(run);

    std::vector<std::vector<std::int64_t>> time(stages), end(stages);
    for (std::size_t i = 0; i < stages; ++i) {
      Random drawn = random_stream(p.seed, i);
      for (std::size_t k = 0; k < kUnits; ++k)
        time[i].push_back(Picoseconds::from(p.stages[i].time.draw(drawn)).count());
      end[i].assign(kUnits, 0);
    }
    for (std::size_t k = 0; k < kUnits; ++k)
      for (std::size_t i = 0; i < stages; ++i) {
        std::int64_t start = k > 0 ? end[i][k - 1] : 0;
        if (i > 0) start = std::max(start, end[i - 1][k]);
        const std::size_t room = 2 + *p.stages[i].queue;
        if (i + 1 < stages && k >= room) start = std::max(start, end[i + 1][k - room]);
        end[i][k] = start + time[i][k];
      }
    INFO("seed " << seed);
    for (std::size_t k = 0; k < kUnits; ++k)
      REQUIRE(run->timeline[OpId(run->lowered.units[k])].end.count() == end[stages - 1][k]);
  }
}

}  // namespace
}  // namespace rehearse
