#include "sim/program/lower.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/program/program.h"

namespace rehearse::program {
namespace {

using graph::Category;
/// An op, and another op that must end before it.
using After = std::pair<OpIndex, OpIndex>;

/// The order of issue beyond the dependencies: a collective that names no stream follows the
/// previous one in its group. In ascending order of ops.
std::vector<After> order_of_groups(const RankProgram& program) {
  std::vector<After> order;
  std::vector<std::optional<std::uint32_t>> last;  // by group
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const ProgramOp& op = program.ops[i];
    if (op.task != Task::kCollective || op.stream != kStreamOfTask) continue;
    if (op.group >= last.size()) last.resize(op.group + 1);
    const auto begin = program.dependencies.begin();
    const auto end = begin + program.first_dependency[i + 1];
    if (last[op.group] &&
        std::find(begin + program.first_dependency[i], end, *last[op.group]) == end)
      order.emplace_back(i, *last[op.group]);
    last[op.group] = i;
  }
  return order;
}

/// By task.
constexpr Category kCategories[] = {
    Category::kCompute,         Category::kHost,          Category::kMemory,
    Category::kCommunication,   Category::kCommunication, Category::kCommunication,
    Category::kSynchronization, Category::kInput,         Category::kLaunch,
    Category::kProfiler,        Category::kDelay};

/// The resources of one program. Those of its tasks are added with the first op that they serve.
class Servers {
 public:
  /// `owner`: "rank 3". `device`: of resources that the programs on it share; 0 for services.
  Servers(const Program& program, const RankProgram& of, std::string owner, std::uint32_t device,
          bool one_stream, Assembly& onto)
      : program_(program),
        of_(of),
        owner_(std::move(owner)),
        device_(device),
        one_stream_(one_stream),
        onto_(onto),
        builder_(onto.builder) {
    for (const Pool& pool : of.pools) pools_.push_back(capacity_of(pool));
    std::vector<bool> ranked(of.streams.size(), false);  // whether ops on its slots have priorities
    for (const ProgramOp& op : of.ops)
      if (op.priority != 0 && op.stream < of.streams.size())
        ranked[of.streams[op.stream].slots_of.value_or(op.stream)] = true;
    for (std::size_t s = 0; s < of.streams.size(); ++s) {
      servers_.push_back(server_of(of.streams[s], ranked[s]));
      streams_.push_back(builder_.add(demand_of(of.streams[s], servers_.back())));
    }
  }

  DemandId of(const ProgramOp& op) {
    if (op.stream == kNoStream) return DemandId(0);
    if (op.stream != kStreamOfTask)
      return op.priority == 0 ? streams_[op.stream] : with_priority(op);
    const bool communicates = op.task == Task::kCollective || op.task == Task::kSend;
    if (communicates && one_stream_) return of_task(3, "communication");
    if (op.task == Task::kCompute) return of_task(0, "compute");
    if (op.task == Task::kHost) return of_task(1, "host");
    return op.task == Task::kMemory ? of_task(2, "memory") : DemandId(0);
  }

 private:
  NameId name(NameId in_program) { return builder_.intern(program_.names[in_program]); }

  /// The resource of a scope: added by `add` if no program has it yet.
  template <class Known, class Key, class Add>
  auto shared(Known& known, Key key, Scope scope, const Add& add) {
    if (scope == Scope::kOwn) return add();
    const auto found = known.find(key);
    return found != known.end() ? found->second
                                : known.emplace(std::move(key), add()).first->second;
  }

  CapacityId capacity_of(const Pool& pool) {
    return shared(onto_.pools, std::pair(std::string(program_.names[pool.name]), device_),
                  pool.scope, [&] {
                    graph::Capacity capacity{.name = name(pool.name), .rate = pool.rate};
                    if (pool.turns)
                      capacity.turns = graph::Turns{pool.turns->quantum, pool.turns->change};
                    return builder_.add(std::move(capacity));
                  });
  }

  DemandId with_priority(const ProgramOp& op) {
    const auto [found, is_new] =
        with_priority_.try_emplace({op.stream, op.priority}, streams_[op.stream]);
    if (is_new) {
      graph::Demand demand = demand_of(of_.streams[op.stream], servers_[op.stream]);
      demand.priority = op.priority;
      found->second = builder_.add(std::move(demand));
    }
    return found->second;
  }

  std::optional<ServerId> server_of(const Stream& stream, bool ranked) {
    if (stream.slots_of) return servers_[*stream.slots_of];
    if (stream.slots == 0) return std::nullopt;
    return shared(onto_.servers, std::string(program_.names[stream.name]), stream.scope, [&] {
      graph::Server server{.name = name(stream.name),
                           .slots = stream.slots,
                           .policy = stream.leases ? graph::Policy::kLease
                                     : ranked      ? graph::Policy::kPriority
                                                   : graph::Policy::kFifo,
                           .turnaround = stream.turnaround};
      if (stream.pools.size() > 1 && stream.units_per_work.empty())
        for (const std::uint32_t pool : stream.pools)
          server.slot_demands.push_back(builder_.add(
              graph::Demand{.capacities = {pools_[pool]}, .rate_cap = stream.rate_cap}));
      return builder_.add(std::move(server));
    });
  }

  graph::Demand demand_of(const Stream& stream, std::optional<ServerId> server) const {
    graph::Demand demand{.server = server, .units_per_work = stream.units_per_work};
    if (stream.lease) demand.lease = LeaseId(*stream.lease);
    if (stream.pools.size() == 1 || !stream.units_per_work.empty()) {
      for (const std::uint32_t pool : stream.pools) demand.capacities.push_back(pools_[pool]);
      demand.rate_cap = stream.rate_cap;
      demand.priority = stream.priority;
      if (stream.group) demand.group = FlowGroupId(*stream.group);
      demand.due = stream.due;
    }
    return demand;
  }

  DemandId of_task(std::size_t task, std::string_view what) {
    std::optional<DemandId>& known = of_task_[task];
    if (!known)
      known = builder_.add(
          graph::Demand{.server = builder_.add(graph::Server{
                            .name = builder_.intern(fmt::format("{} {}", owner_, what))})});
    return *known;
  }

  const Program& program_;
  const RankProgram& of_;
  const std::string owner_;
  const std::uint32_t device_;
  const bool one_stream_;
  Assembly& onto_;
  graph::GraphBuilder& builder_;
  std::vector<CapacityId> pools_;
  std::vector<std::optional<ServerId>> servers_;  // by stream
  std::vector<DemandId> streams_;
  std::map<std::pair<std::uint32_t, std::int32_t>, DemandId> with_priority_;  // by stream
  std::array<std::optional<DemandId>, 4> of_task_;
};

/// Collectives with a duration, by group and tag: their members that are run.
using Measured = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<OpId>>;

/// Adds the arrivals of all collectives in which several of the simulated ranks take part.
void add_arrivals(const Measured& measured, Lowered& into, graph::GraphBuilder& builder) {
  for (const auto& [key, members] : measured)
    if (members.size() > 1)
      into.arrivals.insert(into.arrivals.end(), members.begin(), members.end());
  std::ranges::sort(into.arrivals);
  for (const OpId op : into.arrivals)
    builder.add(graph::Op{.name = builder.so_far().op(op).name,
                          .category = Category::kCommunication,
                          .duration = Picoseconds(0)});
  if (into.arrivals.empty()) return;
  const NameId name = builder.intern("all ranks have arrived");
  for (const auto& [key, members] : measured) {
    if (members.size() < 2) continue;
    // One op that waits for all arrivals, instead of an edge between every two ranks.
    const OpId all = builder.add(
        graph::Op{.name = name, .category = Category::kCommunication, .duration = Picoseconds(0)});
    for (const OpId op : members) {
      builder.add_edge(into.start_of(op), all);
      builder.add_edge(all, op);
    }
  }
}

}  // namespace

Status add_ops(const Program& program, bool one_stream, Lowered& into, Assembly& onto) {
  graph::GraphBuilder& builder = onto.builder;
  std::vector<std::vector<After>> orders(program.programs.size());
  if (!one_stream)
    for (std::size_t p = 0; p < orders.size(); ++p)
      orders[p] = order_of_groups(program.programs[p]);
  std::size_t ops = 0, edges = program.orders.size();
  for (const RankId rank : into.ranks) {
    const std::uint32_t p = program.program_of[rank.index()];
    ops += program.programs[p].ops.size();
    edges += program.programs[p].dependencies.size() + orders[p].size();
  }
  for (const RankProgram& service : program.services) {
    ops += service.ops.size();
    edges += service.dependencies.size();
  }
  if (builder.size() == 0) builder.reserve(ops, edges);
  std::vector<NameId> names;
  for (std::size_t i = 0; i < program.names.size(); ++i)
    names.push_back(builder.intern(program.names[NameId(i)]));
  Measured measured;
  const auto add = [&](const RankProgram& of, std::string owner,
                       std::optional<RankId> rank) -> Status {
    Servers servers(program, of, owner, rank ? rank->index() : 0, one_stream, onto);
    for (std::size_t i = 0; i < of.ops.size(); ++i) {
      const ProgramOp& op = of.ops[i];
      const bool communicates =
          op.task == Task::kCollective || op.task == Task::kSend || op.task == Task::kReceive;
      if (!op.duration && !communicates)
        return fail(fmt::format("op '{}' of {} has no duration", program.names[op.name], owner),
                    "a device of the catalog, whose rates give one");
      const OpId id = builder.add(graph::Op{.name = names[op.name.index()],
                                            .category = kCategories[static_cast<int>(op.task)],
                                            .duration = op.duration.value_or(Picoseconds(0)),
                                            .demand = servers.of(op),
                                            .work = i < of.work.size() ? of.work[i] : 0});
      if (op.need > 0) builder.wait_for_first(id, op.need);
      if (!rank || op.task != Task::kCollective || !op.duration) continue;
      const std::uint32_t group = program.groups_of[rank->index()][op.group];
      if (program.groups[group].members.size() > 1) measured[{group, op.tag}].push_back(id);
    }
    return {};
  };
  into.first_op.assign(1, static_cast<std::uint32_t>(builder.size()));
  for (const RankId rank : into.ranks) {
    TRY(add(program.program(rank), fmt::format("rank {}", rank.index()), rank));
    into.first_op.push_back(static_cast<std::uint32_t>(builder.size()));
  }
  add_arrivals(measured, into, builder);
  for (std::size_t i = 0; i < program.services.size(); ++i) {
    into.first_of_service.push_back(static_cast<std::uint32_t>(builder.size()));
    TRY(add(program.services[i], fmt::format("service {}", i), std::nullopt));
  }
  const auto add_dependencies = [&](const RankProgram& of, std::uint32_t first) {
    for (std::uint32_t i = 0; i < of.ops.size(); ++i) {
      if (of.first_dependency[i] == of.first_dependency[i + 1]) continue;
      const OpId start = into.arrivals.empty() ? OpId(first + i) : into.start_of(OpId(first + i));
      for (std::uint32_t d = of.first_dependency[i]; d < of.first_dependency[i + 1]; ++d)
        builder.add_edge(OpId(first + of.dependencies[d]), start);
    }
  };
  for (std::size_t run = 0; run < into.ranks.size(); ++run) {
    const std::uint32_t p = program.program_of[into.ranks[run].index()];
    add_dependencies(program.programs[p], into.first_op[run]);
    for (const auto& [op, before] : orders[p])
      builder.add_edge(into.op(run, before), into.start_of(into.op(run, op)));
  }
  for (std::size_t i = 0; i < program.services.size(); ++i)
    add_dependencies(program.services[i], into.first_of_service[i]);
  std::vector<std::optional<std::uint32_t>> first_of(program.ranks());
  for (std::size_t run = 0; run < into.ranks.size(); ++run)
    first_of[into.ranks[run].index()] = into.first_op[run];
  first_of.insert(first_of.end(), into.first_of_service.begin(), into.first_of_service.end());
  for (const auto& [before, op] : program.orders)
    if (first_of[before.of] && first_of[op.of])
      builder.add_edge(OpId(*first_of[before.of] + before.op),
                       into.start_of(OpId(*first_of[op.of] + op.op)));
  return {};
}

Result<Lowered> add(const Program& program, Assembly& onto) {
  Lowered lowered;
  for (std::uint32_t r = 0; r < program.ranks(); ++r) lowered.ranks.emplace_back(r);
  TRY(add_ops(program, false, lowered, onto));
  return lowered;
}

Result<Lowered> lower(const Program& program) {
  Assembly onto;
  Lowered lowered = TRY(add(program, onto));
  lowered.graph = TRY(std::move(onto.builder).build());
  return lowered;
}

}  // namespace rehearse::program
