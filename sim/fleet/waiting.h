// Waiting jobs, in the order of the policy, and the first of equal demand that is short enough.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "sim/fleet/fleet.h"
#include "sim/fleet/places.h"

namespace rehearse::fleet {

/// Jobs by rank: their place in the order of arrival.
using Rank = std::uint32_t;

/// Jobs with equal demands, by rank: finds the first whose time is short enough in O(log(jobs)).
class FirstShort {
 public:
  explicit FirstShort(std::vector<Rank> ranks);

  /// REQUIRES: the rank is one of those given. A time of nothing removes it.
  void set(Rank rank, std::optional<Nanoseconds> time);
  /// The first rank from `from` on whose time is at most `most`.
  std::optional<Rank> first(Rank from, Nanoseconds most) const;
  bool empty() const;

 private:
  std::optional<std::size_t> search(std::size_t node, std::size_t begin, std::size_t end,
                                    std::size_t from, std::int64_t most) const;

  std::vector<Rank> ranks_;
  std::size_t leaves_;
  std::vector<std::int64_t> least_;  // a tree of minima; the leaves are its second half
};

/// Charges by user. A user who returns is charged at least the least charge of
/// the others, so that absence earns no credit.
class Shares {
 public:
  explicit Shares(std::size_t users) : users_(users) {}

  void wait(std::uint32_t user, Rank rank);
  /// The job starts; `cost` is its share of GPUs times its time.
  void start(std::uint32_t user, Rank rank, std::int64_t cost);
  void end(std::uint32_t user);
  /// REQUIRES: a job waits.
  Rank front() const;

 private:
  struct User {
    std::int64_t charged = 0;
    std::uint32_t running = 0;
    std::set<Rank> waiting = {};
  };

  std::vector<User> users_;
  std::set<std::pair<std::int64_t, std::uint32_t>> active_;        // charged, user
  std::set<std::tuple<std::int64_t, Rank, std::uint32_t>> first_;  // waiting users
};

}  // namespace rehearse::fleet
