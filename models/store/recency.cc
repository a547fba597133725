// Policies based on past accesses: lru, with and without readahead, and lfu.
#include "models/store/meter.h"

namespace rehearse::store {
namespace {

/// Lists of keys in the order in which they were added. Each key is in at most one of them.
class Lists {
 public:
  static constexpr Key kNone = 0xffff'ffff;
  struct Ends {
    Key oldest = kNone, newest = kNone;
    bool empty() const { return oldest == kNone; }
  };

  explicit Lists(std::uint32_t keys) : links_(keys) {}

  void put(Ends& list, Key key) {
    links_[key] = {list.newest, kNone};
    (list.empty() ? list.oldest : links_[list.newest].newer) = key;
    list.newest = key;
  }
  void remove(Ends& list, Key key) {
    const Link link = links_[key];
    (link.older == kNone ? list.oldest : links_[link.older].newer) = link.newer;
    (link.newer == kNone ? list.newest : links_[link.newer].older) = link.older;
  }

 private:
  struct Link {
    Key older = kNone, newer = kNone;
  };
  std::vector<Link> links_;
};

/// Held keys by their last use, in a log: a use counts as long as its key has no later one.
/// Neighbouring keys that are read together stay together in memory, unlike in a list.
class Recency {
 public:
  Recency(std::uint32_t keys, std::uint32_t capacity)
      : last_(keys, 0), longest_(2 * std::size_t{capacity} + 64) {}

  bool holds(Key key) const { return last_[key] != 0; }
  void use(Key key) {
    if (log_.size() == longest_) forget_superseded();
    log_.push_back(key);
    last_[key] = static_cast<std::uint32_t>(log_.size());
  }
  /// REQUIRES: a key is held.
  Key drop_oldest() {
    while (last_[log_[gone_]] != gone_ + 1) ++gone_;
    const Key oldest = log_[gone_++];
    last_[oldest] = 0;
    return oldest;
  }

 private:
  void forget_superseded() {
    std::uint32_t kept = 0;
    for (std::size_t at = gone_; at < log_.size(); ++at) {
      const Key key = log_[at];
      if (last_[key] != at + 1) continue;
      log_[kept++] = key;
      last_[key] = kept;
    }
    log_.resize(kept);
    gone_ = 0;
  }

  std::vector<Key> log_;
  std::vector<std::uint32_t> last_;  // use of each held key, counted from 1; 0: not held
  std::size_t longest_, gone_ = 0;   // size at which the log is packed; uses that hold no key
};

}  // namespace

// The stream itself is the list by recency: an access counts as long as its key has no later one.
Traffic run_lru(const KeyStream& stream, std::uint32_t capacity) {
  Meter meter(stream);
  std::vector<std::uint32_t> last(stream.keys, 0);  // access of each key, counted from 1
  const std::vector<Key>& accesses = stream.accesses;
  std::uint32_t at = 0, gone = 0;  // accesses so far; those of them that no longer hold a key
  std::uint32_t size = 0;
  for (std::size_t b = 0; b < stream.batches(); ++b) {
    meter.begin(b);
    for (; at < stream.ends[b];) {
      const Key key = accesses[at];
      const bool held = last[key] > gone;
      last[key] = ++at;
      if (held) continue;
      meter.miss(key);
      if (++size > capacity) {
        while (last[accesses[gone]] != gone + 1) ++gone;
        meter.leave(accesses[gone]);
        ++gone;
        --size;
      }
      meter.holds(size);
    }
  }
  return std::move(meter).take();
}

Traffic run_lru_readahead(const KeyStream& stream, const Cache& cache) {
  Meter meter(stream);
  Recency recency(stream.keys, cache.capacity);
  std::uint32_t size = 0;
  std::vector<Key> coming;
  const auto take_in = [&](Key key) {
    recency.use(key);
    if (++size > cache.capacity) {
      meter.leave(recency.drop_oldest());
      --size;
    }
    meter.holds(size);
  };
  for (std::size_t b = 0; b < stream.batches(); ++b) {
    meter.begin(b);
    for (const Key key : stream.batch(b)) {
      if (recency.holds(key)) {
        recency.use(key);
        continue;
      }
      meter.miss(key);
      const std::uint32_t in_front = std::min(cache.around ? cache.readahead / 2 : 0, key);
      const std::uint64_t end =
          std::min<std::uint64_t>(std::uint64_t{key} - in_front + cache.readahead, stream.keys);
      // The keys to read are determined before any of them evicts another; the nearest enters last.
      coming.clear();
      for (Key front = key - in_front; front < key; ++front)
        if (!recency.holds(front)) coming.push_back(front);
      for (std::uint64_t ahead = end - 1; ahead > key; --ahead)
        if (!recency.holds(static_cast<Key>(ahead))) coming.push_back(static_cast<Key>(ahead));
      for (const Key k : coming) meter.read(k);
      for (const Key k : coming) take_in(k);
      take_in(key);
    }
  }
  return std::move(meter).take();
}

Traffic run_lfu(const KeyStream& stream, std::uint32_t capacity) {
  Meter meter(stream);
  std::vector<std::uint32_t> count(stream.keys, 0);  // since it came in; 0: not held
  Lists lists(stream.keys);
  std::vector<Lists::Ends> of_count(2);
  std::uint32_t least = 1;  // no key that is held has a lower count
  std::uint32_t size = 0;
  for (std::size_t b = 0; b < stream.batches(); ++b) {
    meter.begin(b);
    for (const Key key : stream.batch(b)) {
      if (const std::uint32_t n = count[key]; n > 0) {
        lists.remove(of_count[n], key);
        if (n + 1 == of_count.size()) of_count.emplace_back();
        lists.put(of_count[n + 1], key);
        count[key] = n + 1;
        if (n == least && of_count[n].empty()) ++least;
        continue;
      }
      meter.miss(key);
      if (capacity == 0) {
        meter.leave(key);
        continue;
      }
      if (size == capacity) {
        const Key out = of_count[least].oldest;
        lists.remove(of_count[least], out);
        count[out] = 0;
        --size;
        meter.leave(out);
      }
      lists.put(of_count[1], key);
      count[key] = least = 1;
      meter.holds(++size);
    }
  }
  return std::move(meter).take();
}

}  // namespace rehearse::store
