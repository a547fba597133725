// Servers: where each op of a run requests service, and which op holds each slot.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "sim/engine/waiting.h"
#include "sim/graph/graph.h"

namespace rehearse::engine {

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
  std::optional<OpId> freed_by;
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

}  // namespace rehearse::engine
