#include "models/sharing/tenants.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "models/sharing/lease_turns.h"
#include "sim/base/check.h"
#include "sim/base/spans.h"
#include "sim/engine/engine.h"
#include "sim/graph/verify.h"

namespace rehearse::sharing {

using graph::Category;
using graph::Demand;
using graph::FlowRoute;
using graph::Graph;
using graph::GraphBuilder;
using graph::Op;

namespace {

using graph::Timeline;

struct TurnPlan {
  struct Turn {
    std::vector<OpId> ops;  ///< of one period, in the order in which they begin when alone
  };
  std::vector<Turn> turns;  ///< of a period, in order; the first may have no ops
  /// The first turn continues what the last turn of the previous period began.
  bool joined = false;
};

/// The times in which some op of these runs.
Spans busy(const std::vector<OpId>& ops, const Timeline& timeline) {
  std::vector<Span> spans;
  for (const OpId op : ops) spans.push_back({timeline[op].start, timeline[op].end});
  return Spans(std::move(spans));
}

/// Ops in the order in which they begin; at equal times, predecessors come first.
std::vector<OpId> by_begin(const Tenant& tenant, std::vector<OpId> ops, const Timeline& timeline) {
  std::vector<std::size_t> rank(tenant.graph.size());
  const std::vector<OpId> order = graph::topological_order(tenant.graph);
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i].index()] = i;
  std::sort(ops.begin(), ops.end(), [&](OpId a, OpId b) {
    return std::pair(timeline[a].start, rank[a.index()]) <
           std::pair(timeline[b].start, rank[b.index()]);
  });
  return ops;
}

std::vector<Picoseconds> bounds_of(const Tenant& tenant, const Timeline& timeline) {
  std::vector<Picoseconds> bounds;
  for (const OpId op : tenant.step_bounds) bounds.push_back(timeline[op].end);
  std::sort(bounds.begin(), bounds.end());
  return bounds;
}

/// Starts a new turn for ops that begin at one of these instants or later.
TurnPlan cut(const std::vector<OpId>& ops, const Timeline& timeline,
             const std::vector<Picoseconds>& at) {
  TurnPlan plan;
  plan.turns.resize(at.size() + 1);
  std::size_t turn = 0;
  for (const OpId op : ops) {
    while (turn < at.size() && timeline[op].start >= at[turn]) ++turn;
    plan.turns[turn].ops.push_back(op);
  }
  return plan;
}

/// The points in each of its steps where the tenant communicates longest without computing.
std::vector<Picoseconds> synchronisations(const Tenant& tenant, const std::vector<OpId>& kernels,
                                          const Timeline& timeline) {
  std::vector<OpId> communication;
  for (std::size_t i = 0; i < tenant.graph.size(); ++i)
    if (tenant.graph.category(OpId(i)) == Category::kCommunication)
      communication.push_back(OpId(i));
  const Spans computes = busy(kernels, timeline);
  const Spans communicates = busy(communication, timeline);
  const std::vector<Picoseconds> bounds = bounds_of(tenant, timeline);
  const Picoseconds end = timeline.makespan();
  std::vector<Picoseconds> best(bounds.size() + 1, Picoseconds(0)), at = best;
  const std::vector<Span>& stretches = computes.joined();
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const Picoseconds gap_ends = i + 1 < stretches.size() ? stretches[i + 1].begin : end;
    const Picoseconds exposed = communicates.within(stretches[i].end, gap_ends);
    const auto step = static_cast<std::size_t>(
        std::lower_bound(bounds.begin(), bounds.end(), stretches[i].end) - bounds.begin());
    if (exposed <= best[step]) continue;
    best[step] = exposed;
    at[step] = stretches[i].end;
  }
  std::vector<Picoseconds> cuts;
  for (std::size_t s = 0; s < best.size(); ++s)
    if (best[s] > Picoseconds(0)) cuts.push_back(at[s]);
  return cuts;
}

/// Under kCrossover, turns end where the tenant synchronises: per step, in the longest time in
/// which it communicates and does not compute. Under kExclusive, they end with the step. REQUIRES:
/// one of these policies. Fails on kCrossover for a tenant that never synchronises.
Result<TurnPlan> turns_of(const Tenant& tenant, Policy policy) {
  const Result<Timeline> timeline = engine::run(tenant.graph);
  if (!timeline) return forward(timeline);
  std::vector<OpId> ops;
  if (policy == Policy::kCrossover) {
    for (const DeviceOp& op : tenant.on_device)
      if (op.multiprocessors > 0 || op.bandwidth > 0) ops.push_back(op.op);
    ops = by_begin(tenant, std::move(ops), *timeline);
    const std::vector<Picoseconds> cuts = synchronisations(tenant, ops, *timeline);
    if (cuts.empty())
      return fail(fmt::format("{} has no communication during which another job could compute",
                              tenant.name),
                  "a crossover of jobs whose communication is exposed",
                  "timeslice, mps or exclusive");
    TurnPlan plan = cut(ops, *timeline, cuts);
    plan.joined = true;
    return plan;
  }
  for (std::size_t i = 0; i < tenant.graph.size(); ++i) {
    const Category category = tenant.graph.category(OpId(i));
    if (category == Category::kCompute || category == Category::kCommunication ||
        category == Category::kMemory)
      ops.push_back(OpId(i));
  }
  return cut(by_begin(tenant, std::move(ops), *timeline), *timeline, bounds_of(tenant, *timeline));
}

/// The rate of ops of one tenant during its turn: practically unlimited.
constexpr double kUnbounded = 1e6;

}  // namespace

/// Writes the graph of all tenants.
class Composer {
 public:
  Composer(std::span<const Tenant> tenants, const Sharing& sharing,
           std::span<const std::uint32_t> periods, const Contended& contended,
           std::span<const Picoseconds> begins)
      : tenants_(tenants),
        sharing_(sharing),
        periods_(periods),
        contended_(contended),
        begins_(begins) {}

  Result<Together> run() {
    REHEARSE_CHECK(periods_.size() == tenants_.size(), "{} numbers of periods for {} tenants",
                   periods_.size(), tenants_.size());
    const bool leases =
        sharing_.policy == Policy::kCrossover || sharing_.policy == Policy::kExclusive;
    std::optional<LeaseTurns> turns;
    if (leases) turns.emplace(builder_, "turn of the devices");
    for (tenant_ = 0; tenant_ < tenants_.size(); ++tenant_) {
      TurnPlan plan;
      if (leases) {
        Result<TurnPlan> planned = turns_of(tenants_[tenant_], sharing_.policy);
        if (!planned) return forward(planned);
        plan = std::move(*planned);
      }
      if (Status ok = map_resources(); !ok) return forward(ok);
      add_periods();
      if (turns) add_turns(plan, *turns);
    }
    Result<Graph> graph = std::move(builder_).build();
    if (!graph) return forward(graph);
    Result<graph::Timeline> timeline = engine::run(*graph);
    if (!timeline) return forward(timeline);
    together_.graph = std::move(*graph);
    together_.timeline = std::move(*timeline);
    return std::move(together_);
  }

 private:
  const Tenant& tenant() const { return tenants_[tenant_]; }
  const Graph& graph() const { return tenants_[tenant_].graph; }

  /// Which of the tenant's capacities carry messages.
  std::vector<char> links() const {
    std::vector<char> is_link(graph().capacities().size(), 0);
    for (const graph::Transfer& transfer : graph().transfers())
      for (const FlowRoute& route : *transfer.routes)
        for (const CapacityId c : graph().demands()[route.demand.index()].capacities)
          is_link[c.index()] = 1;
    return is_link;
  }

  /// Maps names, servers, capacities and demands of the tenant. Links of one name are shared: the
  /// n-th link of that name of each tenant is the same link.
  Status map_resources() {
    name_of_.clear();
    for (std::size_t i = 0; i < graph().names().size(); ++i)
      name_of_.push_back(builder_.intern(graph().names()[NameId(i)]));
    server_of_.clear();
    for (graph::Server server : graph().servers()) {
      server.name = name_of_[server.name.index()];
      server_of_.push_back(builder_.add(server));
    }
    const std::vector<char> is_link = links();
    std::map<std::pair<std::string, double>, std::size_t> seen;
    capacity_of_.clear();
    for (std::size_t i = 0; i < graph().capacities().size(); ++i) {
      graph::Capacity capacity = graph().capacities()[i];
      if (!capacity.changes.empty() || capacity.turns)
        return fail("jobs that share devices on links that change", "links of constant rates");
      const std::pair key(std::string(graph().names()[capacity.name]), capacity.rate);
      capacity.name = name_of_[capacity.name.index()];
      if (!is_link[i] || !contended_.links) {
        capacity_of_.push_back(builder_.add(std::move(capacity)));
        continue;
      }
      std::vector<CapacityId>& known = links_[key];
      const std::size_t n = seen[key]++;
      if (n == known.size()) known.push_back(builder_.add(std::move(capacity)));
      capacity_of_.push_back(known[n]);
    }
    demand_of_.clear();
    for (const Demand& demand : graph().demands())
      demand_of_.push_back(builder_.add(moved(demand)));
    on_device_.assign(graph().size(), nullptr);
    for (const DeviceOp& op : tenant().on_device) on_device_[op.op.index()] = &op;
    routes_.clear();
    return {};
  }

  /// A demand of the tenant, mapped to the shared resources.
  Demand moved(Demand demand) {
    if (demand.server) demand.server = server_of_[demand.server->index()];
    for (CapacityId& c : demand.capacities) c = capacity_of_[c.index()];
    if (demand.hold) demand.hold = builder_.add(moved(graph().demands()[demand.hold->index()]));
    return demand;
  }

  /// The resource that all tenants share on a device, made on first use.
  CapacityId resource(std::string_view what, std::uint32_t device, double rate = 1,
                      std::optional<graph::Turns> turns = {}) {
    const std::string name = fmt::format("{} of device {}", what, device);
    const auto known = resources_.find(name);
    if (known != resources_.end()) return known->second;
    const CapacityId id =
        builder_.add(graph::Capacity{.name = builder_.intern(name), .rate = rate, .turns = turns});
    return resources_.emplace(name, id).first->second;
  }

  /// Changes the op for a shared device.
  void share(Op& op, const DeviceOp& on) {
    const bool has_work = op.work > 0;
    if (!has_work && op.duration <= Picoseconds(0)) return;
    Demand demand = builder_.so_far().demands()[op.demand.index()];
    demand.units_per_work.resize(demand.capacities.size(), 1);
    const std::size_t before = demand.capacities.size();
    const auto through = [&](CapacityId capacity, double units_per_work) {
      demand.capacities.push_back(capacity);
      demand.units_per_work.push_back(units_per_work);
    };
    const bool kernel = on.multiprocessors > 0 || on.bandwidth > 0;
    double fastest = 1;
    if (kernel && (sharing_.policy == Policy::kMps || sharing_.policy == Policy::kPriority)) {
      const double whole = contended_.whole_kernels ? 1 : 0;
      const double multiprocessors = std::max(whole, on.multiprocessors);
      const double bandwidth = contended_.bandwidth ? std::max(whole, on.bandwidth) : 0;
      const double cap = sharing_.caps.empty() ? 1 : sharing_.caps[tenant_];
      fastest = std::min(1.0, multiprocessors > 0 ? cap / multiprocessors : 1);
      if (multiprocessors > 0) through(resource("multiprocessors", on.device), multiprocessors);
      if (bandwidth > 0) through(resource("memory bandwidth", on.device), bandwidth);
      if (sharing_.policy == Policy::kPriority)
        demand.priority = -static_cast<std::int32_t>(tenant_);  // below what ops hold
    }
    if (kernel && sharing_.policy == Policy::kTimeSlice) {
      const Picoseconds change =
          contended_.change ? Picoseconds::from(sharing_.change) : Picoseconds(0);
      through(resource("turn", on.device, kUnbounded,
                       graph::Turns{Picoseconds::from(sharing_.quantum), change}),
              1);
      demand.group = FlowGroupId(tenant_);
    }
    if (on.host_link > 0 && contended_.links) through(resource("host link", on.device), 1);
    if (demand.capacities.size() == before) return;
    if (!has_work) {
      op.work = op.duration.seconds().s();
      op.duration = Picoseconds(0);
    }
    demand.rate_cap = std::min(demand.rate_cap, fastest);
    op.demand = builder_.add(std::move(demand));
  }

  void add_periods() {
    const std::size_t n = graph().size();
    std::vector<Op> ops;
    std::vector<std::uint32_t> in_degree(n, 0);
    std::vector<OpId> sinks;
    for (std::size_t i = 0; i < n; ++i) {
      Op op = graph().op(OpId(i));
      op.name = name_of_[op.name.index()];
      op.demand = demand_of_[op.demand.index()];
      if (on_device_[i]) share(op, *on_device_[i]);
      ops.push_back(op);
      for (const OpId to : graph().successors(OpId(i))) ++in_degree[to.index()];
      if (graph().successors(OpId(i)).empty()) sinks.push_back(OpId(i));
    }
    std::vector<OpId>& first = together_.first_.emplace_back();
    std::vector<OpId>& closed = together_.closed_.emplace_back();
    together_.size_.push_back(n);
    const Picoseconds begins = begins_.empty() ? Picoseconds(0) : begins_[tenant_];
    together_.begins_.push_back(begins);
    std::optional<OpId> before;
    if (begins > Picoseconds(0))
      before = builder_.add(Op{builder_.intern("not yet"), Category::kDelay, begins});
    const NameId end = builder_.intern("end of the period");
    for (std::uint32_t p = 0; p < periods_[tenant_]; ++p) {
      const std::size_t base = builder_.size();
      first.push_back(OpId(base));
      for (const Op& op : ops) builder_.add(op);
      for (std::size_t i = 0; i < n; ++i) {
        for (const OpId to : graph().successors(OpId(i)))
          builder_.add_edge(OpId(base + i), OpId(base + to.index()));
        if (graph().need(OpId(i)) < in_degree[i])
          builder_.wait_for_first(OpId(base + i), graph().need(OpId(i)));
        if (before && in_degree[i] == 0) builder_.add_edge(*before, OpId(base + i));
      }
      add_transfers(base);
      const OpId close = builder_.add(Op{end, Category::kSynchronization, Picoseconds(0)});
      for (const OpId sink : sinks) builder_.add_edge(OpId(base + sink.index()), close);
      closed.push_back(close);
      before = close;
    }
  }

  void add_transfers(std::size_t base) {
    for (const graph::Transfer& transfer : graph().transfers()) {
      auto& routes = routes_[transfer.routes.get()];
      if (!routes) {
        std::vector<FlowRoute> there = *transfer.routes;
        for (FlowRoute& route : there) route.demand = demand_of_[route.demand.index()];
        routes = std::make_shared<const std::vector<FlowRoute>>(std::move(there));
      }
      graph::Transfer moved{transfer.flows, routes, transfer.members, transfer.size};
      for (OpId& member : moved.members) member = OpId(base + member.index());
      builder_.add(std::move(moved));
    }
  }

  /// A turn is requested when its first op could begin.
  void add_turns(const TurnPlan& plan, LeaseTurns& leases) {
    std::vector<std::vector<OpId>> before(graph().size());
    for (std::size_t i = 0; i < graph().size(); ++i)
      for (const OpId to : graph().successors(OpId(i))) before[to.index()].push_back(OpId(i));
    std::vector<std::vector<OpId>> turns;
    std::vector<std::vector<OpId>> asked_after;
    for (std::uint32_t p = 0; p < periods_[tenant_]; ++p)
      for (std::size_t t = 0; t < plan.turns.size(); ++t) {
        const std::vector<OpId>& ops = plan.turns[t].ops;
        if (ops.empty()) continue;
        const std::uint32_t base = together_.first_[tenant_][p].index();
        const bool goes_on = plan.joined && t == 0 && !turns.empty() && last_is_open_;
        if (!goes_on) {
          turns.emplace_back();
          std::vector<OpId>& after = asked_after.emplace_back();
          for (const OpId from : before[ops.front().index()])
            after.push_back(OpId(base + from.index()));
          if (after.empty() && p > 0) after.push_back(together_.closed_[tenant_][p - 1]);
        }
        for (const OpId op : ops) turns.back().push_back(OpId(base + op.index()));
        last_is_open_ = t + 1 == plan.turns.size() && t > 0;
      }
    for (std::size_t t = 0; t < turns.size(); ++t) leases.add(turns[t], asked_after[t]);
  }

  const std::span<const Tenant> tenants_;
  const Sharing& sharing_;
  const std::span<const std::uint32_t> periods_;
  const Contended& contended_;
  const std::span<const Picoseconds> begins_;
  GraphBuilder builder_;
  Together together_;

  std::size_t tenant_ = 0;  // the tenant that is being written, and its resources
  std::vector<NameId> name_of_;
  std::vector<ServerId> server_of_;
  std::vector<CapacityId> capacity_of_;
  std::vector<DemandId> demand_of_;
  std::vector<const DeviceOp*> on_device_;
  std::map<const std::vector<FlowRoute>*, std::shared_ptr<const std::vector<FlowRoute>>> routes_;

  std::map<std::string, CapacityId> resources_;
  std::map<std::pair<std::string, double>, std::vector<CapacityId>> links_;
  bool last_is_open_ = false;
};

Picoseconds Together::begin(std::size_t tenant, std::size_t period) const {
  return period == 0 ? begins_[tenant] : end(tenant, period - 1);
}

Picoseconds Together::end(std::size_t tenant, std::size_t period) const {
  return timeline[closed_[tenant][period]].end;
}

graph::Timeline Together::of_period(std::size_t tenant, std::size_t period) const {
  const std::uint32_t first = first_[tenant][period].index();
  const Picoseconds from = begin(tenant, period);
  graph::Timeline own;
  own.ops.reserve(size_[tenant]);
  for (std::size_t i = 0; i < size_[tenant]; ++i) {
    graph::OpTimes times = timeline.ops[first + i];
    times.start = times.start - from;
    times.end = times.end - from;
    if (times.cause) {
      const std::uint32_t cause = times.cause->index();
      times.cause = cause >= first && cause < first + size_[tenant]
                        ? std::optional(OpId(cause - first))
                        : std::nullopt;
    }
    own.ops.push_back(times);
  }
  return own;
}

Result<Together> run_together(std::span<const Tenant> tenants, const Sharing& sharing,
                              std::span<const std::uint32_t> periods, const Contended& contended,
                              std::span<const Picoseconds> begins) {
  return Composer(tenants, sharing, periods, contended, begins).run();
}

}  // namespace rehearse::sharing
