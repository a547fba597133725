// Shared links: the load of a folded job's communications on the links that limit several of them.
//
// A *concurrent set* is represented by one op: the same communication on all ranks of its program.
// While it runs, its messages have one common rate, and a fixed number of them is on each link at a
// time. Concurrent sets on a common link divide it as their messages would (max-min fair).
//
// Only links that concurrent sets can overload together are kept. Links with the same load count
// once; links that are never more loaded than another, or cannot be full, are dropped. Their number
// therefore grows with the programs of a job, not with its ranks. Dropped links change no rate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/units.h"

namespace rehearse::job {

class SharedLinks {
 public:
  struct Loaded {
    std::uint32_t link;  ///< its number, below 2 x the cluster's links
    ByteRate rate;
    double messages;  ///< messages of the concurrent set at a time; above zero
  };

  /// Adds a concurrent set, with each link that it uses once. Sets of one `stream` never run at the
  /// same time, nor does a set overlap itself; without a stream, several may. Concurrent sets are
  /// numbered in the order in which they are added. Each of a set's messages moves at most at
  /// `most`. REQUIRES: some link.
  std::uint32_t add(std::vector<Loaded> links, std::optional<std::uint32_t> stream, ByteRate most);
  /// The rate of each message of a concurrent set that uses all links alone.
  ByteRate alone(std::uint32_t concurrent_set) const {
    return concurrent_sets_[concurrent_set].alone;
  }

  struct Taken {
    std::uint32_t link;  ///< in Shared::links
    double messages;
  };
  struct ConcurrentSet {
    ByteRate alone;
    std::vector<Taken> taken;  ///< load on the kept links; empty if it is always alone
  };
  struct Shared {
    std::vector<ByteRate> links;
    std::vector<ConcurrentSet> concurrent_sets;
  };
  Shared shared() const;  ///< for all concurrent sets

 private:
  struct Member {
    std::vector<Loaded> links;
    std::optional<std::uint32_t> stream;
    ByteRate alone;
  };
  /// A concurrent set on a link, and the link capacity that its messages take per unit of their
  /// rate.
  struct User {
    std::uint32_t concurrent_set;
    double share;
    friend bool operator==(const User&, const User&) = default;
  };
  struct Row {
    ByteRate rate;
    std::vector<User> users;  ///< by concurrent set
  };
  std::vector<Row> rows() const;
  bool can_be_full(const Row& row) const;
  static bool below(const Row& row, const Row& other);

  std::vector<Member> concurrent_sets_;
};

}  // namespace rehearse::job
