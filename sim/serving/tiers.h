// Stores for keys and values that leave a server's device: on the host, its drives, or a remote node.
//
//  - A part that leaves the device goes to the first tier that is as large as it. A full tier passes its least recently
//    used part on to the next one; the last tier drops it. No two tiers hold the same part.
//  - Each tier has a link into it and one out of it, each with a queue that it works through in order. A part can leave a
//    tier only after it is there.
//  - Tiers keep what they hold when it is loaded. Without a prefix cache they do not, because nobody else asks for it.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/base/time.h"
#include "sim/serving/rules.h"

namespace rehearse::serving {

class Tiers {
 public:
  explicit Tiers(const Rules& rules);

  bool holds(std::uint64_t part) const;
  /// Puts a part into the first tier, or marks it as used if it is there.
  void store(std::uint64_t part, Picoseconds now);
  /// When these parts are on the device if they are asked for at `now`. REQUIRES: each is held.
  Picoseconds load(std::span<const std::uint64_t> parts, Picoseconds now);
  /// Blocks that a tier holds.
  std::int64_t held(std::size_t tier) const {
    return part_ * static_cast<std::int64_t>(stores_[tier].order.size());
  }

 private:
  struct Held {
    std::list<std::uint64_t>::iterator place;  ///< in the order of use
    Picoseconds there{0};                      ///< it is in the tier from then on
  };
  struct Store {
    Tier tier;
    std::list<std::uint64_t> order = {};                // the first leaves first
    std::unordered_map<std::uint64_t, Held> held = {};  // never iterated
    Picoseconds in{0}, out{0};                          ///< the links are busy until then
  };
  Picoseconds transfer(const Tier& tier) const;
  void put(std::size_t tier, std::uint64_t part, Picoseconds from);

  std::vector<Store> stores_ = {};
  std::int64_t part_;
  bool keeps_;
};

}  // namespace rehearse::serving
