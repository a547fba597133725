#include "sim/engine/servers.h"

#include <algorithm>

namespace rehearse::engine {

namespace {

using graph::Demand;
using graph::Graph;

/// Servers of ops whose ends are not known when they start.
std::vector<char> with_unknown_ends(const Graph& graph) {
  std::vector<char> unknown(graph.servers().size(), 0);
  for (const Demand& d : graph.demands())
    if (d.server && ((!graph.without_work() && !d.capacities.empty()) || d.hold))
      unknown[d.server->index()] = 1;
  for (const graph::Transfer& transfer : graph.transfers())
    for (const OpId op : transfer.members)
      if (const auto& server = graph.demand(op).server) unknown[server->index()] = 1;
  for (std::size_t i = 0; i < unknown.size(); ++i)
    if (!graph.servers()[i].slot_demands.empty()) unknown[i] = 1;
  return unknown;
}

}  // namespace

Servers::Servers(const Graph& graph) {
  const auto servers = graph.servers();
  const std::vector<char> unknown_ends = with_unknown_ends(graph);
  std::vector<Place> place_of_server(servers.size());
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const graph::Server& s = servers[i];
    Place& place = place_of_server[i];
    if (s.policy == graph::Policy::kFifo && s.slots == 1 && !unknown_ends[i]) {
      place.kind = Place::kReserved;
      place.index = static_cast<std::uint32_t>(reserved_.size());
      reserved_.push_back({.turnaround = s.turnaround});
    } else {
      place.kind = Place::kQueued;
      place.index = static_cast<std::uint32_t>(queues_.size());
      queues_.push_back(
          {.server = ServerId(i), .waiting = Waiting(s.policy), .free_slots = s.slots});
      for (std::uint32_t slot = 0; slot < s.slot_demands.size(); ++slot)
        queues_.back().free.push(slot);
    }
  }
  bool leases = false;
  for (const Demand& d : graph.demands()) {
    place_of_demand_.push_back(d.server ? place_of_server[d.server->index()] : Place{});
    leases = leases || d.lease;
  }
  if (!leases) return;
  for (std::size_t i = 0; i < graph.size(); ++i)
    if (Queue* queue = queue_of(graph.demand_id(OpId(i))))
      queue->waiting.announce(graph.demand(OpId(i)));
}

using graph::Policy;

void Waiting::announce(const graph::Demand& demand) {
  if (policy_ == Policy::kLease && demand.lease) ++leases_[*demand.lease].to_end;
}

void Waiting::push(OpId op, const graph::Demand& demand) {
  ++size_;
  switch (policy_) {
    case Policy::kFifo: fifo_.push_back(op); return;
    case Policy::kPriority: ranked_[demand.priority].push_back(op); return;
    case Policy::kLease:
      asked_.emplace_back(demand.lease, op);
      if (demand.lease) leases_[*demand.lease].waiting.push_back(op);
      return;
  }
}

std::optional<OpId> Waiting::pop() {
  if (size_ == 0) return std::nullopt;
  if (policy_ == Policy::kFifo) {
    const OpId op = fifo_.front();
    fifo_.pop_front();
    --size_;
    return op;
  }
  if (policy_ == Policy::kPriority) {
    const auto highest = ranked_.begin();
    const OpId op = highest->second.front();
    highest->second.pop_front();
    if (highest->second.empty()) ranked_.erase(highest);
    --size_;
    return op;
  }
  if (single_running_) return std::nullopt;
  if (!holder_) {
    // Entries of ops that were served under their lease are skipped: their lease has ended.
    while (!asked_.empty() && asked_.front().first && !leases_.contains(*asked_.front().first))
      asked_.pop_front();
    const auto [lease, op] = asked_.front();
    if (!lease) {
      asked_.pop_front();
      single_running_ = true;
      --size_;
      return op;
    }
    holder_ = lease;
  }
  Lease& lease = leases_[*holder_];
  if (lease.waiting.empty()) return std::nullopt;
  const OpId op = lease.waiting.front();
  lease.waiting.pop_front();
  --size_;
  return op;
}

void Waiting::ended(const graph::Demand& demand) {
  if (policy_ != Policy::kLease) return;
  if (!demand.lease) {
    single_running_ = false;
    return;
  }
  Lease& lease = leases_[*demand.lease];
  if (--lease.to_end > 0) return;
  leases_.erase(*demand.lease);
  holder_.reset();
}

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
