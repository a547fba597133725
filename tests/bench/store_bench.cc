// Caches: accesses per second of each policy, compared with a pass over the same stream and with
// the usual implementation of lru (a list and a hash table).
#include <list>
#include <unordered_map>

#include <benchmark/benchmark.h>

#include "models/store/cache.h"
#include "sim/base/check.h"

namespace rehearse::bench {
namespace {

using namespace store;

constexpr std::uint32_t kKeys = 1'000'000, kCapacity = 100'000;

const KeyStream& stream() {
  static const KeyStream made =
      scattered(zipf_stream({.keys = kKeys, .batch = 10'000, .batches = 1000}, 0.9), 1);
  return made;
}

void rate(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(stream().accesses.size()));
}

void pass_over_stream(benchmark::State& state) {
  stream();
  for (auto _ : state) {
    std::uint64_t sum = 0;
    for (const Key key : stream().accesses) sum += key;
    benchmark::DoNotOptimize(sum);
  }
  rate(state);
}
BENCHMARK(pass_over_stream)->Name("store/pass")->Unit(benchmark::kMillisecond);

void list_and_table(benchmark::State& state) {
  stream();
  std::uint64_t misses = 0;
  for (auto _ : state) {
    misses = 0;
    std::list<Key> recent;
    std::unordered_map<Key, std::list<Key>::iterator> where;
    for (const Key key : stream().accesses) {
      if (const auto found = where.find(key); found != where.end()) {
        recent.splice(recent.begin(), recent, found->second);
        continue;
      }
      ++misses;
      recent.push_front(key);
      where[key] = recent.begin();
      if (recent.size() > kCapacity) {
        where.erase(recent.back());
        recent.pop_back();
      }
    }
  }
  REHEARSE_CHECK(misses == run(stream(), {.capacity = kCapacity})->misses(), "they disagree");
  rate(state);
}
BENCHMARK(list_and_table)->Name("store/list and table")->Unit(benchmark::kMillisecond);

void policy(benchmark::State& state, Policy which, std::uint32_t batches) {
  stream();
  for (auto _ : state) {
    const Result<Traffic> traffic =
        run(stream(), {.policy = which, .capacity = kCapacity, .batches = batches});
    benchmark::DoNotOptimize(traffic->misses());
  }
  rate(state);
}
BENCHMARK_CAPTURE(policy, lru, Policy::kLru, 0)->Name("store/lru")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(policy, lfu, Policy::kLfu, 0)->Name("store/lfu")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(policy, static, Policy::kStatic, 0)
    ->Name("store/static")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(policy, look_ahead_50, Policy::kLookAhead, 50)
    ->Name("store/look_ahead_50")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(policy, belady, Policy::kBelady, kAllBatches)
    ->Name("store/belady")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(policy, belady_window_100, Policy::kBelady, 100)
    ->Name("store/belady_window_100")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(policy, next_use_50, Policy::kNextUse, 50)
    ->Name("store/next_use_50")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::bench
