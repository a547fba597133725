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
