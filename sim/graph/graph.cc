#include "sim/graph/graph.h"

#include <functional>

#include <fmt/core.h>

#include "sim/graph/verify.h"

namespace rehearse::graph {

Op Graph::op(OpId id) const {
  return {.name = rows_[id.index()].name,
          .category = category(id),
          .duration = duration(id),
          .demand = demand_id(id),
          .work = work(id)};
}

namespace {

/// A hash of the members in which demands usually differ.
std::size_t hash(const Demand& demand) {
  std::size_t h = demand.server ? demand.server->index() + 1 : 0;
  const auto mix = [&h](std::size_t value) { h = (h ^ value) * 0x9e3779b97f4a7c15U; };
  for (const CapacityId c : demand.capacities) mix(c.index());
  for (const double units_per_work : demand.units_per_work)
    mix(std::hash<double>{}(units_per_work));
  mix(static_cast<std::uint32_t>(demand.priority));
  mix(demand.lease ? demand.lease->index() + 1 : 0);
  mix(demand.group ? demand.group->index() + 1 : 0);
  mix(demand.hold ? demand.hold->index() + 1 : 0);
  return h;
}

}  // namespace

GraphBuilder::GraphBuilder() : GraphBuilder(Graph{}) { add(Demand{}); }

GraphBuilder::GraphBuilder(Graph graph) : graph_(std::move(graph)) {
  edges_.reserve(graph_.edge_count());
  std::vector<std::uint32_t> in_degree(graph_.size(), 0);
  for (std::size_t i = 0; i < graph_.size(); ++i)
    for (const OpId to : graph_.successors(OpId(i))) {
      edges_.push_back({OpId(i), to});
      ++in_degree[to.index()];
    }
  for (std::size_t i = 0; i < graph_.size(); ++i)
    if (graph_.rows_[i].need != in_degree[i]) first_m_.emplace_back(OpId(i), graph_.rows_[i].need);
  for (std::size_t i = 0; i < graph_.demands_.size(); ++i)
    demand_of_hash_.emplace(hash(graph_.demands_[i]), DemandId(i));
}

ServerId GraphBuilder::add(Server server) {
  graph_.servers_.push_back(std::move(server));
  return ServerId(graph_.servers_.size() - 1);
}

CapacityId GraphBuilder::add(Capacity capacity) {
  graph_.capacities_.push_back(std::move(capacity));
  return CapacityId(graph_.capacities_.size() - 1);
}

DemandId GraphBuilder::add(Demand demand) {
  const std::size_t key = hash(demand);
  const auto [first, last] = demand_of_hash_.equal_range(key);
  for (auto known = first; known != last; ++known)
    if (graph_.demands_[known->second.index()] == demand) return known->second;
  const DemandId id(graph_.demands_.size());
  demand_of_hash_.emplace(key, id);
  graph_.demands_.push_back(std::move(demand));
  return id;
}

OpId GraphBuilder::add(Op op) {
  const OpId id(graph_.size());
  if (op.work != 0 && graph_.work_.empty()) graph_.work_.assign(graph_.size(), 0);
  const auto no_successor = static_cast<std::uint32_t>(graph_.successor_.size());
  graph_.rows_.resize(id.index());
  graph_.rows_.push_back({.duration = op.duration,
                          .name = op.name,
                          .demand = op.demand,
                          .first_successor = no_successor});
  graph_.rows_.push_back({.first_successor = no_successor});
  graph_.category_.push_back(op.category);
  if (op.work != 0 || !graph_.work_.empty()) graph_.work_.push_back(op.work);
  return id;
}

void GraphBuilder::wait_for_first(OpId op, std::uint32_t m) { first_m_.emplace_back(op, m); }

void GraphBuilder::set_duration(OpId op, Picoseconds duration) {
  graph_.set_duration(op, duration);
}

void GraphBuilder::set_work(OpId op, double work) {
  if (graph_.work_.empty()) graph_.work_.assign(graph_.size(), 0);
  graph_.work_[op.index()] = work;
}

void GraphBuilder::reserve(std::size_t ops, std::size_t edges) {
  graph_.rows_.reserve(ops + 1);
  graph_.category_.reserve(ops);
  edges_.reserve(edges);
}

Result<Graph> GraphBuilder::build() && {
  const std::size_t n = graph_.size();
  for (const Edge& e : edges_)
    if (e.from.index() >= n || e.to.index() >= n)
      return fail(
          fmt::format("edge {} -> {} leaves the graph of {} ops", e.from.index(), e.to.index(), n));

  // Successors are in order of id, so that ties in a run do not depend on the order in which edges
  // were added. Two counting sorts do it: by target and then, keeping that order, by source.
  std::vector<Graph::Row>& rows = graph_.rows_;
  rows.resize(n + 1);
  for (Graph::Row& row : rows) row.need = row.first_successor = 0;
  for (const Edge& e : edges_) ++rows[e.to.index()].need;
  std::vector<Edge> by_target(edges_.size(), Edge{OpId(0), OpId(0)});
  {
    std::vector<std::uint32_t> next(n, 0);
    for (std::size_t i = 1; i < n; ++i) next[i] = next[i - 1] + rows[i - 1].need;
    for (const Edge& e : edges_) by_target[next[e.to.index()]++] = e;
  }
  edges_ = {};
  for (const Edge& e : by_target) ++rows[e.from.index() + 1].first_successor;
  for (std::size_t i = 0; i < n; ++i) rows[i + 1].first_successor += rows[i].first_successor;
  graph_.successor_.assign(by_target.size(), OpId(0));
  std::vector<std::uint32_t> next;
  next.reserve(n);
  for (std::size_t i = 0; i < n; ++i) next.push_back(rows[i].first_successor);
  for (const Edge& e : by_target) graph_.successor_[next[e.from.index()]++] = e.to;
  by_target = {};

  for (const auto& [op, m] : first_m_) {
    if (m < 1 || m > rows[op.index()].need)
      return fail(fmt::format("op {} '{}' waits for the first {} of {} predecessors", op.index(),
                              graph_.name(op), m, rows[op.index()].need));
    rows[op.index()].need = m;
  }
  TRY(verify(graph_));
  return std::move(graph_);
}

}  // namespace rehearse::graph
