// Closed loops: against a simulator that knows nothing of graphs, and where laws say how fast they
// are.
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>

#include <catch2/catch.hpp>

#include "models/input/limits.h"
#include "models/input/run.h"
#include "models/input/simulate.h"
#include "sim/engine/engine.h"
#include "tests/support/pipeline_text.h"

namespace rehearse {
namespace {

using namespace input;
using test::between;

/// A hand-off, workers, and a barrier that one worker takes batches from.
Pipeline random_loop(Random& random, Late late) {
  const std::uint32_t workers = 1 + random.below(6), batch = 2 + random.below(4);
  Pipeline p{.seed = random.next()};
  Stage send{.name = "send", .workers = 1 + random.below(2), .queue = 10'000, .ordered = false};
  send.time = {.mean = Seconds::ms(between(random, 0.1, 2)), .exponential = random.uniform()};
  Stage work{.name = "work", .workers = workers, .queue = 10'000, .ordered = false};
  // No take outlasts six rounds of the others, beyond which the graph takes the oldest as ended.
  work.time = {.mean = Seconds::ms(between(random, 2, 10)), .exponential = 0.3 * random.uniform()};
  Stage take{.name = "take", .batch = batch, .ordered = false};
  take.time = {.mean = Seconds::ms(between(random, 0.1, 3)), .exponential = random.uniform()};
  p.stages = {send, work, take};
  p.loop = Loop{.in_flight = batch + random.below(9), .late = late};
  if (late != Late::kKept && random.below(2) == 0) {
    p.loop->quorum = 1 + random.below(batch);
    p.loop->wait = Seconds::ms(between(random, 1, 20));
  }
  return p;
}

/// Runs such a loop by looking at what can happen next. Times in picoseconds.
class NaiveLoop {
 public:
  NaiveLoop(const Pipeline& p, std::size_t units) : p_(p), units_(units) {
    for (std::size_t i = 0; i < 3; ++i) randoms_.push_back(random_stream(p.seed, i));
    free_ = {p.stages[0].workers, p.stages[1].workers};
  }

  std::vector<std::int64_t> run() {
    begin_round();
    while (ends_.size() < units_) {
      const auto next = events_.begin();
      now_ = next->first.first;
      const Event event = next->second;
      events_.erase(next);
      handle(event);
      serve();
    }
    return ends_;
  }

 private:
  struct Event {
    int stage;  // 3: the time-out of a round
    std::size_t item, round;
  };

  std::int64_t drawn(std::size_t stage, std::size_t k) {
    auto& times = times_[stage];
    while (times.size() <= k)
      times.push_back(Picoseconds::from(p_.stages[stage].time.draw(randoms_[stage])).count());
    return times[k];
  }
  void at(std::int64_t time, Event event) { events_[{time, ++sequence_}] = event; }
  bool rounds() const { return p_.loop->rounds(); }
  bool abandons() const { return p_.loop->late == Late::kAbandoned; }

  void begin_round() {
    const std::size_t n = p_.loop->in_flight, batch = p_.stages[2].batch;
    if (rounds()) {
      if (abandons()) {
        waiting_ = {};
        free_ = {p_.stages[0].workers, p_.stages[1].workers};
      }
      there_ = 0;
      taken_ = timed_out_ = false;
      for (std::size_t i = 0; i < n; ++i) waiting_[0].push_back(issued_++);
      if (p_.loop->quorum)
        at(now_ + Picoseconds::from(p_.loop->wait).count(), {3, 0, ends_.size()});
    } else {
      while (issued_ < std::min(ends_.size() * batch + n, units_ * batch))
        waiting_[0].push_back(issued_++);
    }
    serve();
  }

  void handle(const Event& event) {
    if (event.stage == 3) {
      timed_out_ = timed_out_ || event.round == ends_.size();
      return;
    }
    if (event.stage == 2) {
      ends_.push_back(now_);
      taking_ = false;
      begin_round();
      return;
    }
    const auto stage = static_cast<std::size_t>(event.stage);
    // Of what is abandoned nothing is heard any more.
    if (abandons() && event.round != ends_.size()) return;
    ++free_[stage];
    if (stage == 0)
      waiting_[1].push_back(event.item);
    else if (!rounds() || event.item / p_.loop->in_flight == ends_.size())
      ++there_;
  }

  void serve() {
    for (std::size_t i = 0; i < 2; ++i)
      while (free_[i] > 0 && !waiting_[i].empty()) {
        --free_[i];
        const std::size_t item = waiting_[i].front();
        waiting_[i].pop_front();
        at(now_ + drawn(i, item), {static_cast<int>(i), item, ends_.size()});
      }
    const std::size_t batch = p_.stages[2].batch;
    const bool quorum = p_.loop->quorum && timed_out_ && there_ >= *p_.loop->quorum;
    if (taking_ || (rounds() && taken_) || !(there_ >= batch || quorum)) return;
    taking_ = taken_ = true;
    if (!rounds()) there_ -= batch;
    at(now_ + drawn(2, ends_.size()), {2, 0, ends_.size()});
  }

  const Pipeline& p_;
  std::size_t units_, issued_ = 0, there_ = 0;
  std::uint64_t sequence_ = 0;
  std::int64_t now_ = 0;
  bool taking_ = false, taken_ = false, timed_out_ = false;
  std::vector<Random> randoms_;
  std::array<std::vector<std::int64_t>, 3> times_;
  std::array<std::deque<std::size_t>, 2> waiting_;
  std::array<std::uint32_t, 2> free_ = {};
  std::map<std::pair<std::int64_t, std::uint64_t>, Event> events_;
  std::vector<std::int64_t> ends_;
};

std::vector<std::int64_t> ends_of(const Pipeline& p, std::size_t units) {
  const Result<Run> run = run_units(p, static_cast<double>(units), Start::kTogether);
  INFO((run ? "" : to_string(run.error())));
  REQUIRE(run);
  std::vector<std::int64_t> ends;
  for (const OpIndex op : run->lowered.units) ends.push_back(run->timeline[OpId(op)].end.count());
  std::sort(ends.begin(), ends.end());
  return ends;
}

TEST_CASE("loop: rounds, and batches of the first samples, agree with a naive simulator") {
  constexpr std::size_t kUnits = 60;
  for (const Late late : {Late::kKept, Late::kFinished, Late::kAbandoned})
    for (std::uint64_t seed = 1; seed <= 120; ++seed) {
      Random random(seed);
      const Pipeline p = random_loop(random, late);
      INFO(kLateNames[static_cast<int>(late)] << " seed " << seed);
      const std::vector<std::int64_t> ends = ends_of(p, kUnits), naive = NaiveLoop(p, kUnits).run();
      for (std::size_t u = 0; u < kUnits; ++u) {
        INFO("unit " << u);
        REQUIRE(ends[u] == naive[u]);
      }
    }
}

TEST_CASE("loop: with one sample in flight everything is one after another") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    Pipeline p{.loop = Loop{.in_flight = 1}, .seed = seed};
    double sum = 0;
    for (std::uint32_t i = 0, n = 1 + random.below(4); i < n; ++i) {
      Stage s{.name = "stage", .workers = 1 + random.below(4), .ordered = random.below(2) == 0};
      s.time.mean = Seconds::ms(between(random, 0.1, 5));
      if (random.below(2) == 0) s.serial.mean = Seconds::ms(between(random, 0.1, 5));
      sum += (s.time.mean + s.serial.mean).s();
      p.stages.push_back(std::move(s));
    }
    INFO("seed " << seed);
    const Result<Flow> flow = simulate(p);
    REQUIRE(flow);
    CHECK(flow->units_per_s.value == Approx(1 / sum).epsilon(1e-6));
    CHECK(limits_of(p).front().units_per_s == Approx(1 / sum));
    CHECK(limits_of(p).back().units_per_s >= 1 / sum);
  }
}

TEST_CASE("loop: with more in flight than queues hold, the rate is that of the open pipeline") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    Pipeline p{.seed = seed};
    for (std::uint32_t i = 0, n = 1 + random.below(4); i < n; ++i) {
      Stage s{.name = "stage", .workers = 1 + random.below(4), .threads = 1 + random.below(2)};
      s.time = {.mean = Seconds::ms(between(random, 0.1, 5)), .exponential = random.uniform()};
      if (random.below(3) == 0) s.serial.mean = Seconds::ms(between(random, 0.1, 2));
      if (random.below(3) == 0) s.batch = 1 + random.below(4);
      if (random.below(3) == 0) s.split = 1 + random.below(4);
      s.ordered = random.below(2) == 0;
      p.stages.push_back(std::move(s));
    }
    p.stages.back().ordered = true;  // else each unit is used up as soon as it is there
    const std::vector<std::int64_t> open = ends_of(p, 100);
    p.loop = Loop{.in_flight = 1'000'000};
    INFO("seed " << seed);
    REQUIRE(ends_of(p, 100) == open);
  }
}

/// Requests per second of a closed network, by mean value analysis (Reiser and Lavenberg, J. ACM
/// 27(2), 1980): `customers` that think and are then served one at a time, exponentially.
double closed_rate(std::uint32_t customers, Seconds think, Seconds service) {
  double queue = 0, rate = 0;
  for (std::uint32_t n = 1; n <= customers; ++n) {
    const double response = service.s() * (1 + queue);
    rate = n / (response + think.s());
    queue = rate * response;
  }
  return rate;
}

TEST_CASE("loop: a closed network has the rate of mean value analysis") {
  for (const std::uint32_t n : {1U, 2U, 5U, 8U, 16U}) {
    Stage think{.name = "think", .workers = n, .ordered = false};
    think.time = {.mean = Seconds::ms(80), .exponential = 1};
    Stage serve{.name = "serve", .ordered = false};
    serve.time = {.mean = Seconds::ms(10), .exponential = 1};
    const Pipeline p{.stages = {think, serve}, .loop = Loop{.in_flight = n}};
    const Result<Flow> flow = simulate(p);
    REQUIRE(flow);
    INFO(n << " in flight");
    CHECK(flow->units_per_s.value ==
          Approx(closed_rate(n, think.time.mean, serve.time.mean)).epsilon(0.02));
  }
}

TEST_CASE("loop: none is faster than the operational laws allow") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Pipeline p = random_loop(random, static_cast<Late>(seed % 3));
    if (p.loop->late != Late::kAbandoned && random.below(2) == 0)
      p.host = Host{.cores = 4, .loaded = 0.8, .smt = 1.1, .pinned = random.below(2) == 0};
    INFO("seed " << seed);
    const Result<Flow> flow = simulate(p);
    INFO((flow ? "" : to_string(flow.error())));
    REQUIRE(flow);
    const Limit tightest = limits_of(p).front();
    INFO(to_string(p, tightest));
    const double slack = 0.05 + 3 * (flow->units_per_s.high / flow->units_per_s.value - 1);
    CHECK(flow->units_per_s.value <= tightest.units_per_s * (1 + slack));
    CHECK(flow->filled <= 1);
    CHECK((p.loop->quorum || flow->filled == 1));
    for (const double busy : flow->busy) CHECK(busy <= 1 + 1e-9);
  }
}

TEST_CASE("loop: steps of half the length come twice as often on the same machine") {
  // What a machine does to threads is told by its own numbers, not by those of a workload.
  for (const std::uint32_t threads : {1U, 48U, 128U, 256U}) {
    const auto rate = [&](double us) {
      Stage s{.name = "environment", .workers = threads, .ordered = false};
      s.time.mean = Seconds::us(us);
      const Pipeline p{.host = Host{.cores = 128, .loaded = 0.73, .smt = 1.07}, .stages = {s}};
      return simulate(p)->units_per_s.value;
    };
    CHECK(rate(227.275) == Approx(2 * rate(454.55)).epsilon(1e-3));
    CHECK(rate(1000) / rate(454.55) == Approx(0.45455).epsilon(1e-3));
  }
}

}  // namespace
}  // namespace rehearse
