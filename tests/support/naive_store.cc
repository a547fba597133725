#include "tests/support/naive_store.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace rehearse::test {
namespace {

using namespace store;

constexpr std::uint64_t kNever = ~std::uint64_t{0};

struct Run {
  const KeyStream& stream;
  const Cache& cache;
  Traffic traffic = {};
  Moved moved = {};
  std::vector<std::size_t> batch_of = {};  // of each position
  std::vector<Key> held = {};              // the least recently accessed or loaded first
  std::map<Key, std::size_t> count = {};   // of held keys
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
    moved.left[now].push_back(key);
    left[key] = now;
  }
  void take(Key key) {
    moved.read[now].push_back(key);
    const std::vector<Key>& in_hand = moved.left[now];
    if (std::find(in_hand.begin(), in_hand.end(), key) == in_hand.end())
      moved.fresh[now].push_back(key);
  }
  void wait_for(Key key) {
    if (!left.contains(key) || left[key] == now) return;
    const auto batch = static_cast<std::uint32_t>(left[key]);
    at().after = std::max(at().after.value_or(0), batch);
  }
  void read(Key key) {
    ++at().reads;
    take(key);
    wait_for(key);
  }
  /// The next access of a key at or after a position, before `end`.
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
    const auto take_ahead = [&](std::int64_t k) {
      if (k < 0 || k >= stream.keys || holds(static_cast<Key>(k))) return;
      read(static_cast<Key>(k));
      coming.push_back(static_cast<Key>(k));
    };
    // If less than half of the readahead lies before the key, more of it lies after it.
    const std::int64_t at_key = key, units = cache.readahead;
    const std::int64_t first = std::max<std::int64_t>(at_key - (cache.around ? units / 2 : 0), 0);
    for (std::int64_t k = first; k < at_key; ++k) take_ahead(k);
    for (std::int64_t k = first + units - 1; k > at_key; --k) take_ahead(k);
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
      moved.read[now] = moved.fresh[now] = held;
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
          take(key);
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
    // A key that the window does not access again is dropped at once; else, without room, the
    // furthest is.
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
    // The first of those that are not accessed again, which is the least recently accessed one.
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

Run run_all(const KeyStream& stream, const Cache& cache) {
  Run run{.stream = stream, .cache = cache};
  run.traffic.batches.resize(stream.batches());
  run.moved.read.resize(stream.batches());
  run.moved.fresh.resize(stream.batches());
  run.moved.left.resize(stream.batches());
  for (std::size_t b = 0, i = 0; b < stream.batches(); ++b)
    for (run.now = b; i < stream.ends[b]; ++i) {
      ++run.at().accesses;
      switch (cache.policy) {
        case Policy::kLru:
        case Policy::kLfu: run.back_looking(i); break;
        case Policy::kStatic: run.fixed(i); break;
        case Policy::kLookAhead: run.look_ahead(i); break;
        case Policy::kBelady: run.belady(i); break;
        case Policy::kNextUse: run.next_use(i);
      }
      run.traffic.peak = std::max(run.traffic.peak, static_cast<std::uint32_t>(run.held.size()));
    }
  return run;
}

}  // namespace

Traffic naive_run(const KeyStream& stream, const Cache& cache) {
  return run_all(stream, cache).traffic;
}

Moved naive_moves(const KeyStream& stream, const Cache& cache) {
  return run_all(stream, cache).moved;
}

std::vector<int> naive_step_ends(const Moved& moved, std::uint32_t ahead, int step, int read,
                                 int write) {
  const std::size_t batches = moved.read.size();
  // Batches that are read, worked on and written, and what is left of those in hand.
  struct Machine {
    std::size_t done = 0;
    std::optional<int> left = {};
  } reader, worker, writer;
  std::vector<int> ends;
  for (int now = 0; writer.done < batches; ++now) {
    // One event may enable the next at the same instant.
    for (bool any = true; any;) {
      any = false;
      for (Machine* machine : {&reader, &worker, &writer})
        if (machine->left == 0) {
          machine->left.reset();
          ++machine->done;
          if (machine == &worker) ends.push_back(now);
          any = true;
        }
      const std::size_t b = reader.done;
      if (!reader.left && b < batches && b <= worker.done + ahead) {
        const auto stale = [&](Key key) {
          for (std::size_t e = b; e-- > 0;)
            if (std::count(moved.left[e].begin(), moved.left[e].end(), key) > 0)
              return e >= writer.done;
          return false;
        };
        if (std::none_of(moved.fresh[b].begin(), moved.fresh[b].end(), stale)) {
          reader.left = read * static_cast<int>(moved.read[b].size());
          any = true;
        }
      }
      if (!worker.left && worker.done < reader.done) worker.left = step, any = true;
      if (!writer.left && writer.done < worker.done) {
        writer.left = write * static_cast<int>(moved.left[writer.done].size());
        any = true;
      }
    }
    for (Machine* machine : {&reader, &worker, &writer})
      if (machine->left) --*machine->left;
  }
  return ends;
}

std::uint32_t least_misses(const KeyStream& stream, std::uint32_t capacity) {
  return least_from(stream, capacity, 0, {});
}

}  // namespace rehearse::test
