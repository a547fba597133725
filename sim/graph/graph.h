// Graph: ops, their order, and the resources that they use.
//
// A vertex is an *op*. It waits for its predecessors (all of them, or the first m), then for its
// server, then takes its duration, then moves its work through its capacities. When that is done
// its successors may start. There are exactly two kinds of resource:
//   - a *server* serves ops one at a time on each of its slots: a stream, a host thread, a copy
//     engine, a pool of workers;
//   - a *capacity* is divided among the ops that flow through it: a link, a memory bus.
// The resources that an op requests are its *demand*; equal demands are one entry of a table.
//
// Invariants of a Graph (GraphBuilder::build checks them, verify.h):
//  1. Ids are dense and in range; op ids are in the order in which ops were added.
//  2. Edges are acyclic and unique; the successors of an op are in order of id.
//  3. Durations and work are finite and not negative; work has at least one capacity, and a group
//     if a capacity has turns. A held demand has capacities and a rate cap, and holds nothing
//     itself.
//  4. The members of a transfer are ops of the graph, each of one transfer at most and without work
//     of its own; there is a route for each of its flows.
//  5. An op that waits for the first m of its predecessors has at least m of them, and m >= 1.
//
// A Graph is a value of immutable structure, which can be copied and compared as text
// (docs/formats/graph.md). Its times may change; a GraphBuilder on it rewrites it. All data of an op
// that a run reads are one row, because each stream of a run reads on at a place of its own; see
// docs/performance.md for bytes per op.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/names.h"
#include "sim/base/result.h"
#include "sim/base/time.h"
#include "sim/graph/category.h"
#include "sim/graph/message_flows.h"

namespace rehearse::graph {

/// The order of service when several ops wait for one server. Ties go to the op that requested
/// first.
enum class Policy : std::uint8_t {
  kFifo,      ///< in the order of request
  kPriority,  ///< the highest Demand::priority first; a running op is never interrupted
  kLease,     ///< one lease at a time, from its first op to its last; see Demand::lease
};

struct Server {
  NameId name;
  std::uint32_t slots = 1;
  Policy policy = Policy::kFifo;
  /// Least time between the end of one op and the start of the next on the same slot.
  Picoseconds turnaround{0};
  /// The demand of each slot, with which the work of an op on this slot flows: threads bound to
  /// cores. Empty: an op's work flows with its own demand. An op takes the first free slot.
  std::vector<DemandId> slot_demands = {};
};

/// From `at` on, a capacity offers `rate`.
struct RateChange {
  Picoseconds at;
  double rate;
};

/// Flows through a capacity take turns: at any time the flows of one group (Demand::group)
/// proceed, and those of others wait. Groups follow each other in order of their ids.
struct Turns {
  Picoseconds quantum;  ///< how long a turn lasts while others wait
  /// The time from one turn to the next, in which nothing flows. A turn without flows is kept for
  /// the same time before others get it, so that it outlives the gap between two ops.
  Picoseconds change{0};

  friend bool operator==(const Turns&, const Turns&) = default;
};

/// Work per second, in the unit of the ops' work (bytes for a link). Ops that flow through it share
/// it: strictly by priority, and within one priority in proportion to their weights (max-min fair
/// where other limits leave some op less than its share).
struct Capacity {
  NameId name;
  double rate;
  std::vector<RateChange> changes = {};  ///< in order of time; empty for a constant rate
  std::optional<Turns> turns = {};
};

/// The resources that an op requests. Without server and capacities it is a pure delay.
struct Demand {
  std::optional<ServerId> server = {};
  std::vector<CapacityId> capacities = {};
  /// Amount of each of the capacities per unit of the op's work; empty: one each.
  std::vector<double> units_per_work = {};
  double weight = 1;
  double rate_cap = std::numeric_limits<double>::infinity();  ///< work per second of one op
  std::int32_t priority = 0;  ///< higher first, on the server and in the capacities
  /// On a server with Policy::kLease: the set of ops served without others in between. The lease
  /// begins with its first op and ends when every op of the graph with this lease has run.
  std::optional<LeaseId> lease = {};
  /// The group of flows that belong together, where capacities are divided by groups (engine.h) or
  /// by turns, and the time when this one should end, counted from the first flow of its group.
  std::optional<FlowGroupId> group = {};
  Picoseconds due{0};
  /// From its start to its end the op also flows with this demand, without a limit of work: a
  /// collective that takes part of its device while it lasts.
  std::optional<DemandId> hold = {};

  double units_taken(std::size_t capacity) const {
    return units_per_work.empty() ? 1 : units_per_work[capacity];
  }

  friend bool operator==(const Demand&, const Demand&) = default;
};

struct Op {
  NameId name;
  Category category;
  Picoseconds duration;
  DemandId demand = DemandId(0);  ///< 0 is the empty demand of every graph
  double work = 0;                ///< carried through the demand's capacities, after `duration`
};

/// The route of the messages of a flow.
struct FlowRoute {
  DemandId demand;  ///< the capacities they flow through; without any they only take the latency
  Picoseconds latency;  ///< from leaving until they flow
  double extra = 0;     ///< work of each message in addition to its share of the size
};

/// A collective that the run carries message by message. Each member is an op, which begins to take
/// part after its duration and ends with the last message from or to it.
struct Transfer {
  std::shared_ptr<const MessageFlows> flows;
  std::shared_ptr<const std::vector<FlowRoute>> routes;  ///< one per flow
  std::vector<OpId> members = {};                        ///< one per member of the flows
  double size;                                           ///< work; flows carry shares of it
};

class Graph {
 public:
  std::size_t size() const { return category_.size(); }
  std::size_t edge_count() const { return successor_.size(); }

  Op op(OpId id) const;
  std::string_view name(OpId id) const { return names_[rows_[id.index()].name]; }
  Category category(OpId id) const { return category_[id.index()]; }
  Picoseconds duration(OpId id) const { return rows_[id.index()].duration; }
  double work(OpId id) const { return work_.empty() ? 0 : work_[id.index()]; }
  DemandId demand_id(OpId id) const { return rows_[id.index()].demand; }
  const Demand& demand(OpId id) const { return demands_[demand_id(id).index()]; }
  /// The number of predecessors that must end before the op may start.
  std::uint32_t need(OpId id) const { return rows_[id.index()].need; }
  std::span<const OpId> successors(OpId id) const {
    return {successor_.data() + rows_[id.index()].first_successor,
            successor_.data() + rows_[id.index() + 1].first_successor};
  }
  /// Prefetches the data that the functions above read of this op and the next.
  void prefetch(OpId id) const {
    __builtin_prefetch(rows_.data() + id.index());
    __builtin_prefetch(rows_.data() + id.index() + 2);
  }
  /// True when no op carries work, so that capacities play no part for it.
  bool without_work() const { return work_.empty(); }
  std::span<const Transfer> transfers() const { return transfers_; }

  /// REQUIRES: not negative.
  void set_duration(OpId op, Picoseconds duration) { rows_[op.index()].duration = duration; }
  /// REQUIRES: the demands of the present routes, and latencies that are not negative.
  void set_routes(std::size_t transfer, std::shared_ptr<const std::vector<FlowRoute>> routes) {
    transfers_[transfer].routes = std::move(routes);
  }

  const NamePool& names() const { return names_; }
  std::span<const Server> servers() const { return servers_; }
  std::span<const Capacity> capacities() const { return capacities_; }
  std::span<const Demand> demands() const { return demands_; }

 private:
  friend class GraphBuilder;

  NamePool names_;
  std::vector<Server> servers_;
  std::vector<Capacity> capacities_;
  std::vector<Demand> demands_;
  std::vector<Transfer> transfers_;

  struct Row {
    Picoseconds duration{0};
    NameId name{0};
    DemandId demand{0};
    std::uint32_t need = 0;
    std::uint32_t first_successor = 0;  // in successor_
  };
  std::vector<Row> rows_;  // of each op, and one at the end where successors end
  std::vector<Category> category_;
  std::vector<double> work_;  // empty when no op has any
  std::vector<OpId> successor_;
};

struct Edge {
  OpId from;
  OpId to;
};

class GraphBuilder {
 public:
  GraphBuilder();
  /// Starts from an existing graph: ids of its ops, names and resources are unchanged.
  explicit GraphBuilder(Graph graph);

  NameId intern(std::string_view name) { return graph_.names_.intern(name); }
  ServerId add(Server server);
  CapacityId add(Capacity capacity);
  /// Equal demands get one id.
  DemandId add(Demand demand);
  OpId add(Op op);
  void add(Transfer transfer) { graph_.transfers_.push_back(std::move(transfer)); }
  void add_edge(OpId from, OpId to) { edges_.push_back({from, to}); }
  /// The op starts after the first `m` of its predecessors instead of all of them.
  void wait_for_first(OpId op, std::uint32_t m);

  std::size_t size() const { return graph_.size(); }
  const Graph& so_far() const { return graph_; }  ///< its edges are those of the graph started from
  void set_duration(OpId op, Picoseconds duration);
  void set_work(OpId op, double work);
  void set_demand(OpId op, DemandId demand) { graph_.rows_[op.index()].demand = demand; }
  void reserve(std::size_t ops, std::size_t edges);

  /// Verifies and returns the graph. An error names the first op that breaks an invariant.
  Result<Graph> build() &&;

 private:
  Graph graph_;
  std::vector<Edge> edges_;
  std::vector<std::pair<OpId, std::uint32_t>> first_m_;
  std::unordered_multimap<std::size_t, DemandId> demand_of_hash_;
};

}  // namespace rehearse::graph
