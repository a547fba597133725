#include "sim/engine/first_come.h"

#include <algorithm>

namespace rehearse::engine {
FirstCome::FirstCome(const graph::Graph& graph, OnFailure on_failure)
    : graph_(graph), on_failure_(on_failure), free_at_(graph.capacities().size(), Picoseconds(0)) {}

std::optional<Picoseconds> FirstCome::through(const graph::Capacity& capacity, double work,
                                              Picoseconds begin) const {
  double rate = capacity.rate;
  double left = work;
  Picoseconds at = begin;
  for (const graph::RateChange& change : capacity.changes) {
    if (change.at > at) {
      const double until_change = (change.at - at).seconds().s() * rate;
      if (until_change >= left) break;
      left -= until_change;
      at = change.at;
      if (change.rate == 0 && on_failure_ == OnFailure::kFail) return std::nullopt;
      if (change.rate == 0 && on_failure_ == OnFailure::kRetry) left = work;
    }
    rate = change.rate;
  }
  const double wait = left / rate;
  if (!(wait < kForever)) return std::nullopt;
  return at + Picoseconds::from(Seconds::s(wait));
}

std::optional<Picoseconds> FirstCome::carry(const graph::Demand& demand, double work,
                                            Picoseconds now) {
  Picoseconds head = now;
  Picoseconds tail = now;
  for (const CapacityId id : demand.capacities) {
    const graph::Capacity& capacity = graph_.capacities()[id.index()];
    head = std::max(head, free_at_[id.index()]);
    const auto end = through(capacity, work, head);
    if (!end) {
      if (!stalled_) stalled_ = id;
      return std::nullopt;
    }
    free_at_[id.index()] = *end;
    tail = std::max(tail, *end);
  }
  return tail;
}

}  // namespace rehearse::engine
