// The blocks of keys and values on a server: those of running requests, and those that wait for
// another request with the same prefix.
//
// Invariants:
//  1. held() + idle() <= total(); a shared prefix counts once.
//  2. A part of a prefix is evicted only if no request holds it, the least recently released first.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "sim/serving/tiers.h"

namespace rehearse::serving {

/// What one request holds.
struct Holding {
  std::int64_t own = 0;                    ///< blocks that no other request uses
  std::vector<std::uint64_t> shared = {};  ///< parts of its prefix in the cache, in their order
};

class Blocks {
 public:
  explicit Blocks(const Rules& rules)
      : total_(rules.blocks),
        part_(rules.prefix_tokens / rules.block_tokens),
        caches_(rules.prefix_cache),
        writes_through_(rules.writes_through),
        tiers_(rules) {}

  std::int64_t held() const { return held_; }
  std::int64_t idle() const { return static_cast<std::int64_t>(idle_.size()) * part_; }
  std::int64_t free() const { return total_ - held_; }
  std::int64_t total() const { return total_; }
  std::int64_t held_by(const Holding& holding) const {
    return holding.own + part_ * static_cast<std::int64_t>(holding.shared.size());
  }

  /// How many of the first `most` parts are cached, how many blocks of them are idle, and how many
  /// parts after them are in tiers.
  struct Hit {
    std::size_t parts = 0;
    std::int64_t idle = 0;
    std::size_t below = 0;
  };
  Hit find(const std::vector<std::uint64_t>& prefix, std::size_t most) const;

  /// Holds parts that `find` found. REQUIRES: an empty holding.
  void reuse(const std::vector<std::uint64_t>& prefix, std::size_t parts, Holding& holding);
  /// REQUIRES: blocks <= free().
  void allocate(std::int64_t blocks, Holding& holding, Picoseconds now);
  /// When parts that `find` found in tiers are on the device.
  Picoseconds load(std::span<const std::uint64_t> parts, Picoseconds now) {
    return tiers_.load(parts, now);
  }
  /// The request has computed these first parts: others may reuse them from now on.
  void publish(const std::vector<std::uint64_t>& prefix, std::size_t parts, Holding& holding,
               Picoseconds now);
  /// The same of a request that loses its blocks. Without a prefix cache they go to the tiers.
  void leave(const std::vector<std::uint64_t>& prefix, Holding& holding, Picoseconds now);
  void release(Holding& holding);

 private:
  struct Part {
    std::int64_t holders;
    std::list<std::uint64_t>::iterator idle;  ///< its place, if it has no holder
  };
  std::int64_t total_, part_, held_ = 0;
  bool caches_, writes_through_;
  Tiers tiers_;
  std::unordered_map<std::uint64_t, Part> parts_ = {};  // never iterated
  std::list<std::uint64_t> idle_ = {};                  // the first is evicted first
};

}  // namespace rehearse::serving
