// Servers: where each op of a run requests service, and which op holds each slot.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <vector>

#include "sim/base/ids.h"
#include "sim/engine/engine.h"
#include "sim/graph/graph.h"

namespace rehearse::engine {

/// The ops that wait for a server, in the order that its policy serves them.
class Waiting {
 public:
  explicit Waiting(graph::Policy policy) : policy_(policy) {}

  /// Announces that an op with this lease will come (kLease only), before or during the run.
  void announce(const graph::Demand& demand);
  void push(OpId op, const graph::Demand& demand);
  /// Removes and returns the op to serve now; nothing if none waits or none may start before the
  /// lease ends.
  std::optional<OpId> pop();
  /// An op that was served has ended.
  void ended(const graph::Demand& demand);

  bool empty() const { return size_ == 0; }
  /// The op that pop() would return now, if it is known without a search.
  std::optional<OpId> first() const {
    if (policy_ == graph::Policy::kFifo && !fifo_.empty()) return fifo_.front();
    if (policy_ == graph::Policy::kPriority && !ranked_.empty())
      return ranked_.begin()->second.front();
    return std::nullopt;
  }
  /// The lease that is being served.
  std::optional<LeaseId> holder() const { return holder_; }

 private:
  graph::Policy policy_;
  std::size_t size_ = 0;
  std::deque<OpId> fifo_;  // kFifo
  /// kPriority: in order of request, the highest priority first. There are few priorities with many
  /// ops.
  std::map<std::int32_t, std::deque<OpId>, std::greater<>> ranked_;

  // kLease. An op without a lease is a lease of its own, kept under no id.
  struct Lease {
    std::size_t to_end = 0;  // announced ops that have not ended
    std::deque<OpId> waiting;
  };
  std::map<LeaseId, Lease> leases_;
  std::deque<std::pair<std::optional<LeaseId>, OpId>> asked_;  // in order of asking
  std::optional<LeaseId> holder_;
  bool single_running_ = false;  // an op without a lease holds the server
};

/// A first-come server with one slot whose ops have known durations needs no queue: when an op
/// requests it, its start is already known.
struct Reserved {
  Picoseconds turnaround;
  Picoseconds free_at{0};
  std::optional<OpId> last = {};
};

/// Any other server.
struct Queue {
  ServerId server;
  Waiting waiting;
  std::uint32_t free_slots;
  bool grant_scheduled = false;
  std::optional<OpId> freed_by = {};
  /// The free slots of a server whose slots have demands, the first on top.
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free = {};
};

/// The server that serves ops with a given demand.
struct Place {
  enum Kind : std::uint32_t { kNoServer, kReserved, kQueued } kind = kNoServer;
  std::uint32_t index = 0;  // among the reserved or the queued servers
};

class Servers {
 public:
  /// Announces the ops of the graph to the servers with leases.
  explicit Servers(const graph::Graph& graph);

  const Place& place(DemandId demand) const { return place_of_demand_[demand.index()]; }
  Reserved& reserved(std::uint32_t index) { return reserved_[index]; }

  /// The queue of the server for this demand, if it has one.
  Queue* queue_of(DemandId demand) {
    const Place& at = place(demand);
    return at.kind == Place::kQueued ? &queues_[at.index] : nullptr;
  }
  /// Queues by number, for events that carry one.
  Queue& queue(std::uint32_t number) { return queues_[number]; }
  const Queue& queue(std::uint32_t number) const { return queues_[number]; }
  std::uint32_t number_of(const Queue& queue) const {
    return static_cast<std::uint32_t>(&queue - queues_.data());
  }

 private:
  std::vector<Place> place_of_demand_;
  std::vector<Reserved> reserved_;
  std::vector<Queue> queues_;
};

/// Capacities that carry one message at a time, in the order in which messages are sent.
class FirstCome {
 public:
  /// REQUIRES: `graph` outlives this object.
  FirstCome(const graph::Graph& graph, OnFailure on_failure);

  /// The time at which the last byte of a message that leaves at `now` is through its capacities.
  /// The message takes each capacity for work ÷ rate, from the moment that it is free and the
  /// previous one has begun to pass the message on (cut-through: a capacity does not wait for the
  /// whole message). Nothing if a capacity's rate stays zero, or drops to zero under
  /// OnFailure::kFail.
  std::optional<Picoseconds> carry(const graph::Demand& demand, double work, Picoseconds now);

  /// The first capacity that made carry() return nothing.
  std::optional<CapacityId> stalled() const { return stalled_; }

 private:
  std::optional<Picoseconds> through(const graph::Capacity& capacity, double work,
                                     Picoseconds begin) const;

  const graph::Graph& graph_;
  const OnFailure on_failure_;
  std::vector<Picoseconds> free_at_;
  std::optional<CapacityId> stalled_;
};

}  // namespace rehearse::engine
