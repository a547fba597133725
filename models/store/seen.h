// Shared by the sources of this module: the set of seen keys, and keys in a random order.
#pragma once

#include <numeric>
#include <utility>
#include <vector>

#include "models/store/key_stream.h"
#include "sim/base/random.h"

namespace rehearse::store {

/// The set of keys that have come since the last `forget`, in constant time each.
class Seen {
 public:
  explicit Seen(std::uint32_t keys) : when_(keys, 0) {}
  bool first(Key key) { return std::exchange(when_[key], now_) != now_; }
  void forget() { ++now_; }

 private:
  std::vector<std::uint32_t> when_;
  std::uint32_t now_ = 1;
};

inline std::vector<Key> shuffled(std::uint32_t keys, Random& random) {
  std::vector<Key> order(keys);
  std::iota(order.begin(), order.end(), Key{0});
  for (std::uint32_t i = keys; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace rehearse::store
