// Flows: a collective as messages, in a form whose size is independent of their number.
//
// A *flow* is a sequence of equal messages from one member of the collective to another. A message
// leaves when the previous message of its flow has arrived, when both members take part, and when
// every flow that its flow waits for has delivered enough: `after` messages, plus one more for each
// message of its own if the wait is `each`, and at most all. A ring all-reduce of n members is n
// flows of 2 (n-1) messages, each waiting for the deliveries of the previous flow.
//
// Invariants (the constructor checks them):
//  1. Flows join two different members in range and have at least one message.
//  2. Waits name flows in range and are in order of the waiting flow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace rehearse::graph {

struct MessageFlow {
  std::uint32_t from;   ///< member
  std::uint32_t to;     ///< member
  std::uint32_t count;  ///< messages
  double share;         ///< in each message, relative to the size of the collective
};

struct Wait {
  std::uint32_t flow;   ///< the waiting flow
  std::uint32_t on;     ///< the flow that it waits for
  std::uint32_t after;  ///< messages that `on` must have delivered for the first one
  bool each = false;    ///< and one more for each further message
};

class MessageFlows {
 public:
  MessageFlows(std::uint32_t members, std::vector<MessageFlow> flows, std::vector<Wait> waits);

  std::uint32_t members() const { return members_; }
  std::span<const MessageFlow> flows() const { return flows_; }
  std::span<const Wait> waits() const { return waits_; }
  std::span<const Wait> waits(std::uint32_t flow) const {
    return {waits_.data() + first_wait_[flow], waits_.data() + first_wait_[flow + 1]};
  }
  /// Flows that wait for this one.
  std::span<const std::uint32_t> woken_by(std::uint32_t flow) const {
    return {woken_.data() + first_woken_[flow], woken_.data() + first_woken_[flow + 1]};
  }
  /// Flows from and to this member.
  std::span<const std::uint32_t> of_member(std::uint32_t member) const {
    return {of_member_.data() + first_of_member_[member],
            of_member_.data() + first_of_member_[member + 1]};
  }
  /// The number of messages that `wait.on` must have delivered for message `index` of the waiting
  /// flow.
  std::uint32_t due(const Wait& wait, std::uint32_t index) const {
    const std::uint32_t asked = wait.each ? wait.after + index : wait.after;
    return std::min(asked, flows_[wait.on].count);
  }

  std::uint64_t messages() const;
  /// The share of the collective's size that a member sends.
  double share_sent(std::uint32_t member) const;

 private:
  std::uint32_t members_;
  std::vector<MessageFlow> flows_;
  std::vector<Wait> waits_;
  std::vector<std::uint32_t> first_wait_, first_woken_, woken_, first_of_member_, of_member_;
};

}  // namespace rehearse::graph
