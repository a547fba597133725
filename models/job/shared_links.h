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
#include <map>
#include <optional>
#include <vector>

#include "sim/base/units.h"

namespace rehearse::job {

class SharedLinks {
 public:
  struct Link {
    ByteRate rate;
    double messages;  ///< of the family, at a time
  };
  /// By number of the link.
  using Load = std::map<std::uint32_t, Link>;

  /// A family. Those of one `stream` never go on at the same time, nor does one by itself; without
  /// one, several may. Families get their numbers in their order.
  /// REQUIRES: messages on some link.
  std::uint32_t add(Load load, std::optional<std::uint32_t> stream);
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
  Shared shared() const;

 private:
  struct Member {
    Load load;
    std::optional<std::uint32_t> stream;
    ByteRate alone;
  };
  std::vector<Member> families_;
};

}  // namespace rehearse::job
