#include "sim/graph/verify.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace rehearse::graph {
namespace {

std::vector<std::uint32_t> in_degrees(const Graph& graph) {
  std::vector<std::uint32_t> degree(graph.size(), 0);
  for (std::size_t i = 0; i < graph.size(); ++i)
    for (const OpId to : graph.successors(OpId(i))) ++degree[to.index()];
  return degree;
}

std::string describe(const Graph& graph, OpId op) {
  return fmt::format("op {} '{}'", op.index(), graph.name(op));
}

/// Some cycle among the ops that a topological order could not reach.
std::string describe_cycle(const Graph& graph, const std::vector<OpId>& ordered) {
  std::vector<char> done(graph.size(), 0);
  for (const OpId op : ordered) done[op.index()] = 1;
  // Every remaining op has a remaining predecessor, so walking backwards must reach a cycle.
  std::vector<std::optional<OpId>> before(graph.size());
  std::optional<OpId> start;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (done[i]) continue;
    for (const OpId to : graph.successors(OpId(i)))
      if (!done[to.index()]) before[to.index()] = OpId(i);
    start = OpId(i);
  }
  std::vector<char> seen(graph.size(), 0);
  OpId at = *start;
  while (!seen[at.index()]) {
    seen[at.index()] = 1;
    at = *before[at.index()];
  }
  std::string text = describe(graph, at);
  constexpr int kShown = 6;
  int shown = 1;
  for (OpId step = *before[at.index()]; step != at; step = *before[step.index()])
    if (++shown <= kShown) text += fmt::format(" after {}", describe(graph, step));
  if (shown > kShown) text += fmt::format(" after {} more", shown - kShown);
  return text + " after itself";
}

Status verify_transfers(const Graph& graph) {
  std::vector<char> is_member(graph.transfers().empty() ? 0 : graph.size(), 0);
  for (std::size_t i = 0; i < graph.transfers().size(); ++i) {
    const Transfer& t = graph.transfers()[i];
    const auto wrong = [i](std::string_view what) {
      return fail(fmt::format("transfer {} {}", i, what));
    };
    if (!t.flows || !t.routes || t.routes->size() != t.flows->flows().size())
      return wrong("does not have one way per lane");
    if (t.members.size() != t.flows->members()) return wrong("does not have one op per member");
    if (!std::isfinite(t.size) || t.size < 0) return wrong("has a wrong size");
    for (const FlowRoute& route : *t.routes)
      if (route.demand.index() >= graph.demands().size() || route.latency < Picoseconds(0) ||
          !(route.extra >= 0) || !std::isfinite(route.extra))
        return wrong("has a way without a demand, or with a negative latency or work");
    for (const OpId op : t.members) {
      if (op.index() >= graph.size()) return wrong("has a member that is no op of the graph");
      if (std::exchange(is_member[op.index()], 1) || graph.work(op) > 0)
        return wrong(fmt::format("shares {} or moves work that it has", describe(graph, op)));
    }
  }
  return {};
}

/// Checks the amounts and the turns of each capacity.
Status verify_shares(const Graph& graph, const Demand& d) {
  const bool right =
      d.units_per_work.empty() ||
      (d.units_per_work.size() == d.capacities.size() &&
       std::ranges::all_of(d.units_per_work, [](double t) { return std::isfinite(t) && t > 0; }));
  if (!right)
    return fail("a demand takes a wrong share of a capacity",
                "for each of its capacities a finite number above zero");
  for (const CapacityId c : d.capacities)
    if (graph.capacities()[c.index()].turns && !d.group)
      return fail(
          fmt::format("a demand flows through capacity {}, which has turns, and has no group",
                      c.index()),
          "a group, whose turn it can be");
  return {};
}

Status verify_slots(const Graph& graph, const Server& s) {
  if (s.slots == 0 || s.turnaround < Picoseconds(0))
    return fail(fmt::format("server '{}' has {} slots and a turnaround of {} ps",
                            graph.names()[s.name], s.slots, s.turnaround.count()),
                "at least one slot and no negative time");
  if (s.slot_demands.empty()) return {};
  bool right = s.slot_demands.size() == s.slots && s.turnaround == Picoseconds(0);
  for (const DemandId d : s.slot_demands)
    right = right && d.index() < graph.demands().size() &&
            !graph.demands()[d.index()].capacities.empty();
  if (right) return {};
  return fail(fmt::format("server '{}' has {} slots and demands of {}", graph.names()[s.name],
                          s.slots, s.slot_demands.size()),
              "a demand with capacities for each slot, and no turnaround");
}

}  // namespace

std::vector<OpId> topological_order(const Graph& graph) {
  std::vector<std::uint32_t> waiting = in_degrees(graph);
  std::vector<OpId> order;
  order.reserve(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i)
    if (waiting[i] == 0) order.push_back(OpId(i));
  for (std::size_t at = 0; at < order.size(); ++at)
    for (const OpId to : graph.successors(order[at]))
      if (--waiting[to.index()] == 0) order.push_back(to);
  return order;
}

Status verify(const Graph& graph) {
  for (const Server& s : graph.servers()) TRY(verify_slots(graph, s));
  for (const Capacity& c : graph.capacities()) {
    bool right = std::isfinite(c.rate) && c.rate >= 0;
    Picoseconds last(0);
    for (const RateChange& change : c.changes) {
      right = right && std::isfinite(change.rate) && change.rate >= 0 && change.at >= last;
      last = change.at;
    }
    if (!right)
      return fail(fmt::format("capacity '{}' has a wrong rate", graph.names()[c.name]),
                  "finite rates that are not negative, changes in order of time");
    if (c.turns && (c.turns->quantum <= Picoseconds(0) || c.turns->change < Picoseconds(0)))
      return fail(
          fmt::format("capacity '{}' has turns of {} ps, and {} ps between them",
                      graph.names()[c.name], c.turns->quantum.count(), c.turns->change.count()),
          "turns that take time, and no negative time");
  }
  for (const Demand& d : graph.demands()) {
    if (d.server && d.server->index() >= graph.servers().size())
      return fail(fmt::format("a demand names server {}, which does not exist", d.server->index()));
    for (const CapacityId c : d.capacities)
      if (c.index() >= graph.capacities().size())
        return fail(fmt::format("a demand names capacity {}, which does not exist", c.index()));
    TRY(verify_shares(graph, d));
    if (!(d.weight > 0) || !std::isfinite(d.weight) || !(d.rate_cap > 0))
      return fail(fmt::format("a demand has weight {} and rate cap {}", d.weight, d.rate_cap),
                  "both above zero");
    if (!d.hold) continue;
    const bool known = d.hold->index() < graph.demands().size();
    const Demand* held = known ? &graph.demands()[d.hold->index()] : nullptr;
    if (!held || held->capacities.empty() || !std::isfinite(held->rate_cap) || held->hold)
      return fail(fmt::format("a demand holds demand {}", d.hold->index()),
                  "a demand with capacities and a rate cap that holds nothing itself");
  }

  TRY(verify_transfers(graph));
  std::vector<std::optional<OpId>> last_source(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const OpId op(i);
    if (graph.demand_id(op).index() >= graph.demands().size())
      return fail(describe(graph, op) + " has a demand that does not exist");
    if (graph.duration(op) < Picoseconds(0))
      return fail(fmt::format("{} has a negative duration of {} ps", describe(graph, op),
                              graph.duration(op).count()));
    const double work = graph.work(op);
    if (!std::isfinite(work) || work < 0)
      return fail(fmt::format("{} has work {}", describe(graph, op), work),
                  "a finite amount that is not negative");
    const auto& server = graph.demand(op).server;
    const bool of_slot = server && !graph.servers()[server->index()].slot_demands.empty();
    if (work > 0 && !of_slot && graph.demand(op).capacities.empty())
      return fail(describe(graph, op) + " has work but no capacity to carry it");
    for (const OpId to : graph.successors(op)) {
      if (last_source[to.index()] == op)
        return fail(fmt::format("the edge from {} to {} appears twice", describe(graph, op),
                                describe(graph, to)));
      last_source[to.index()] = op;
    }
  }
  if (const std::vector<OpId> order = topological_order(graph); order.size() < graph.size())
    return fail("the graph has a cycle: " + describe_cycle(graph, order));
  return {};
}

}  // namespace rehearse::graph
