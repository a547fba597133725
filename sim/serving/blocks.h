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

#include "sim/serving/rules.h"

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
        caches_(rules.prefix_cache) {}

  std::int64_t held() const { return held_; }
  std::int64_t idle() const { return static_cast<std::int64_t>(idle_.size()) * part_; }
  std::int64_t free() const { return total_ - held_; }
  std::int64_t total() const { return total_; }
  std::int64_t held_by(const Holding& holding) const {
    return holding.own + part_ * static_cast<std::int64_t>(holding.shared.size());
  }

  /// How many of the first `most` parts are cached, and how many blocks of them are idle.
  struct Hit {
    std::size_t parts = 0;
    std::int64_t idle = 0;
  };
  Hit find(const std::vector<std::uint64_t>& prefix, std::size_t most) const;

  /// Holds parts that `find` found. REQUIRES: an empty holding.
  void reuse(const std::vector<std::uint64_t>& prefix, std::size_t parts, Holding& holding);
  /// REQUIRES: blocks <= free().
  void allocate(std::int64_t blocks, Holding& holding);
  /// The request has computed these first parts: others may reuse them from now on.
  void publish(const std::vector<std::uint64_t>& prefix, std::size_t parts, Holding& holding);
  void release(Holding& holding);

 private:
  struct Part {
    std::int64_t holders;
    std::list<std::uint64_t>::iterator idle;  ///< its place, if it has no holder
  };
  std::int64_t total_, part_, held_ = 0;
  bool caches_;
  std::unordered_map<std::uint64_t, Part> parts_ = {};  // never iterated
  std::list<std::uint64_t> idle_ = {};                  // the first is evicted first
};

}  // namespace rehearse::serving
