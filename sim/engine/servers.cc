#include "sim/engine/servers.h"

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
      queues_.push_back({.server = ServerId(i),
                         .waiting = Waiting(s.policy),
                         .free_slots = s.slots,
                         .freed_by = {}});
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

}  // namespace rehearse::engine
