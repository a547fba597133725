// Meter: counts the effects of a policy, batch by batch. Internal to the module.
#pragma once

#include <algorithm>

#include "models/store/cache.h"

namespace rehearse::store {

class Meter {
 public:
  explicit Meter(const KeyStream& stream) : left_in_(stream.keys, kNever) {
    traffic_.batches.resize(stream.batches());
    for (std::size_t b = 0; b < stream.batches(); ++b)
      traffic_.batches[b].accesses = static_cast<std::uint32_t>(stream.batch(b).size());
  }

  void begin(std::size_t batch) {
    now_ = static_cast<std::uint32_t>(batch);
    at_ = &traffic_.batches[batch];
  }
  void miss(Key key) {
    ++at_->misses;
    read(key);
  }
  void read(Key key) {
    ++at_->reads;
    wait_for(key);
  }
  void fill(Key key) {
    ++at_->fills;
    wait_for(key);
  }
  void leave(Key key) {
    ++at_->leaves;
    left_in_[key] = now_;
  }
  void holds(std::size_t units) {
    traffic_.peak = std::max(traffic_.peak, static_cast<std::uint32_t>(units));
  }

  Traffic take() && { return std::move(traffic_); }

 private:
  static constexpr std::uint32_t kNever = 0xffff'ffff;

  void wait_for(Key key) {
    const std::uint32_t left = left_in_[key];
    if (left != kNever && left < now_ && (!at_->after || *at_->after < left)) at_->after = left;
  }

  Traffic traffic_;
  std::vector<std::uint32_t> left_in_;  // the last batch in which a key left
  BatchTraffic* at_ = nullptr;
  std::uint32_t now_ = 0;
};

// One function per policy.

Traffic run_lru(const KeyStream& stream, std::uint32_t capacity);
/// A readahead for each batch.
Traffic run_lru_readahead(const KeyStream& stream, const Cache& cache);
Traffic run_lfu(const KeyStream& stream, std::uint32_t capacity);
Traffic run_static(const KeyStream& stream, std::uint32_t capacity);
Traffic run_look_ahead(const KeyStream& stream, std::uint32_t capacity, std::uint32_t batches);
Traffic run_belady(const KeyStream& stream, std::uint32_t capacity, std::uint32_t batches);
Traffic run_next_use(const KeyStream& stream, std::uint32_t capacity, std::uint32_t batches);

}  // namespace rehearse::store
