// KeyStream: the keys that a job requests from a store, batch by batch.
//
// Invariants: every access is below `keys`; `ends` does not fall and ends with the number of
// accesses. Positions are 32 bits: a stream has fewer than 2^32 - 1 accesses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/random.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::store {

using Key = std::uint32_t;

inline constexpr std::uint64_t kMostAccesses = 0xffff'fffe;

struct KeyStream {
  std::uint32_t keys = 0;
  std::vector<Key> accesses = {};
  std::vector<std::uint32_t> ends = {};  ///< by batch, one past its last access

  std::size_t batches() const { return ends.size(); }
  std::span<const Key> batch(std::size_t b) const {
    const std::uint32_t from = b == 0 ? 0 : ends[b - 1];
    return {accesses.data() + from, accesses.data() + ends[b]};
  }
  friend bool operator==(const KeyStream&, const KeyStream&) = default;
};

/// The size of a stream. The makers below REQUIRE fewer than 2^32 - 1 accesses in all.
struct Shape {
  std::uint32_t keys;
  std::uint32_t batch;  ///< accesses of a batch; seeds of one in a sampled graph
  std::uint32_t batches;
  std::uint64_t seed = 1;

  friend bool operator==(const Shape&, const Shape&) = default;
};

/// The seed of the n-th stream of one seed: `seed` for the first, and
/// different ones for all others.
constexpr std::uint64_t nth_seed(std::uint64_t seed, std::uint32_t before) {
  return before == 0 ? seed : mixed(seed) ^ before;
}

/// Independent draws by Zipf's law; key 0 is the most popular. Each thread keeps its last two, of 16
/// million accesses at most, for requests of the same draws.
KeyStream zipf_stream(const Shape& shape, double exponent);

/// Each epoch has every key once, in a new order. Batches do not span the end of an epoch.
/// Shape::batches is the number of epochs.
KeyStream epoch_permutations(const Shape& shape);

/// Keys in order, over and over: `stride` 1 forward, -1 backward.
KeyStream sequential(const Shape& shape, std::int32_t stride);

/// Runs of `run` keys in order, forward or backward, each starting anywhere among the keys. Runs of
/// one key are uniform draws; runs of all keys are one scan after another. REQUIRES: 1 <= run <=
/// keys.
KeyStream runs(const Shape& shape, std::uint32_t run, bool backward);

/// One stream after another. REQUIRES: at least one stream, the same number of keys in each, and
/// fewer than 2^32 - 1 accesses.
KeyStream in_turn(std::span<const KeyStream> streams);

/// The epochs of epoch_permutations in another order. After each epoch comes the one whose first
/// `window` accesses have the most keys in common with the last `window` of the epoch before; ties
/// go to the earliest.
KeyStream reordered(const KeyStream& epochs, std::uint32_t window);

/// Reads one batch per line, with keys as whole numbers between spaces; keys are renumbered in the
/// order of their first access. Empty lines are skipped. Fails with the line of the first word that
/// is not a key.
Result<KeyStream> recorded_keys(std::string_view text, const std::string& name);

/// Each key of a batch once, at its first access.
KeyStream unique_in_batches(const KeyStream& stream);

/// Keys renamed at random: popular ones are no longer adjacent.
KeyStream scattered(const KeyStream& stream, std::uint64_t seed);

/// The pages of items of one size, packed in key order without gaps: an access to an item is one
/// access to each of its pages. Fails if there would be too many.
Result<KeyStream> pages_of(const KeyStream& items, Bytes item, Bytes page);

}  // namespace rehearse::store
