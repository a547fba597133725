// FirstCome: capacities that carry one message at a time, in the order in which messages are sent.
#pragma once

#include <optional>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/graph/graph.h"

namespace rehearse::engine {

class FirstCome {
 public:
  /// REQUIRES: `graph` outlives this object.
  FirstCome(const graph::Graph& graph, OnFailure on_failure);

  /// When the last byte of a message that leaves at `now` is through its capacities. The message
  /// takes each of them for work ÷ rate, from the moment it is free and the one before has begun to
  /// pass it on (cut-through: a capacity does not wait for the whole message). Nothing when a
  /// capacity's rate stays zero, or drops to zero under OnFailure::kFail.
  std::optional<Picoseconds> carry(const graph::Demand& demand, double work, Picoseconds now);

  /// The capacity that made carry() return nothing, first of all.
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
