// Stores: streams of keys, what caches do to them, closed forms, mistakes.
#include <cmath>
#include <set>

#include <catch2/catch.hpp>

#include "models/store/cache.h"
#include "models/store/graph.h"
#include "models/store/prefetch.h"
#include "models/store/read_cache.h"
#include "models/store/zipf.h"
#include "sim/base/text.h"
#include "tests/support/data.h"
#include "tests/support/pages.h"

namespace rehearse {
namespace {

using namespace store;
using Catch::Contains;

KeyStream stream_of(std::string_view text) {
  Result<KeyStream> stream = recorded_keys(text, "keys");
  INFO((stream ? "" : to_string(stream.error())));
  REQUIRE(stream);
  return std::move(*stream);
}

// The page states a stream, and per policy what comes out:
//   ```keys      then  ```policies
//   1 2 3              lru 2: hits 1, reads 5
TEST_CASE("store: the worked examples of the page give the stated results") {
  const auto blocks = test::blocks_of(test::source_file("docs/concepts/store.md"));
  std::size_t checked = 0;
  for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
    if (blocks[i].language != "keys" || blocks[i + 1].language != "policies") continue;
    const KeyStream stream = stream_of(test::join_lines(blocks[i].lines));
    for (const std::string& line : blocks[i + 1].lines) {
      char name[20];
      unsigned capacity = 0, batches = 0, hits = 0, reads = 0;
      INFO(line);
      const bool sees = std::sscanf(line.c_str(), "%19[a-z_] %u seeing %u: hits %u, reads %u", name,
                                    &capacity, &batches, &hits, &reads) == 5;
      if (!sees) {
        batches = kAllBatches;
        REQUIRE(std::sscanf(line.c_str(), "%19[a-z_] %u: hits %u, reads %u", name, &capacity, &hits,
                            &reads) == 4);
      }
      const auto* const policy = std::find(std::begin(kPolicyNames), std::end(kPolicyNames), name);
      REQUIRE(policy != std::end(kPolicyNames));
      const Result<Traffic> traffic =
          run(stream, {.policy = static_cast<Policy>(policy - std::begin(kPolicyNames)),
                       .capacity = capacity,
                       .batches = batches});
      REQUIRE(traffic);
      CHECK(traffic->accesses() - traffic->misses() == hits);
      CHECK(traffic->reads() == reads);
      ++checked;
    }
  }
  CHECK(checked >= 7);
}

TEST_CASE("store: the worked example of prefetching gives the stated results") {
  const auto blocks = test::blocks_of(test::source_file("docs/concepts/store.md"));
  std::size_t checked = 0;
  for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
    if (blocks[i].language != "keys" || blocks[i + 1].language != "prefetch") continue;
    const KeyStream stream = stream_of(test::join_lines(blocks[i].lines));
    for (const std::string& line : blocks[i + 1].lines) {
      INFO(line);
      unsigned sees = 0, ahead = 0, end = 0;
      char written[20];
      REQUIRE(std::sscanf(line.c_str(), "seeing %u, ahead %u, %19[a-z ]: %u ms", &sees, &ahead,
                          written, &end) == 4);
      const Result<Traffic> traffic =
          run(stream, {.policy = Policy::kLookAhead, .capacity = 2, .batches = sees});
      REQUIRE(traffic);
      Prefetch prefetch{.ahead = ahead, .step = Seconds::ms(10), .read = Seconds::ms(4)};
      if (std::string_view(written) == "written back") prefetch.write = Seconds::ms(12);
      const auto times = times_of(*traffic, prefetch);
      CHECK(times.back().step_end.ms() == Approx(end));
      CHECK(time_per_batch(times, 0).ms() == Approx(end / 4.0));
      ++checked;
    }
  }
  CHECK(checked == 4);
}

TEST_CASE(
    "store: runs are consecutive keys at random places, and runs of one key are uniform draws") {
  const Shape shape{.keys = 50, .batch = 20, .batches = 2000, .seed = 4};
  for (const bool backward : {false, true}) {
    const KeyStream stream = runs(shape, 5, backward);
    REQUIRE(stream.accesses.size() == 40'000);
    std::set<Key> firsts;
    for (std::size_t i = 0; i < stream.accesses.size(); i += 5) {
      const Key low = stream.accesses[backward ? i + 4 : i];
      for (Key k = 0; k < 5; ++k) REQUIRE(stream.accesses[i + (backward ? 4 - k : k)] == low + k);
      firsts.insert(low);
    }
    CHECK(firsts.size() == 46);  // 0 to 45: all of a run is among the keys
  }
  std::vector<int> count(50, 0);
  for (const Key key : runs(shape, 1, false).accesses) ++count[key];
  for (const int n : count) CHECK(n == Approx(800).margin(4 * std::sqrt(800.0)));
  CHECK(runs(shape, 50, false).accesses == sequential(shape, 1).accesses);
  CHECK(runs(shape, 50, true).accesses == sequential(shape, -1).accesses);
}

TEST_CASE("store: streams in turn keep their batches") {
  const KeyStream streams[] = {sequential({.keys = 9, .batch = 2, .batches = 2}, 1),
                               sequential({.keys = 9, .batch = 3, .batches = 1}, -1)};
  const KeyStream all = in_turn(streams);
  CHECK(all.accesses == std::vector<Key>{0, 1, 2, 3, 8, 7, 6});
  CHECK(all.ends == std::vector<std::uint32_t>{2, 4, 7});
}

TEST_CASE("store: epochs are ordered by common keys") {
  // Three epochs of 0 1 2 3: the first ends with 2 3, the third begins with 3 2, the second with
  // 0 1.
  const KeyStream epochs{
      .keys = 4, .accesses = {0, 1, 2, 3, 0, 1, 3, 2, 3, 2, 1, 0}, .ends = {4, 8, 12}};
  CHECK(reordered(epochs, 2).accesses == std::vector<Key>{0, 1, 2, 3, 3, 2, 1, 0, 0, 1, 3, 2});
  CHECK(reordered(epochs, 0).accesses == epochs.accesses);
  // Room for two: two hits more.
  CHECK(run(reordered(epochs, 2), {.capacity = 2})->misses() + 2 ==
        run(epochs, {.capacity = 2})->misses());
}

TEST_CASE("store: reading around reads half before the position") {
  const KeyStream backward = sequential({.keys = 960, .batch = 960, .batches = 1}, -1);
  const Result<Traffic> around = run(backward, {.capacity = 64, .readahead = 32, .around = true});
  // 16 of 32 units precede it; those after it are cached already.
  CHECK(around->misses() == Approx(960 / 17.0).margin(1));
  CHECK(around->reads() == 960);
}

TEST_CASE("store: reads wait for the write-back of evicted units") {
  // Room for one: 1 leaves in the first batch for 2, 2 in the second for 1, and so on.
  const Result<Traffic> traffic = run(stream_of("1 2\n1\n2\n3\n1\n"), {.capacity = 1});
  REQUIRE(traffic);
  const std::vector<std::optional<std::uint32_t>> expected = {{}, 0, 1, {}, 2};
  for (std::size_t b = 0; b < expected.size(); ++b) CHECK(traffic->batches[b].after == expected[b]);
}

TEST_CASE("store: a readahead of r turns r reads in order into one request") {
  const KeyStream forward = sequential({.keys = 960, .batch = 960, .batches = 1}, 1);
  const KeyStream backward = sequential({.keys = 960, .batch = 960, .batches = 1}, -1);
  CHECK(run(forward, {.capacity = 64, .readahead = 32})->misses() == 30);
  CHECK(run(forward, {.capacity = 64, .readahead = 32})->reads() == 960);
  CHECK(run(backward, {.capacity = 64, .readahead = 32})->misses() == 960);
  CHECK(run(forward, {.capacity = 64})->misses() == 960);
}

TEST_CASE("store: fresh permutations agree with the closed forms") {
  // The cache holds the share b of the keys: docs/concepts/store.md.
  const auto hits_lru = [](double b) { return b + (1 - b) * std::log1p(-b); };
  const auto misses_next_use = [](double b) { return 1 - b; };
  for (const double b : {0.1, 0.3, 0.5, 0.8, 0.96}) {
    INFO("share " << b);
    constexpr std::uint32_t kKeys = 20'000, kBatch = 100;
    const KeyStream stream = epoch_permutations({.keys = kKeys, .batch = kBatch, .batches = 6});
    const auto capacity = static_cast<std::uint32_t>(b * kKeys);
    const std::size_t second = kKeys / kBatch;
    const Result<Traffic> lru = run(stream, {.capacity = capacity});
    CHECK(lru->hit_ratio(second) == Approx(hits_lru(b)).margin(0.01));
    const Result<Traffic> known = run(stream, {.policy = Policy::kNextUse, .capacity = capacity});
    // The last epoch has nothing to keep for, and serves as well.
    CHECK(1 - known->hit_ratio(second) == Approx(misses_next_use(b)).margin(0.01));
  }
}

TEST_CASE("store: draws follow Zipf's law") {
  for (const double exponent : {0.0, 0.6, 1.0, 1.2}) {
    INFO("exponent " << exponent);
    constexpr std::uint32_t kKeys = 5000, kDraws = 200'000;
    const KeyStream stream = zipf_stream({.keys = kKeys, .batch = kDraws, .batches = 1}, exponent);
    for (const std::uint32_t top : {1U, 10U, 500U, 4999U}) {
      const auto drawn = std::count_if(stream.accesses.begin(), stream.accesses.end(),
                                       [&](Key key) { return key < top; });
      const double share = zipf_share(kKeys, exponent, top);
      const double deviation = std::sqrt(share * (1 - share) / kDraws);
      CHECK(static_cast<double>(drawn) / kDraws == Approx(share).margin(4 * deviation));
    }
  }
  // By hand: of 1 + 1/2 + 1/3 the first has 6/11.
  CHECK(zipf_share(3, 1, 1) == Approx(6.0 / 11));
  // Beyond a thousand keys by a formula; here the sum itself.
  double top = 0, all = 0;
  for (int k = 1; k <= 50'000; ++k) (k <= 2000 ? top : all) += std::pow(k, -0.8);
  CHECK(zipf_share(50'000, 0.8, 2000) == Approx(top / (top + all)).epsilon(1e-9));
}

TEST_CASE("store: the exponent follows from the share of popular keys") {
  // 1 % of 3.38 million rows with 92 % of the accesses.
  const Result<double> exponent = zipf_exponent(3'380'000, 0.01, 0.92);
  REQUIRE(exponent);
  CHECK(*exponent == Approx(1.19).margin(0.01));
  CHECK(zipf_share(3'380'000, *exponent, 33'800) == Approx(0.92).epsilon(1e-6));
  CHECK_THAT(to_string(zipf_exponent(1000, 0.5, 0.2).error()), Contains("no exponent"));
  CHECK_THAT(to_string(zipf_exponent(1000, 0, 0.2).error()), Contains("shares above 0"));
}

TEST_CASE("store: a sampled graph gives each node of a batch once, the same every time") {
  const Shape shape{.keys = 2000, .batch = 20, .batches = 30, .seed = 5};
  const Neighbours graph({.keys = 2000, .degree = 12, .exponent = 0.8, .seed = 5});
  const std::vector<std::uint32_t> fan_out = {5, 3};
  const KeyStream stream = sampled_keys(graph, shape, fan_out);
  CHECK(stream.accesses == sampled_keys(graph, shape, fan_out).accesses);
  std::size_t largest = 0;
  for (std::size_t b = 0; b < stream.batches(); ++b) {
    const auto batch = stream.batch(b);
    largest = std::max(largest, batch.size());
    REQUIRE(std::set<Key>(batch.begin(), batch.end()).size() == batch.size());
  }
  CHECK(largest <= 20 * (1 + 5 + 15));
  CHECK(largest > 100);
  // Popular nodes are reached from most batches.
  std::size_t with_most_popular = 0;
  for (std::size_t b = 0; b < stream.batches(); ++b)
    for (const Key key : stream.batch(b)) with_most_popular += key == 0;
  CHECK(with_most_popular > 25);
}

TEST_CASE("store: items fill pages without gaps") {
  const KeyStream items = stream_of("0 1 2 3 4\n7\n");  // numbered 0 to 5
  // 8 items of 512 B on a page of 4 KiB.
  CHECK(pages_of(items, Bytes::b(512), Bytes::kib(4))->accesses ==
        std::vector<Key>{0, 0, 0, 0, 0, 0});
  // Items of 3 B on pages of 4 B: 0 on page 0, 1 on 0 and 1, 2 on 1 and 2, 3 on 2, …
  const Result<KeyStream> pages = pages_of(items, Bytes::b(3), Bytes::b(4));
  REQUIRE(pages);
  CHECK(pages->accesses == std::vector<Key>{0, 0, 1, 1, 2, 2, 3, 3, 4});
  CHECK(pages->ends == std::vector<std::uint32_t>{7, 9});
  CHECK(pages->keys == 5);
  CHECK_THAT(to_string(pages_of(items, Bytes::b(0), Bytes::b(4)).error()), Contains("1 GiB"));
  const KeyStream many{.keys = 4'000'000'000};
  CHECK_THAT(to_string(pages_of(many, Bytes::kib(4), Bytes::b(1)).error()), Contains("2^32"));
}

TEST_CASE("store: renaming and thinning a stream keep its counts") {
  const KeyStream stream = stream_of("5 5 6 5\n6 5\n\n7\n");
  CHECK(stream.batches() == 3);
  CHECK(stream.keys == 3);
  CHECK(unique_in_batches(stream).accesses == std::vector<Key>{0, 1, 1, 0, 2});
  const KeyStream renamed = scattered(stream, 3);
  CHECK(run(renamed, {.capacity = 2})->misses() == run(stream, {.capacity = 2})->misses());
}

TEST_CASE("store: mistakes are one line") {
  CHECK_THAT(to_string(recorded_keys("1 2\n3 x4\n", "k.txt").error()),
             Contains("k.txt:2: 'x4' is not a key"));
  CHECK_THAT(to_string(recorded_keys("1 -2\n", "k.txt").error()), Contains("'-2' is not a key"));
  CHECK_THAT(to_string(recorded_keys("\n \n", "k.txt").error()), Contains("holds no keys"));
  const KeyStream stream = stream_of("1 2\n");
  CHECK_THAT(to_string(run(stream, {.policy = Policy::kLfu, .readahead = 2}).error()),
             Contains("readahead of 2 with the policy lfu"));
  CHECK_THAT(to_string(run(stream, {.readahead = 0}).error()), Contains("readahead of 0"));
  // Nothing in, nothing out.
  CHECK(run(KeyStream{.keys = 3}, {.policy = Policy::kStatic})->hit_ratio() == 0);
}

}  // namespace
}  // namespace rehearse
