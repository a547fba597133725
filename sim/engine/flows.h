// Flows: what moves through capacities now, and when each has moved its work.
//
// Flows with equal demands form a class: they get equal rates, so that a class needs one number for
// all of them, the *service* that each has had since the class began. A flow that joins at service
// s with work w leaves when the service reaches s + w. Where groups are served (kCoflow, kEchelon)
// flows of a group differ, and each is a class of its own.
//
// Classes that share a capacity, directly or through others, form a *component*. A join or a leave
// divides only its component anew. A flow that shares nothing with anyone (most messages of most
// collectives) is a component of its own, whose end is known when it begins: it costs one event and
// no division.
//
// Every component with something to come has one event in the queue: its next end, or the next
// change of a capacity.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/division.h"
#include "sim/engine/engine.h"
#include "sim/engine/event_queue.h"
#include "sim/graph/graph.h"

namespace rehearse::engine {

/// An op, or a message by its slot (messages.h).
struct FlowTag {
  bool is_message;
  std::uint32_t index;
};

class Flows {
 public:
  /// REQUIRES: `graph` and `events` outlive this object.
  Flows(const graph::Graph& graph, Division division, EventQueue& events);

  /// Takes a message that will flow from `begin` on, if it will be alone on its capacities as far
  /// as is known, and returns true. If another joins before `begin`, the message is handed back by
  /// an event kMessageBegins.
  bool begin_alone(std::uint32_t message, DemandId demand, double work, Picoseconds begin);

  /// A flow begins at `now`. The caller calls divide() at this instant, after all others join.
  void join(FlowTag tag, DemandId demand, double work, Picoseconds now);

  /// Divides anew the components that have changed.
  void divide(Picoseconds now);
  bool to_divide() const { return !changed_.empty(); }

  /// The event of a component: flows that have moved their work leave, in order of class and
  /// joining.
  void leave(std::uint32_t component, Picoseconds now, std::vector<FlowTag>& done);

  bool empty() const { return flowing_ == 0; }
  /// A capacity that keeps some flow at rate zero, for the message about a run that never ends.
  std::optional<CapacityId> stalled() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Flow {
    double leaves_at;  // service at which the work is done
    std::uint64_t sequence;
    FlowTag tag;
    bool operator<(const Flow& other) const {  // heaps keep the largest first
      return leaves_at != other.leaves_at ? leaves_at > other.leaves_at : sequence > other.sequence;
    }
  };
  struct Class {
    DemandId demand{0};
    bool active = false;
    double service = 0;       // work moved by each of its flows since the class began
    double rate = 0;          // of each of its flows
    Picoseconds at{0};        // of `service`; lies ahead for a flow alone that is to begin
    std::uint64_t since = 0;  // when it began, as a sequence number
    std::uint32_t component = kNone;
    std::vector<Flow> flows;  // a heap
  };
  struct Component {
    bool live = false;
    bool in_queue = false;
    bool alone = false;  // its only flow moves its work until its event
    std::vector<std::uint32_t> classes;
  };

  struct Ranked {
    std::int64_t rank;
    std::uint64_t since;
    std::uint32_t index;
    bool operator<(const Ranked& other) const {
      return rank != other.rank ? rank < other.rank : since < other.since;
    }
  };

  std::uint32_t class_for(DemandId demand);
  void activate(std::uint32_t c, Picoseconds at);
  void deactivate(std::uint32_t c);
  void hand_back_those_ahead(DemandId demand, Picoseconds now);
  void advance(Class& c, Picoseconds now);
  void gather(std::uint32_t seed, std::vector<std::uint32_t>& classes);
  void divide_component(std::vector<std::uint32_t>& classes, Picoseconds now);
  std::uint32_t new_component();
  void dissolve(std::uint32_t component);
  double rate_of(CapacityId capacity, Picoseconds now) const;

  const graph::Graph& graph_;
  const Division division_;
  EventQueue& events_;
  Divider divider_;
  std::vector<std::uint32_t> class_of_demand_;
  std::vector<Class> classes_;
  std::vector<std::uint32_t> free_classes_;              // of flows that were classes of their own
  std::vector<std::vector<std::uint32_t>> users_;        // per capacity: active classes
  std::vector<std::vector<std::uint32_t>> group_users_;  // per group, where groups are served
  std::vector<std::optional<Picoseconds>> group_began_;
  std::vector<Component> components_;
  std::vector<std::uint32_t> free_components_;
  std::vector<std::uint32_t> changed_;  // classes whose components are to be divided
  // While gathering: what was seen in this division.
  std::vector<std::uint32_t> seen_class_, seen_capacity_;
  std::uint32_t gathering_ = 0;
  std::vector<std::uint32_t> gathered_;
  std::vector<Ranked> ranked_;
  std::vector<Share> shares_;
  std::uint64_t sequence_ = 0;
  std::size_t flowing_ = 0;
};

}  // namespace rehearse::engine
