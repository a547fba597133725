// Lanes: a collective as messages, in a form whose size is independent of their number.
//
// A *lane* is a sequence of equal messages from one member of the collective to another. A message
// leaves when the previous message of its lane has arrived, when both members take part, and when
// every lane that its lane waits for has delivered enough: `after` messages, plus one more for each
// message of its own if the wait is `each`, and at most all. A ring all-reduce of n members is n
// lanes of 2 (n-1) messages, each waiting for the deliveries of the previous lane.
//
// Invariants (the constructor checks them):
//  1. Lanes join two different members in range and have at least one message.
//  2. Waits name lanes in range and are in order of the waiting lane.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace rehearse::graph {

struct Lane {
  std::uint32_t from;   ///< member
  std::uint32_t to;     ///< member
  std::uint32_t count;  ///< messages
  double share;         ///< in each message, relative to the size of the collective
};

struct Wait {
  std::uint32_t lane;   ///< that waits
  std::uint32_t on;     ///< lane
  std::uint32_t after;  ///< how many messages `on` must have delivered for the first one
  bool each = false;    ///< and one more for each further message
};

class Lanes {
 public:
  Lanes(std::uint32_t members, std::vector<Lane> lanes, std::vector<Wait> waits);

  std::uint32_t members() const { return members_; }
  std::span<const Lane> lanes() const { return lanes_; }
  std::span<const Wait> waits() const { return waits_; }
  std::span<const Wait> waits(std::uint32_t lane) const {
    return {waits_.data() + first_wait_[lane], waits_.data() + first_wait_[lane + 1]};
  }
  /// Lanes that wait for this one.
  std::span<const std::uint32_t> woken_by(std::uint32_t lane) const {
    return {woken_.data() + first_woken_[lane], woken_.data() + first_woken_[lane + 1]};
  }
  /// Lanes from and to this member.
  std::span<const std::uint32_t> of_member(std::uint32_t member) const {
    return {of_member_.data() + first_of_member_[member],
            of_member_.data() + first_of_member_[member + 1]};
  }
  /// How many messages `wait.on` must have delivered for message `index` of the waiting lane.
  std::uint32_t due(const Wait& wait, std::uint32_t index) const {
    const std::uint32_t asked = wait.each ? wait.after + index : wait.after;
    return std::min(asked, lanes_[wait.on].count);
  }

  std::uint64_t messages() const;
  /// Of the size of the collective.
  double share_sent(std::uint32_t member) const;
  double share_received(std::uint32_t member) const;

 private:
  std::uint32_t members_;
  std::vector<Lane> lanes_;
  std::vector<Wait> waits_;
  std::vector<std::uint32_t> first_wait_, first_woken_, woken_, first_of_member_, of_member_;
};

}  // namespace rehearse::graph
