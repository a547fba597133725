// Properties of caches on random streams: against a reference that looks at everything, and against
// every possible policy.
#include <set>

#include <catch2/catch.hpp>

#include "models/store/cache.h"
#include "models/store/full_graph.h"
#include "models/store/prefetch.h"
#include "sim/base/random.h"
#include "tests/support/naive_store.h"

namespace rehearse::store {
namespace {

/// A few keys, batches of uneven sizes, some of them empty; half of the streams skewed.
KeyStream random_stream(Random& random, std::uint32_t most_keys, std::uint32_t most_accesses) {
  KeyStream stream{.keys = 1 + random.below(most_keys)};
  const std::uint32_t accesses = random.below(most_accesses + 1);
  const bool skewed = random.below(2) == 0;
  for (std::uint32_t i = 0; i < accesses; ++i) {
    const std::uint32_t below = skewed ? 1 + random.below(stream.keys) : stream.keys;
    stream.accesses.push_back(random.below(below));
    while (random.below(4) == 0) stream.ends.push_back(i + 1);
  }
  stream.ends.push_back(accesses);
  return stream;
}

void check_equal(const Traffic& got, const Traffic& expected) {
  REQUIRE(got.batches.size() == expected.batches.size());
  for (std::size_t b = 0; b < got.batches.size(); ++b) {
    INFO("batch " << b);
    const BatchTraffic &g = got.batches[b], &e = expected.batches[b];
    REQUIRE(g.accesses == e.accesses);
    REQUIRE(g.misses == e.misses);
    REQUIRE(g.reads == e.reads);
    REQUIRE(g.fills == e.fills);
    REQUIRE(g.leaves == e.leaves);
    REQUIRE(g.after == e.after);
  }
  REQUIRE(got.peak == expected.peak);
}

TEST_CASE("caches: every policy agrees with a naive one") {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    const KeyStream stream = random_stream(random, 12, 60);
    for (int policy = 0; policy < 6; ++policy) {
      Cache cache{.policy = static_cast<Policy>(policy), .capacity = random.below(10)};
      if (random.below(3) != 0) cache.batches = random.below(6);
      if (cache.policy == Policy::kLru && random.below(2) == 0)
        cache.readahead = 1 + random.below(5), cache.around = random.below(2) == 0;
      INFO("seed " << seed << " policy " << kPolicyNames[policy] << " capacity " << cache.capacity
                   << " batches " << cache.batches << " readahead " << cache.readahead);
      const Result<Traffic> got = run(stream, cache);
      REQUIRE(got);
      check_equal(*got, test::naive_run(stream, cache));
      REQUIRE(got->peak <= cache.capacity);
    }
  }
}

TEST_CASE("caches: batches read ahead are processed at the times of a naive simulation") {
  std::size_t waited = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    const KeyStream stream = random_stream(random, 10, 60);
    Cache cache{.policy = static_cast<Policy>(random.below(6)), .capacity = random.below(8)};
    cache.batches = random.below(4);
    const std::uint32_t ahead = random.below(5);
    const int step = 1 + static_cast<int>(random.below(6)), read = 1,
              write = 1 + static_cast<int>(random.below(3));
    INFO("seed " << seed << " policy " << kPolicyNames[static_cast<int>(cache.policy)]);
    const Result<Traffic> traffic = run(stream, cache);
    REQUIRE(traffic);
    const auto times = times_of(*traffic, {.ahead = ahead,
                                           .step = Seconds::ms(step),
                                           .read = Seconds::ms(read),
                                           .write = Seconds::ms(write)});
    const std::vector<int> expected =
        test::naive_step_ends(test::naive_moves(stream, cache), ahead, step, read, write);
    REQUIRE(times.size() == expected.size());
    for (std::size_t b = 0; b < times.size(); ++b) {
      REQUIRE(times[b].step_end.ms() == Approx(expected[b]));
      const auto after = traffic->batches[b].after;
      if (after) REQUIRE(times[b].read_begin >= times[*after].written);
    }
    // Where work changes nothing, nothing is waited for: no batch is later.
    const auto unchanged =
        times_of(*traffic, {.ahead = ahead, .step = Seconds::ms(step), .read = Seconds::ms(read)});
    REQUIRE(unchanged.back().step_end <= times.back().step_end);
    waited += unchanged.back().step_end < times.back().step_end;
  }
  CHECK(waited > 20);
}

TEST_CASE("caches: a policy that sees the whole stream misses least") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const KeyStream stream = random_stream(random, 5, 11);
    const std::uint32_t capacity = random.below(4);
    INFO("seed " << seed << " capacity " << capacity);
    const Result<Traffic> seen = run(stream, {.policy = Policy::kNextUse, .capacity = capacity});
    REQUIRE(seen);
    REQUIRE(seen->misses() == test::least_misses(stream, capacity));
    // Filled beforehand, the cache reads as much, some of it earlier.
    const Result<Traffic> filled = run(stream, {.policy = Policy::kBelady, .capacity = capacity});
    REQUIRE(filled->reads() == seen->reads());
  }
}

TEST_CASE("caches: a prefetch as early as the look-ahead never waits for a write-back") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const KeyStream stream = random_stream(random, 12, 80);
    const std::uint32_t ahead = random.below(5);
    INFO("seed " << seed << " ahead " << ahead);
    const Result<Traffic> traffic =
        run(stream, {.policy = Policy::kLookAhead, .capacity = stream.keys, .batches = ahead});
    REQUIRE(traffic);
    for (std::size_t b = 0; b < traffic->batches.size(); ++b)
      if (const auto after = traffic->batches[b].after) REQUIRE(*after + ahead < b);
  }
}

TEST_CASE("caches: more room never misses more if the eviction order does not depend on it") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const KeyStream stream = random_stream(random, 30, 300);
    for (const Policy policy : {Policy::kLru, Policy::kStatic, Policy::kNextUse}) {
      std::uint64_t before = stream.accesses.size();
      for (std::uint32_t capacity = 0; capacity <= 30; ++capacity) {
        const std::uint64_t misses =
            run(stream, {.policy = policy, .capacity = capacity})->misses();
        REQUIRE(misses <= before);
        before = misses;
      }
    }
  }
}

/// Up to `most` keys. Each reads up to five, some twice, some itself.
Neighbours random_graph(Random& random, std::uint32_t most) {
  const std::uint32_t keys = 1 + random.below(most);
  std::vector<std::uint32_t> ends;
  std::vector<Key> all = {random.below(keys)};
  for (Key key = 0; key < keys; ++key) {
    for (std::uint32_t j = random.below(6); j > 0; --j) all.push_back(random.below(keys));
    ends.push_back(static_cast<std::uint32_t>(all.size()));
  }
  return Neighbours(std::move(ends), std::move(all));
}

TEST_CASE(
    "graphs: halos of any partition are those of a search, and what is sent adds up to them") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const Neighbours graph = random_graph(random, 40);
    const std::uint32_t workers = 1 + random.below(6);
    const Partition made = partition(graph, static_cast<Partitioner>(random.below(3)), workers);
    const Halo halo = halo_of(graph, made);
    std::set<std::pair<std::uint32_t, Key>> missing;
    std::uint64_t cut = 0;
    for (Key key = 0; key < graph.keys(); ++key) {
      REQUIRE(made.holder[key] < workers);
      for (std::uint32_t j = 0; j < graph.degree(key); ++j)
        if (made.holder[graph.of(key, j)] != made.holder[key])
          missing.emplace(made.holder[key], graph.of(key, j)), ++cut;
    }
    REQUIRE(halo.total() == missing.size());
    REQUIRE(halo.cut == cut);
    REQUIRE(double(halo.edges) == graph.edges());
    const GraphNetwork network{.widths = {1 + random.below(9), 1 + random.below(9), 2}};
    const program::Program job = full_graph_step(halo, network);
    double sent = 0, received = 0;
    for (const program::RankProgram& program : job.programs)
      for (const program::ProgramOp& op : program.ops) {
        if (op.task == program::Task::kSend) sent += op.bytes.b();
        if (op.task == program::Task::kReceive) received += op.bytes.b();
      }
    REQUIRE(sent == exchanged(halo, network).b());
    REQUIRE(received == sent);
  }
}

}  // namespace
}  // namespace rehearse::store
