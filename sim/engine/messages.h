// Messages: the state of the transfers in progress.
//
// A transfer takes part of a table of flows from the moment its first member takes part until its
// last message has arrived; a *slot* is the place of one flow in that table and the name of the one
// message that may be travelling on it. So memory grows with the flows that are busy at one time,
// not with messages.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/graph/graph.h"

namespace rehearse::engine {

class Messages {
 public:
  /// REQUIRES: `graph` outlives this object.
  explicit Messages(const graph::Graph& graph);

  /// The op is a member of a transfer.
  bool carries(OpId op) const {
    return !member_of_.empty() && member_of_[op.index()].transfer != kNone;
  }

  /// The consequences of an event: messages that leave now, and members that have ended. Both are
  /// appended, in an order that depends only on the graph.
  struct Consequences {
    std::vector<std::uint32_t> leaving;  ///< slots
    std::vector<OpId> ended;
    void clear() {
      leaving.clear();
      ended.clear();
    }
  };

  /// The member takes part from now on.
  void take_part(OpId op, Consequences& next);
  /// The message that travels on `slot` has arrived.
  void arrive(std::uint32_t slot, Consequences& next);

  const graph::FlowRoute& route(std::uint32_t slot) const { return *slots_[slot].route; }
  double bytes(std::uint32_t slot) const { return slots_[slot].bytes; }

  /// "message 3 of 6 from member 0 to 1": the message that a member of a stuck run waits for.
  std::string describe_waiting(OpId op) const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Membership {
    std::uint32_t transfer = kNone;
    std::uint32_t member = 0;
  };
  struct Slot {
    std::uint32_t delivered = 0;
    bool travelling = false;
    std::uint32_t transfer = 0;
    const graph::FlowRoute* route = nullptr;
    double bytes = 0;
  };
  struct Active {
    std::uint32_t first_slot = kNone;  // kNone: not under way
    std::uint32_t first_member = 0;
    std::uint32_t members_left = 0;
  };
  struct Member {
    bool takes_part = false;
    std::uint32_t flows_left = 0;
  };
  /// Places for runs of slots or members of equal length, used again when given back.
  class Places {
   public:
    std::uint32_t take(std::uint32_t length, std::uint32_t& end);
    void give_back(std::uint32_t first, std::uint32_t length) { free_[length].push_back(first); }

   private:
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> free_;
  };

  void begin(std::uint32_t transfer);
  void try_flow(std::uint32_t transfer, const Active& active, std::uint32_t flow,
                Consequences& next);
  void flow_done(std::uint32_t transfer, std::uint32_t member, Consequences& next);

  const graph::Graph& graph_;
  std::vector<Membership> member_of_;  // per op; empty when there is no transfer
  std::vector<Active> active_;         // per transfer
  std::vector<Slot> slots_;
  std::vector<Member> members_;
  Places slot_places_, member_places_;
};

}  // namespace rehearse::engine
