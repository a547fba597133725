// A cache in front of a store, under a stream of keys: hits, and the reads and write-backs
// of each batch.
//
// A stream and a capacity are in the same unit: items, or pages (key_stream.h, pages_of). Exact:
// the cache is run access by access, not modelled. See docs/concepts/store.md for the laws.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/store/key_stream.h"
#include "sim/base/result.h"

namespace rehearse::store {

/// The units that stay in the cache when there is no room for all.
enum class Policy : std::uint8_t {
  kLru,        ///< the most recently accessed
  kLfu,        ///< the most often accessed since it entered; ties: most recent
  kStatic,     ///< the most accessed in the whole stream; filled beforehand, never changed
  kLookAhead,  ///< units accessed in the next `batches` batches, as long as there is room
  kBelady,     ///< units accessed soonest, seen to the end of a window of `batches` batches; at the
               ///< begin of each window the cache is filled again with the units accessed first
  kNextUse,    ///< units accessed soonest, seen `batches` batches ahead; beyond that, the most
               ///< recently accessed
};
inline constexpr std::string_view kPolicyNames[] = {"lru",        "lfu",    "static",
                                                    "look_ahead", "belady", "next_use"};

/// A value of `batches` that reaches to the end of the stream.
inline constexpr std::uint32_t kAllBatches = std::numeric_limits<std::uint32_t>::max();

struct Cache {
  Policy policy = Policy::kLru;
  std::uint32_t capacity = 0;  ///< units
  /// The number of batches that kLookAhead, kBelady and kNextUse see ahead; the others see nothing.
  std::uint32_t batches = kAllBatches;
  /// Units that a miss reads at once, itself and the following ones. Above 1 with kLru only.
  std::uint32_t readahead = 1;
  /// Half of them precede it, as in a page fault of a memory map.
  bool around = false;

  friend bool operator==(const Cache&, const Cache&) = default;
};

struct BatchTraffic {
  std::uint32_t accesses = 0;
  std::uint32_t misses = 0;  ///< each is one request to the store
  std::uint64_t reads = 0;   ///< units that the misses read
  std::uint64_t fills = 0;   ///< units read before the batch to fill the cache
  std::uint32_t leaves = 0;  ///< units that were evicted, or could not be kept
  /// If accesses change units, so that evicted ones are written back: the last earlier batch
  /// whose write-back the reads of this one must wait for.
  std::optional<std::uint32_t> after = {};
};

struct Traffic {
  std::vector<BatchTraffic> batches;
  std::uint32_t peak = 0;  ///< most units that were in the cache between two accesses

  // The sums are over the batches from `first` on.
  std::uint64_t accesses(std::size_t first = 0) const;
  std::uint64_t misses(std::size_t first = 0) const;
  std::uint64_t reads(std::size_t first = 0) const;  ///< including those that fill the cache
  double hit_ratio(std::size_t first = 0) const;     ///< 0 where there are no accesses
};

/// Runs the cache. Fails on a readahead of 0, or with another policy than kLru.
Result<Traffic> run(const KeyStream& stream, const Cache& cache);

}  // namespace rehearse::store
