// Properties of an inference server, on random rules and loads.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/serving/run.h"
#include "tests/support/linear_pricer.h"
#include "tests/support/naive_server.h"

namespace rehearse::serving {
namespace {

struct Setting {
  Rules rules;
  std::vector<Request> requests;
  RunOptions options;
  std::size_t replicas = 1;
  Routing routing = Routing::kRoundRobin;
};

/// Small servers, so that rows, tokens and blocks all run out. Half of the loads have priorities and deadlines.
Setting random_setting(std::uint64_t seed) {
  Random random(seed);
  const auto between = [&](std::int64_t a, std::int64_t b) {
    return a + static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(b - a + 1)));
  };
  Setting s;
  s.rules = {.tokens_per_step = between(8, 64),
             .most_rows = between(1, 9),
             .chunked = random.below(3) > 0,
             .order = static_cast<Order>(random.below(2)),
             .overlapped = random.below(2) > 0,
             .receive_interval = between(1, 3),
             .blocks = between(12, 40),
             .block_tokens = between(1, 2) * 4,
             .prefix_cache = random.below(2) > 0};
  s.rules.prefix_tokens = s.rules.block_tokens * between(1, 2);
  if (random.below(2) > 0) {
    s.rules.reserve = random.below(2) > 0 ? 1 : 0.5;
    s.rules.least_reserve = s.rules.reserve == 1 ? 1 : 0.125;
    s.rules.reserve_decay = 1.0 / 64;  // exact in binary, for the naive server
  }
  Picoseconds at{0};
  for (std::int64_t n = between(1, 30); n > 0; --n) {
    Request request{.planned = at,
                    .input = between(1, std::min<std::int64_t>(24, s.rules.tokens_per_step)),
                    .output = between(1, 24)};
    const std::uint64_t family = random.below(3);
    for (std::int64_t i = 0; i < request.input / s.rules.prefix_tokens; ++i)
      request.prefix.push_back(i < 2 ? family * 100 + static_cast<std::uint64_t>(i)
                                     : random.next());
    s.requests.push_back(request);
    at += Picoseconds::from(Seconds::ms(5 * random.exponential()));
  }
  for (std::int64_t n = random.below(3) > 0 ? 0 : between(1, 4); n > 0; --n)
    s.rules.drafts.push_back(0.25 * static_cast<double>(between(0, 4)));
  s.options.most_in_flight = between(0, 6);
  for (std::int64_t n = between(0, 2); n > 0; --n)
    s.rules.tiers.push_back({.blocks = between(0, 20),
                             .block = Seconds::us(100 * static_cast<double>(between(0, 20))),
                             .latency = Seconds::us(100 * static_cast<double>(between(0, 5)))});
  s.rules.writes_through = random.below(2) > 0;
  if (random.below(2) > 0) return s;
  s.rules.by_priority = random.below(2) > 0;
  s.rules.drops = random.below(2) > 0;
  for (Request& request : s.requests) {
    request.priority = static_cast<std::int32_t>(between(-1, 1));
    if (random.below(2) > 0)
      request.deadline = Picoseconds::from(Seconds::ms(2.0 + random.below(59)));
  }
  return s;
}

/// The same with conversations that fit into its blocks.
Setting random_conversations(std::uint64_t seed) {
  Setting s = random_setting(seed);
  Random random(seed + 5000);
  for (std::size_t i = 0; i < s.requests.size(); ++i) {
    Request& request = s.requests[i];
    request.think = Picoseconds::from(Seconds::ms(4 * random.exponential()));
    if (i == 0 || random.below(3) == 0) continue;
    const Request& before = s.requests[i - 1];
    const std::int64_t input = before.input + before.output + 1 + random.below(6);
    if (blocks_for(input + request.output, s.rules.block_tokens) > s.rules.blocks ||
        (!s.rules.chunked && input > s.rules.tokens_per_step))
      continue;
    request.input = input;
    request.follows = true;
  }
  return s;
}

const test::LinearPricer kPricer = [] {
  test::LinearPricer pricer;
  pricer.token = Seconds::us(50);
  pricer.row = Seconds::us(100);
  pricer.cached = Seconds::us(3);
  pricer.host = Seconds::ms(1.2);
  pricer.request_time = {.serial = Seconds::us(20), .latency = Seconds::ms(0.3)};
  return pricer;
}();

TEST_CASE("equal decode steps that run together change nothing") {
  std::size_t together = 0, dropped = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    INFO("seed " << seed);
    Setting s = seed <= 400 ? random_setting(seed) : random_conversations(seed);
    s.rules.drafts.clear();  // steps with drafts never run together
    for (Request& request : s.requests) request.output *= 1 + static_cast<std::int64_t>(seed % 3);
    s.rules.blocks *= 1 + static_cast<std::int64_t>(seed % 3);
    const Result<Run> fast = run(s.rules, kPricer, s.requests, s.options);
    s.options.single = true;
    const Result<Run> slow = run(s.rules, kPricer, s.requests, s.options);
    REQUIRE(fast);
    REQUIRE(slow);
    CHECK(fast->served == slow->served);
    const auto sorted = [](Gaps gaps) {
      std::sort(gaps.begin(), gaps.end());
      Gaps merged;
      for (const auto& [gap, count] : gaps)
        if (!merged.empty() && merged.back().first == gap)
          merged.back().second += count;
        else
          merged.emplace_back(gap, count);
      return merged;
    };
    CHECK(sorted(fast->gaps) == sorted(slow->gaps));
    CHECK(fast->steps.size() <= slow->steps.size());
    together += slow->steps.size() - fast->steps.size();
    for (const Served& r : fast->served) dropped += r.dropped;
  }
  CHECK(together > 1000);
  CHECK(dropped > 100);
}

TEST_CASE("a server written for clarity forms the same steps") {
  std::size_t preempted = 0, by_priority = 0, dropped = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    INFO("seed " << seed);
    Setting s = random_setting(seed);
    s.rules.prefix_cache = false;
    s.rules.overlapped = false;  // so that a deadline is between the same steps
    s.rules.tiers.clear();
    for (double& chance : s.rules.drafts) chance = 1;  // as the naive server accepts
    for (Request& request : s.requests) request.planned = Picoseconds(0);
    test::LinearPricer pricer;
    const Result<Run> fast =
        run(s.rules, pricer, s.requests, {.most_in_flight = 0, .single = true});
    REQUIRE(fast);
    const test::NaiveRun naive = test::naive_server(s.rules, s.requests);
    REQUIRE(fast->steps.size() == naive.steps.size());
    std::int64_t lost = 0;
    for (std::size_t i = 0; i < naive.steps.size(); ++i) {
      INFO("step " << i);
      const Step& step = naive.steps[i];
      std::int64_t tokens = 0;
      for (const PrefillChunk& chunk : step.prefill) tokens += chunk.new_tokens;
      REQUIRE(fast->steps[i].decode_rows == step.decode_rows);
      REQUIRE(fast->steps[i].drafted == step.drafted);
      REQUIRE(fast->steps[i].prompts == static_cast<std::int64_t>(step.prefill.size()));
      REQUIRE(fast->steps[i].prompt_tokens == tokens);
      lost += fast->steps[i].preempted;
    }
    CHECK(lost == naive.preempted);
    CHECK(std::ranges::count_if(fast->served, &Served::dropped) == naive.dropped);
    preempted += static_cast<std::size_t>(lost);
    if (s.rules.by_priority) by_priority += static_cast<std::size_t>(lost);
    dropped += static_cast<std::size_t>(naive.dropped);
  }
  CHECK(preempted > 100);
  CHECK(by_priority > 50);
  CHECK(dropped > 100);
}

TEST_CASE("requests, tokens and blocks are conserved") {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    INFO("seed " << seed);
    const Setting s = seed <= 400 ? random_setting(seed) : random_conversations(seed);
    const Result<Run> r = run(s.rules, kPricer, s.requests, s.options);
    REQUIRE(r);
    std::int64_t gaps = 0, tokens = 0, preempted = 0, prompts = 0;
    for (const auto& [gap, count] : r->gaps) gaps += count;
    for (const Served& q : r->served) {
      CHECK(q.sent <= q.queued);
      CHECK(q.reused < q.input);
      if (q.dropped) {
        CHECK(s.rules.drops);
        CHECK(q.last >= q.sent + q.deadline);
        tokens += std::max<std::int64_t>(q.output - 1, 0);
        if (q.output > 0) prompts += q.input - q.reused;
        continue;
      }
      CHECK(q.queued <= q.scheduled);
      CHECK(q.scheduled < q.first);
      CHECK((q.output == 1 ? q.first == q.last : q.first < q.last));
      CHECK(q.reused < q.input);
      CHECK(q.loaded <= q.reused);
      tokens += q.output - 1;
      prompts += q.input - q.reused;
    }
    const bool dropped = std::ranges::any_of(r->served, &Served::dropped);
    CHECK((s.rules.drafts.empty() ? gaps == tokens : gaps <= tokens));
    std::int64_t computed = 0;
    Picoseconds end{0};
    for (const StepRun& step : r->steps) {
      CHECK(step.start >= end);
      CHECK(step.held <= s.rules.blocks);
      CHECK(step.running <= s.rules.most_rows);
      CHECK(step.prompt_tokens + step.decode_rows + step.drafted <= s.rules.tokens_per_step);
      // A preempted request that finds all but one of its tokens cached returns as a decode row.
      if (s.rules.order == Order::kPromptsApart && !s.rules.prefix_cache)
        CHECK((step.prompts == 0 || step.decode_rows == 0));
      if (s.rules.least_reserve == 1) CHECK(step.preempted == 0);
      computed += step.prompt_tokens;
      preempted += step.preempted;
      end = step.start + step.each * step.steps;
    }
    if (preempted == 0 && !dropped)
      CHECK(computed == prompts);
    else
      CHECK(computed >= prompts);
    if (!dropped) CHECK(r->steps.back().held == 0);
    for (std::size_t i = 0; i < r->served.size(); ++i) {
      const Picoseconds planned = s.requests[i].planned;
      if (s.requests[i].follows)  // a turn is sent when its user has thought, and not before
        CHECK(r->served[i].sent == std::max(planned, r->served[i - 1].last + s.requests[i].think));
      else if (s.options.most_in_flight == 0)
        CHECK(r->served[i].sent == planned);
    }
    for (const Served& q : r->served) {
      const auto in_flight = std::count_if(
          r->served.begin(), r->served.end(),
          [&](const Served& other) { return other.sent <= q.sent && q.sent < other.last; });
      if (s.options.most_in_flight > 0) CHECK(in_flight <= s.options.most_in_flight);
    }
  }
}

TEST_CASE("turns find all full blocks of their conversation in a cache that holds it") {
  std::size_t turns = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Setting s = random_conversations(seed);
    s.rules.prefix_cache = true;
    s.rules.drops = false;
    s.rules.drafts.clear();
    s.rules.blocks = 100'000;
    for (Request& request : s.requests) request.prefix.clear();
    const Result<Run> r = run(s.rules, kPricer, s.requests, s.options);
    REQUIRE(r);
    for (std::size_t i = 0; i < r->served.size(); ++i) {
      if (!s.requests[i].follows) {
        CHECK(r->served[i].reused == 0);
        continue;
      }
      // The last token of an answer is never computed: it is the first new one of the next turn's step.
      const std::int64_t known = s.requests[i - 1].input + s.requests[i - 1].output - 1;
      const std::int64_t part = s.rules.prefix_tokens;
      CHECK(r->served[i].reused == known / part * part);
      ++turns;
    }
  }
  CHECK(turns > 500);
}

TEST_CASE("replicas in turn are servers with every n-th request each") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Setting s = random_setting(seed);
    s.rules.drafts.clear();  // what is accepted depends on a request's number
    s.options.most_in_flight = 0;
    s.replicas = 1 + seed % 4;
    // Without the client's serial time the requests of one replica do not delay those of another.
    test::LinearPricer pricer = kPricer;
    pricer.request_time.serial = Seconds::s(0);
    const Result<std::vector<Run>> runs =
        run_replicas({s.rules, pricer, s.replicas, s.routing}, s.requests, s.options);
    REQUIRE(runs);
    for (std::size_t i = 0; i < s.replicas; ++i) {
      std::vector<Request> own;
      for (std::size_t k = i; k < s.requests.size(); k += s.replicas) own.push_back(s.requests[k]);
      const Result<Run> alone = run(s.rules, pricer, own, {.most_in_flight = 0});
      REQUIRE(alone);
      CHECK(runs->at(i).served == alone->served);
      CHECK(runs->at(i).gaps == alone->gaps);
    }
  }
}

TEST_CASE("a router loses no request, and one replica needs none") {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    INFO("seed " << seed);
    Setting s = seed <= 300 ? random_setting(seed) : random_conversations(seed);
    s.routing = static_cast<Routing>(seed % std::size(kRoutingNames));
    const Result<std::vector<Run>> one =
        run_replicas({s.rules, kPricer, s.replicas, s.routing}, s.requests, s.options);
    REQUIRE(one);
    CHECK(one->at(0).served ==
          run(s.rules, kPricer, s.requests, {.most_in_flight = s.options.most_in_flight})->served);
    s.replicas = 2 + seed % 3;
    const Result<std::vector<Run>> fast =
        run_replicas({s.rules, kPricer, s.replicas, s.routing}, s.requests, s.options);
    s.options.single = true;
    const Result<std::vector<Run>> slow =
        run_replicas({s.rules, kPricer, s.replicas, s.routing}, s.requests, s.options);
    REQUIRE(fast);
    REQUIRE(slow);
    std::vector<Served> all;
    for (std::size_t i = 0; i < fast->size(); ++i) {
      CHECK(fast->at(i).served == slow->at(i).served);
      all.insert(all.end(), fast->at(i).served.begin(), fast->at(i).served.end());
      if (!fast->at(i).steps.empty() && !s.rules.drops) CHECK(fast->at(i).steps.back().held == 0);
    }
    REQUIRE(all.size() == s.requests.size());
    const auto tokens = [](std::int64_t sum, const auto& r) {
      return sum + r.input + 1000 * r.output;
    };
    if (!s.rules.drops)
      CHECK(std::accumulate(all.begin(), all.end(), std::int64_t{0}, tokens) ==
            std::accumulate(s.requests.begin(), s.requests.end(), std::int64_t{0}, tokens));
    for (const Served& q : all)
      if (s.options.most_in_flight > 0)
        CHECK(std::count_if(all.begin(), all.end(), [&](const Served& other) {
                return other.sent <= q.sent && q.sent < other.last;
              }) <= s.options.most_in_flight);
  }
}

Scaling random_scaling(std::uint64_t seed) {
  Random random(seed + 9000);
  const std::size_t least = 1 + random.below(3);
  Scaling scaling{.least = least,
                  .most = least + random.below(4),
                  .signal = static_cast<Signal>(random.below(4)),
                  .every = Seconds::ms(1 + random.below(30)),
                  .hold = Seconds::ms(random.below(60)),
                  .start = Seconds::ms(random.below(20))};
  const double targets[] = {2, 1, 0.5, 0.01};
  scaling.target = targets[static_cast<std::size_t>(scaling.signal)];
  return scaling;
}

TEST_CASE("a number of replicas that cannot change is a fixed one") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    const Setting s = random_setting(seed);
    Scaling scaling = random_scaling(seed);
    scaling.most = scaling.least;
    const Routing routing = static_cast<Routing>(seed % std::size(kRoutingNames));
    const auto fixed =
        run_replicas({s.rules, kPricer, scaling.least, routing}, s.requests, s.options);
    const auto scaled =
        run_replicas({s.rules, kPricer, 1, routing, scaling}, s.requests, s.options);
    REQUIRE(fixed);
    REQUIRE(scaled);
    REQUIRE(scaled->size() == fixed->size());
    for (std::size_t i = 0; i < fixed->size(); ++i) {
      CHECK(scaled->at(i).served == fixed->at(i).served);
      CHECK(scaled->at(i).gaps == fixed->at(i).gaps);
    }
  }
}

TEST_CASE("scaled replicas lose no request, keep their limits, and need no single steps") {
  std::size_t grown = 0, gone = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    INFO("seed " << seed);
    Setting s = random_setting(seed);
    for (Request& request : s.requests) request.output *= 1 + static_cast<std::int64_t>(seed % 3);
    s.rules.blocks *= 1 + static_cast<std::int64_t>(seed % 3);
    const Scaling scaling = random_scaling(seed);
    const Pool pool{s.rules, kPricer, 1, static_cast<Routing>(seed % std::size(kRoutingNames)),
                    scaling};
    const auto fast = run_replicas(pool, s.requests, s.options);
    s.options.single = true;
    const auto slow = run_replicas(pool, s.requests, s.options);
    REQUIRE(fast);
    REQUIRE(slow);
    REQUIRE(fast->size() == slow->size());
    std::size_t served = 0;
    for (std::size_t i = 0; i < fast->size(); ++i) {
      const Run& run = fast->at(i);
      CHECK(run.served == slow->at(i).served);
      CHECK(run.rented == slow->at(i).rented);
      CHECK(run.gone == slow->at(i).gone);
      served += run.served.size();
      if (!run.steps.empty() && !s.rules.drops) CHECK(run.steps.back().held == 0);
      std::size_t ready = 0;
      for (const Run& other : *fast)
        ready += other.ready <= run.ready && run.ready < other.gone && other.ready < other.gone;
      for (const Served& r : run.served) {
        CHECK(run.ready <= r.queued);
        CHECK(r.last <= run.gone);
      }
      if (run.ready < run.gone) CHECK(ready >= scaling.least);
      gone += run.gone < Picoseconds(1'000'000'000'000'000);
    }
    grown += fast->size() > scaling.least;
    CHECK(served == s.requests.size());
  }
  CHECK(grown > 50);
  CHECK(gone > 50);
}

}  // namespace
}  // namespace rehearse::serving
