// Shared links: what the communications of a folded job take of the links that limit several.
//
// A *family* is what one op stands for: the same communication on all ranks of its program. While
// it goes on, each of its messages moves at one rate, and so many of them are on each link at a
// time. Families that are on a link together divide it as their messages would (max-min fair).
//
// Of all links those are kept on which families can take more than there is: links that are loaded
// alike count once, those that are never fuller than another one not at all, nor those that cannot
// be full. So their number grows with the programs of a job, not with its ranks. What is left out
// changes no rate.
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
    double messages;  ///< of the family, at a time; above zero
  };

  /// A family, with each link that it is on once. Those of one `stream` never go on at the same
  /// time, nor does one by itself; without one, several may. Families get their numbers in their
  /// order. Each of its messages moves at most at `most`. REQUIRES: some link.
  std::uint32_t add(std::vector<Loaded> links, std::optional<std::uint32_t> stream, ByteRate most);
  /// The rate of each message of a family that has all links for itself.
  ByteRate alone(std::uint32_t family) const { return families_[family].alone; }

  struct Taken {
    std::uint32_t link;  ///< in Shared::links
    double messages;
  };
  struct Family {
    ByteRate alone;
    std::vector<Taken> taken;  ///< of links that are kept; empty where it is always alone
  };
  struct Shared {
    std::vector<ByteRate> links;
    std::vector<Family> families;
  };
  Shared shared() const;  ///< of all families

 private:
  struct Member {
    std::vector<Loaded> links;
    std::optional<std::uint32_t> stream;
    ByteRate alone;
  };
  /// A family on a link, and how much of it its messages take for each unit of their rate.
  struct User {
    std::uint32_t family;
    double share;
    friend bool operator==(const User&, const User&) = default;
  };
  struct Row {
    ByteRate rate;
    std::vector<User> users;  ///< by family
  };
  std::vector<Row> rows() const;
  bool can_be_full(const Row& row) const;
  static bool below(const Row& row, const Row& other);

  std::vector<Member> families_;
};

}  // namespace rehearse::job
