// Turn: the group of flows that currently uses a capacity with turns (graph::Turns).
#pragma once

#include <optional>
#include <span>

#include "sim/graph/graph.h"

namespace rehearse::engine {

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

}  // namespace rehearse::engine
