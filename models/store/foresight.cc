// Policies with knowledge of future accesses: static, look_ahead, belady, next_use.
#include <bit>
#include <cstdint>
#include <vector>

#include "models/store/meter.h"

namespace rehearse::store {
namespace {

/// Numbers below a bound, with the least and the greatest. It has a bit for each number, and above
/// every 64 bits one bit that says whether any of them is set, up to one word. Every operation takes
/// as many steps as there are levels: four for 16 million positions.
class PositionSet {
 public:
  explicit PositionSet(std::size_t bound) {
    do {
      bound = bound / 64 + 1;
      levels_.emplace_back(bound, 0);
    } while (bound > 1);
  }

  std::size_t size() const { return size_; }

  /// REQUIRES: not in the set.
  void insert(std::uint32_t position) {
    ++size_;
    for (std::vector<std::uint64_t>& level : levels_) {
      std::uint64_t& word = level[position / 64];
      const bool had_any = word != 0;
      word |= std::uint64_t{1} << position % 64;
      if (had_any) return;
      position /= 64;
    }
  }
  /// Whether it was in the set.
  bool erase(std::uint32_t position) {
    if ((levels_[0][position / 64] >> position % 64 & 1) == 0) return false;
    --size_;
    for (std::vector<std::uint64_t>& level : levels_) {
      std::uint64_t& word = level[position / 64];
      word &= ~(std::uint64_t{1} << position % 64);
      if (word != 0) return true;
      position /= 64;
    }
    return true;
  }
  /// REQUIRES of both: not empty.
  std::uint32_t greatest() const {
    return descend([](std::uint64_t word) { return 63 - std::countl_zero(word); });
  }
  std::uint32_t least() const {
    return descend([](std::uint64_t word) { return std::countr_zero(word); });
  }

 private:
  template <class Choose>
  std::uint32_t descend(Choose choose) const {
    std::uint32_t position = 0;
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
      position = position * 64 + static_cast<std::uint32_t>(choose((*level)[position]));
    return position;
  }

  std::vector<std::vector<std::uint64_t>> levels_;  // the lowest first
  std::size_t size_ = 0;
};

constexpr std::uint32_t kNever = 0xffff'ffff;

/// The batch after the last one that is visible from `batch`.
std::size_t seen_end(std::size_t batch, std::uint32_t batches, std::size_t all) {
  return batches >= all - batch ? all : batch + batches;
}

/// For accesses `from` to `to`, the next one of the same key among them, or kNever.
/// `of_key` is scratch, kNever for every key before and afterwards.
void find_next(const std::vector<Key>& accesses, std::uint32_t from, std::uint32_t to,
               std::vector<std::uint32_t>& of_key, std::vector<std::uint32_t>& next) {
  for (std::uint32_t i = to; i-- > from;) next[i] = std::exchange(of_key[accesses[i]], i);
  for (std::uint32_t i = from; i < to; ++i) of_key[accesses[i]] = kNever;
}

std::vector<std::uint32_t> next_accesses(const KeyStream& stream) {
  std::vector<std::uint32_t> next(stream.accesses.size()), of_key(stream.keys, kNever);
  find_next(stream.accesses, 0, static_cast<std::uint32_t>(next.size()), of_key, next);
  return next;
}

}  // namespace

Traffic run_static(const KeyStream& stream, std::uint32_t capacity) {
  Meter meter(stream);
  std::vector<std::uint32_t> count(stream.keys, 0);
  for (const Key key : stream.accesses) ++count[key];
  std::vector<Key> keys;
  for (Key key = 0; key < stream.keys; ++key)
    if (count[key] > 0) keys.push_back(key);
  const std::size_t held_count = std::min<std::size_t>(capacity, keys.size());
  const auto more = [&](Key a, Key b) {
    return count[a] != count[b] ? count[a] > count[b] : a < b;
  };
  std::nth_element(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(held_count), keys.end(),
                   more);
  std::vector<char> held(stream.keys, 0);
  if (stream.batches() > 0) meter.begin(0);
  for (std::size_t i = 0; i < held_count; ++i) {
    meter.fill(keys[i]);
    held[keys[i]] = 1;
  }
  meter.holds(held_count);
  for (std::size_t b = 0; b < stream.batches(); ++b) {
    meter.begin(b);
    for (const Key key : stream.batch(b))
      if (!held[key]) {
        meter.miss(key);
        meter.leave(key);
      }
  }
  return std::move(meter).take();
}

Traffic run_look_ahead(const KeyStream& stream, std::uint32_t capacity, std::uint32_t batches) {
  Meter meter(stream);
  const std::vector<std::uint32_t> next = next_accesses(stream);
  std::vector<char> held(stream.keys, 0);
  std::uint32_t at = 0, size = 0;
  for (std::size_t b = 0; b < stream.batches(); ++b) {
    meter.begin(b);
    const std::size_t last = std::min(seen_end(b, batches, stream.batches()), stream.batches() - 1);
    for (; at < stream.ends[b]; ++at) {
      const Key key = stream.accesses[at];
      if (!held[key]) meter.miss(key);
      const bool wanted = next[at] != kNever && next[at] < stream.ends[last];
      const bool stays = wanted && (held[key] || size < capacity);
      size += (stays ? 1 : 0) - (held[key] ? 1 : 0);
      held[key] = stays ? 1 : 0;
      if (!stays) meter.leave(key);
      meter.holds(size);
    }
  }
  return std::move(meter).take();
}

// The held keys are represented by the set of their next accesses: an access is a hit if it is in
// the set, and the key with the greatest next access is evicted. A key that the window does not
// access again never enters.
Traffic run_belady(const KeyStream& stream, std::uint32_t capacity, std::uint32_t batches) {
  Meter meter(stream);
  const std::vector<Key>& accesses = stream.accesses;
  std::vector<std::uint32_t> next(accesses.size()), of_key(stream.keys, kNever);
  PositionSet held(accesses.size());
  std::vector<char> first_seen(stream.keys, 0);
  const std::uint32_t step = std::max(batches, 1U);
  for (std::size_t window = 0; window < stream.batches();) {
    const std::size_t window_end = seen_end(window, step, stream.batches());
    const std::uint32_t from = window == 0 ? 0 : stream.ends[window - 1];
    const std::uint32_t to = stream.ends[window_end - 1];
    find_next(accesses, from, to, of_key, next);
    meter.begin(window);
    std::uint32_t filled = from;
    for (; filled < to && held.size() < capacity; ++filled) {
      const Key key = accesses[filled];
      if (std::exchange(first_seen[key], 1)) continue;
      meter.fill(key);
      held.insert(filled);
    }
    while (filled-- > from) first_seen[accesses[filled]] = 0;
    meter.holds(held.size());
    std::uint32_t at = from;
    for (; window < window_end; ++window) {
      meter.begin(window);
      for (; at < stream.ends[window]; ++at) {
        const Key key = accesses[at];
        if (!held.erase(at)) meter.miss(key);
        if (next[at] == kNever) {
          meter.leave(key);
          continue;
        }
        held.insert(next[at]);
        if (held.size() > capacity) {
          const std::uint32_t out = held.greatest();
          held.erase(out);
          meter.leave(accesses[out]);
        }
        meter.holds(held.size());
      }
    }
  }
  return std::move(meter).take();
}

Traffic run_next_use(const KeyStream& stream, std::uint32_t capacity, std::uint32_t batches) {
  Meter meter(stream);
  const std::vector<Key>& accesses = stream.accesses;
  const std::vector<std::uint32_t> next = next_accesses(stream);
  std::vector<std::uint32_t> previous(accesses.size(), kNever);
  for (std::uint32_t i = 0; i < next.size(); ++i)
    if (next[i] != kNever) previous[next[i]] = i;
  PositionSet seen(accesses.size());    // next accesses of held keys, if visible
  PositionSet unseen(accesses.size());  // otherwise, their last accesses
  std::uint32_t at = 0, seen_to = 0;
  for (std::size_t b = 0; b < stream.batches(); ++b) {
    meter.begin(b);
    const std::size_t last = std::min(seen_end(b, batches, stream.batches()), stream.batches() - 1);
    for (; seen_to < stream.ends[last]; ++seen_to)
      if (previous[seen_to] != kNever && unseen.erase(previous[seen_to])) seen.insert(seen_to);
    for (; at < stream.ends[b]; ++at) {
      if (!seen.erase(at)) meter.miss(accesses[at]);
      if (next[at] < seen_to)
        seen.insert(next[at]);
      else
        unseen.insert(at);
      if (seen.size() + unseen.size() > capacity) {
        PositionSet& from = unseen.size() > 0 ? unseen : seen;
        const std::uint32_t out = &from == &unseen ? unseen.least() : seen.greatest();
        from.erase(out);
        meter.leave(accesses[out]);
      }
      meter.holds(seen.size() + unseen.size());
    }
  }
  return std::move(meter).take();
}

}  // namespace rehearse::store
