// Flows: work that moves through capacities now, and the time at which each flow ends.
//
// Flows with equal demands form a class: they have equal rates, so that a class needs one number
// for all of them, the *service* that each has received since the class began. A flow that joins at
// service s with work w leaves when the service reaches s + w. If groups are served (kCoflow,
// kEchelon) flows of a group differ, and each is a class of its own.
//
// Classes that share a capacity, directly or through others, form a *component*. A join or a leave
// divides only its component again. Every component with future events has one event in the
// queue: its next end, or the next change of a capacity. If only leaves happened and a search finds
// the affected capacities still connected, the component keeps its classes; otherwise they are
// gathered again, because it may have split. A component that stays connected keeps all rates that
// its last division fixed before the first of those that left (division.h), and only flows whose
// rates are fixed again are touched.
//
// A message that slows no other (most messages of most collectives) has no class: its end is known
// when it begins, and costs one event and no division. A capacity carries several such messages if
// it carries all of them at the rate that each has alone, as for the flows of a tree, each with a
// part of the port. They become flows of classes when one joins that does not fit. Their events in
// the queue are then stale and no later than their true ends, because sharing never makes a flow
// faster.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/division.h"
#include "sim/engine/engine.h"
#include "sim/engine/event_queue.h"
#include "sim/graph/graph.h"

namespace rehearse::engine {

/// The group of flows that currently uses a capacity with turns (graph::Turns).
class Turn {
 public:
  explicit Turn(const graph::Turns& law) : law_(law) {}

  /// Advances to `now`; `there` are the groups that flow, or would, in any order and with
  /// duplicates. Returns the time of the next call that is needed, if no group comes or goes
  /// before. REQUIRES: not before the last `now`; `there` is not empty.
  std::optional<Picoseconds> at(Picoseconds now, std::span<const FlowGroupId> there);

  void left(FlowGroupId group, Picoseconds now) {
    if (group == holder_) idle_since_ = now;
  }

  /// The current holder. Nothing between two turns, and before the first.
  std::optional<FlowGroupId> holder() const { return changes_at_ ? std::nullopt : holder_; }

 private:
  graph::Turns law_;
  std::optional<FlowGroupId> holder_;  // while turns change, the next
  std::optional<Picoseconds> changes_at_;
  Picoseconds since_{0};
  Picoseconds idle_since_{0};  // of a holder without flows
};

/// An op, or a message by its slot (messages.h).
struct FlowTag {
  bool is_message;
  std::uint32_t index;
  friend bool operator==(const FlowTag&, const FlowTag&) = default;
};

class Flows {
 public:
  /// REQUIRES: `graph` and `events` outlive this object.
  Flows(const graph::Graph& graph, const RunOptions& options, EventQueue& events);

  /// Takes a message that will flow from `begin` on and returns true, if, as far as is known, its
  /// capacities carry it alongside all others at the rate that it has alone. It ends with an event
  /// kMessageEnds. If another message joins before `begin`, an event kMessageBegins hands the
  /// message back instead.
  bool begin_alone(std::uint32_t message, DemandId demand, double work, Picoseconds begin);

  /// Handles an event kMessageEnds. False if it is stale.
  bool ends_alone(std::uint32_t message);

  /// A flow begins at `now`. The caller calls divide() at this instant, after all others join. Work
  /// without end is infinite.
  void join(FlowTag tag, DemandId demand, double work, Picoseconds now);

  /// A flow ends before it has moved its work; the caller calls divide() at this instant.
  /// REQUIRES: it has joined and not left.
  void withdraw(FlowTag tag, DemandId demand, Picoseconds now);

  /// Divides anew the components that have changed.
  void divide(Picoseconds now);
  bool to_divide() const { return !changed_.empty(); }

  /// The event of a component: flows that have moved their work leave, in order of class and
  /// joining.
  void leave(std::uint32_t component, Picoseconds now, std::vector<FlowTag>& done);

  bool empty() const { return flowing_ == 0; }
  std::span<const CapacityId> capacities_of(DemandId demand) const {
    return divider_.capacities_of(demand);
  }
  /// Under OnFailure::kFail, the first capacity that failed with work on it.
  std::optional<CapacityId> failed() const { return failed_; }
  /// A capacity that keeps some flow at rate zero, for the message about a run that never ends.
  std::optional<CapacityId> stalled() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr Picoseconds kNever{std::numeric_limits<std::int64_t>::max()};
  struct Flow {
    double leaves_at;  // service at which the work is done
    double work;
    std::uint64_t sequence;
    FlowTag tag;
    bool operator<(const Flow& other) const {  // heaps keep the largest first
      return leaves_at != other.leaves_at ? leaves_at > other.leaves_at : sequence > other.sequence;
    }
  };
  struct Class {
    DemandId demand{0};
    std::uint32_t component = kNone;
    std::uint64_t since = 0;  // when it began, as a sequence number
    std::vector<Flow> flows;  // a heap
    bool active = false;
  };
  struct Component {
    bool live = false;
    bool in_queue = false;
    bool changed = false;                // flows have left since it was divided; see Change
    std::vector<std::uint32_t> classes;  // is_before(); some have left if `component` differs
    std::vector<CapacityId> capacities;
    std::optional<Picoseconds> next_change;  // of the capacities
    Filling filling;
    double most_service = 0;  // at which a flow leaves; an upper bound
    // Since it was divided: classes with fewer flows, the first step that fixed one of them, and
    // the capacities of classes without flows.
    std::vector<std::uint32_t> left;
    std::size_t first_left = 0;
    std::vector<CapacityId> left_behind;
  };
  /// A pending division: the component of a class, or a component that flows have left.
  struct Change {
    std::uint32_t class_index = kNone;
    std::uint32_t component = kNone;
  };

  std::uint32_t class_for(DemandId demand);
  void activate(std::uint32_t c, Picoseconds at);
  void deactivate(std::uint32_t c);
  void meet_those_alone(DemandId demand, Picoseconds now);
  bool is_done(std::uint32_t c) const;
  bool leave_class(std::uint32_t c, std::vector<FlowTag>& done);
  void begin_anew(std::uint32_t c);
  void put(std::uint32_t c, double remaining, double work, FlowTag tag);
  void first_changed(std::uint32_t c);
  void gather(std::uint32_t seed);
  bool still_connected(const Component& component);
  void divide_component(std::uint32_t component, Picoseconds now);
  void divide_rest(std::uint32_t component, Picoseconds now);
  void schedule(std::uint32_t component, Picoseconds now);
  /// The order of classes in a component: by falling priority, then by age.
  auto is_before() const {
    return [this](std::uint32_t a, std::uint32_t b) {
      const std::int32_t pa = shares_[a].priority, pb = shares_[b].priority;
      return pa != pb ? pa > pb : classes_[a].since < classes_[b].since;
    };
  }
  std::uint32_t new_component();
  void dissolve(std::uint32_t component);
  void offer(const std::vector<CapacityId>& capacities, Picoseconds now);
  Turn* turn_of(CapacityId capacity) {
    return turns_.empty() || !turns_[capacity.index()] ? nullptr : &*turns_[capacity.index()];
  }
  /// Whether it is the turn of other groups.
  bool stands_still(const graph::Demand& demand);

  const graph::Graph& graph_;
  const Division division_;
  const OnFailure on_failure_;
  EventQueue& events_;
  Divider divider_;
  // By demand: the rate of one flow, 0 where no message may be taken as alone; and its parts.
  std::vector<double> rate_alone_;
  std::vector<std::uint32_t> first_taken_;

  struct Alone {
    Picoseconds begin{0};
    double work = 0;
    DemandId demand{0};
    std::uint32_t stale = 0;  // events in the queue that no longer hold
    bool active = false;
  };
  /// The state of a capacity.
  struct Port {
    // Messages without a class, in order. There is rarely more than the first, kept in place.
    std::uint32_t first_alone = kNone;
    std::uint32_t users = 0;  // active classes
    std::vector<std::uint32_t> others_alone;
    double reserved = 0;  // what those messages take together
    double most = 0;      // that they may take; more than the rate by the rounding of sums
  };
  /// What one message alone takes of a capacity.
  struct Taken {
    CapacityId capacity;
    double rate;
  };
  std::vector<Alone> alone_;  // by message
  std::vector<Port> ports_;   // per capacity
  std::vector<Taken> taken_alone_;
  std::span<const Taken> taken_alone(DemandId demand) const {
    return {taken_alone_.data() + first_taken_[demand.index()],
            taken_alone_.data() + first_taken_[demand.index() + 1]};
  }
  void forget_alone(Alone& alone);

  std::vector<std::optional<Turn>> turns_;  // per capacity; empty where none has turns
  std::vector<FlowGroupId> waiting_;        // while a turn is requested: groups that flow, or would
  std::vector<std::uint32_t> class_of_demand_;
  std::vector<Class> classes_;
  std::vector<Share> shares_;                            // by class
  std::vector<std::uint32_t> free_classes_;              // of flows that were classes of their own
  std::vector<std::vector<std::uint32_t>> users_;        // per capacity: active classes, by age
  std::vector<std::vector<std::uint32_t>> group_users_;  // per group, where groups are served
  std::vector<std::optional<Picoseconds>> group_began_;
  // By number. A component that was dissolved before its event is no more than its number.
  std::vector<std::unique_ptr<Component>> components_;
  std::vector<std::uint32_t> free_components_;
  std::vector<std::unique_ptr<Component>> spare_;
  std::vector<Change> changed_;
  // While gathering: classes and capacities seen in this division.
  std::vector<std::uint32_t> seen_class_, seen_capacity_;
  std::uint32_t gathering_ = 0;
  // The same for a search of a component's connections; `wanted_` holds its targets.
  std::vector<std::uint32_t> reached_capacity_, wanted_;
  std::uint32_t searching_ = 0;
  std::vector<CapacityId> reached_;
  std::vector<std::uint32_t> gathered_;
  std::vector<CapacityId> gathered_capacities_;
  std::vector<std::uint32_t> sharing_;      // the classes of a component whose turn it is
  std::optional<Picoseconds> next_change_;  // of the capacities that were seen
  std::vector<CapacityId> failing_;         // capacities that were seen and fail at this instant
  std::optional<CapacityId> failed_;
  std::uint64_t sequence_ = 0;
  std::size_t flowing_ = 0;
};

}  // namespace rehearse::engine
