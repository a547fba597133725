#include "tests/support/naive_store.h"

#include <algorithm>
#include <map>
#include <set>

namespace rehearse::test {
namespace {

using namespace store;

constexpr std::uint64_t kNever = ~std::uint64_t{0};

struct Run {
  const KeyStream& stream;
  const Cache& cache;
  Traffic traffic = {};
  std::vector<std::size_t> batch_of = {};  // of each position
  std::vector<Key> held = {};              // the one accessed or taken in longest ago first
  std::map<Key, std::size_t> count = {};   // of what is held
  std::map<Key, std::size_t> left = {};
  std::size_t now = 0;          // batch
  std::size_t filled = kNever;  // first batch of the window that the cache was filled for

  BatchTraffic& at() { return traffic.batches[now]; }
  bool holds(Key key) const { return std::find(held.begin(), held.end(), key) != held.end(); }
  void forget(Key key) {
    held.erase(std::find(held.begin(), held.end(), key));
    count.erase(key);
  }
  void leave(Key key) {
    ++at().leaves;
    left[key] = now;
  }
  void wait_for(Key key) {
    if (!left.contains(key) || left[key] == now) return;
    const auto batch = static_cast<std::uint32_t>(left[key]);
    at().after = std::max(at().after.value_or(0), batch);
  }
  void read(Key key) {
    ++at().reads;
    wait_for(key);
  }
  /// The next access of a key at or behind a position, before `end`.
  std::uint64_t next(Key key, std::size_t from, std::size_t end) const {
    for (std::size_t i = from; i < end; ++i)
      if (stream.accesses[i] == key) return i;
    return kNever;
  }
  std::size_t end_of_batch(std::uint64_t batch) const {
    return stream.ends[std::min<std::uint64_t>(batch, stream.batches() - 1)];
  }

  void back_looking(std::size_t i) {
    const Key key = stream.accesses[i];
    if (holds(key)) {
      held.erase(std::find(held.begin(), held.end(), key));
      held.push_back(key);
      ++count[key];
      return;
    }
    ++at().misses;
    read(key);
    std::vector<Key> coming;
    for (std::uint64_t k = std::uint64_t{key} + cache.readahead - 1; k > key; --k)
      if (k < stream.keys && !holds(static_cast<Key>(k))) {
        read(static_cast<Key>(k));
        coming.push_back(static_cast<Key>(k));
      }
    coming.push_back(key);
    for (const Key k : coming) {
      if (cache.policy == Policy::kLfu && held.size() == cache.capacity && !held.empty()) {
        const Key out = *std::min_element(held.begin(), held.end(),
                                          [&](Key a, Key b) { return count[a] < count[b]; });
        forget(out);
        leave(out);
      }
      held.push_back(k);
      count[k] = 1;
      if (held.size() > cache.capacity) {
        const Key out = held.front();
        forget(out);
        leave(out);
      }
    }
  }

  void fixed(std::size_t i) {
    if (i == 0) {
      std::vector<std::pair<std::size_t, Key>> order;
      for (Key key = 0; key < stream.keys; ++key) {
        const auto n = std::count(stream.accesses.begin(), stream.accesses.end(), key);
        if (n > 0) order.emplace_back(stream.accesses.size() - static_cast<std::size_t>(n), key);
      }
      std::sort(order.begin(), order.end());
      order.resize(std::min<std::size_t>(order.size(), cache.capacity));
      for (const auto& [rarity, key] : order) held.push_back(key);
      at().fills = held.size();
    }
    const Key key = stream.accesses[i];
    if (holds(key)) return;
    ++at().misses;
    read(key);
    leave(key);
  }

  void look_ahead(std::size_t i) {
    const Key key = stream.accesses[i];
    if (!holds(key)) {
      ++at().misses;
      read(key);
    }
    const bool wanted =
        next(key, i + 1, end_of_batch(std::uint64_t{now} + cache.batches)) != kNever;
    if (holds(key) && !wanted) forget(key);
    if (!holds(key) && wanted && held.size() < cache.capacity) held.push_back(key);
    if (!holds(key)) leave(key);
  }

  void belady(std::size_t i) {
    const std::uint64_t step = std::max(cache.batches, 1U);
    const std::size_t end = end_of_batch(now / step * step + step - 1);
    if (const std::size_t window = now / step * step; window != filled) {
      const std::size_t batch = std::exchange(now, window);
      filled = window;
      held.clear();
      for (std::size_t j = i; j < end && held.size() < cache.capacity; ++j)
        if (const Key key = stream.accesses[j]; !holds(key)) {
          held.push_back(key);
          ++at().fills;
          wait_for(key);
        }
      traffic.peak = std::max(traffic.peak, static_cast<std::uint32_t>(held.size()));
      now = batch;
    }
    const Key key = stream.accesses[i];
    if (!holds(key)) {
      ++at().misses;
      read(key);
      held.push_back(key);
    }
    // What the window does not access again goes at once; else, without room, what is furthest.
    if (next(key, i + 1, end) == kNever) {
      forget(key);
      leave(key);
    } else if (held.size() > cache.capacity) {
      const Key out = *std::max_element(held.begin(), held.end(), [&](Key a, Key b) {
        return next(a, i + 1, end) < next(b, i + 1, end);
      });
      forget(out);
      leave(out);
    }
  }

  void next_use(std::size_t i) {
    const Key key = stream.accesses[i];
    const std::size_t end = end_of_batch(std::uint64_t{now} + cache.batches);
    if (holds(key)) {
      forget(key);
    } else {
      ++at().misses;
      read(key);
    }
    held.push_back(key);
    if (held.size() <= cache.capacity) return;
    // The first of those that are not seen again, which is the one accessed longest ago.
    const Key out = *std::max_element(held.begin(), held.end(), [&](Key a, Key b) {
      return next(a, i + 1, end) < next(b, i + 1, end);
    });
    forget(out);
    leave(out);
  }
};

std::uint32_t least_from(const KeyStream& stream, std::uint32_t capacity, std::size_t at,
                         const std::set<Key>& held) {
  if (at == stream.accesses.size()) return 0;
  const Key key = stream.accesses[at];
  const std::uint32_t misses = held.contains(key) ? 0 : 1;
  std::set<Key> all = held;
  all.insert(key);
  std::uint32_t best = 0xffff'ffff;
  if (all.size() <= capacity)
    best = least_from(stream, capacity, at + 1, all);
  else
    for (const Key out : all) {
      std::set<Key> rest = all;
      rest.erase(out);
      best = std::min(best, least_from(stream, capacity, at + 1, rest));
    }
  return misses + best;
}

}  // namespace

Traffic naive_run(const KeyStream& stream, const Cache& cache) {
  Run run{.stream = stream, .cache = cache};
  run.traffic.batches.resize(stream.batches());
  for (std::size_t b = 0, i = 0; b < stream.batches(); ++b)
    for (run.now = b; i < stream.ends[b]; ++i) {
      ++run.at().accesses;
      switch (cache.policy) {
        case Policy::kLru:
        case Policy::kLfu:
          run.back_looking(i);
          break;
        case Policy::kStatic:
          run.fixed(i);
          break;
        case Policy::kLookAhead:
          run.look_ahead(i);
          break;
        case Policy::kBelady:
          run.belady(i);
          break;
        case Policy::kNextUse:
          run.next_use(i);
      }
      run.traffic.peak = std::max(run.traffic.peak, static_cast<std::uint32_t>(run.held.size()));
    }
  return run.traffic;
}

std::uint32_t least_misses(const KeyStream& stream, std::uint32_t capacity) {
  return least_from(stream, capacity, 0, {});
}

}  // namespace rehearse::test
