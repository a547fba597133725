#include "sim/program/lower.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/program/program.h"

namespace rehearse::program {
namespace {

using graph::Category;
/// An op, and another op that must end before it.
using Order = std::pair<std::uint32_t, std::uint32_t>;

/// The order of issue beyond the dependencies: a collective that names no stream follows the
/// previous one in its group. In ascending order of ops.
std::vector<Order> order_of_groups(const RankProgram& program) {
  std::vector<Order> order;
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

Category category_of(Task task) {
  switch (task) {
    case Task::kCompute:
      return Category::kCompute;
    case Task::kHost:
      return Category::kHost;
    case Task::kMemory:
      return Category::kMemory;
    case Task::kCollective:
    case Task::kSend:
    case Task::kReceive:
      return Category::kCommunication;
    case Task::kInput:
      return Category::kInput;
    case Task::kLaunch:
      return Category::kLaunch;
    case Task::kProfiler:
      return Category::kProfiler;
    case Task::kDelay:
      return Category::kDelay;
    case Task::kMark:
      break;
  }
  return Category::kSynchronization;
}

/// The servers of one rank, each added with the first op that it serves.
class Servers {
 public:
  Servers(const Program& program, RankId rank, bool one_stream, graph::GraphBuilder& builder)
      : program_(program), rank_(rank), one_stream_(one_stream), builder_(builder) {}

  /// The streams of a recording, in their order.
  void add_streams() {
    for (const Stream& stream : program_.program(rank_).streams)
      streams_.push_back(demand({.name = builder_.intern(program_.names[stream.name]),
                                 .slots = stream.slots,
                                 .turnaround = stream.turnaround}));
  }

  DemandId of(const ProgramOp& op) {
    if (op.stream == kNoStream) return DemandId(0);
    if (op.stream != kStreamOfTask) return streams_[op.stream];
    switch (op.task) {
      case Task::kCompute:
        return of_task(0, "compute");
      case Task::kHost:
        return of_task(1, "host");
      case Task::kMemory:
        return of_task(2, "memory");
      case Task::kCollective:
      case Task::kSend:
        return one_stream_ ? of_task(3, "communication") : DemandId(0);
      default:
        return DemandId(0);
    }
  }

 private:
  DemandId of_task(std::size_t task, std::string_view name) {
    std::optional<DemandId>& known = of_task_[task];
    if (!known)
      known = demand({.name = builder_.intern(fmt::format("rank {} {}", rank_.index(), name))});
    return *known;
  }
  DemandId demand(graph::Server server) {
    return builder_.add(graph::Demand{.server = builder_.add(std::move(server))});
  }

  const Program& program_;
  const RankId rank_;
  const bool one_stream_;
  graph::GraphBuilder& builder_;
  std::vector<DemandId> streams_;
  std::array<std::optional<DemandId>, 4> of_task_;
};

/// Collectives with a duration, by group and tag: their members that are run.
using Measured = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<OpId>>;

/// Adds the arrivals of all collectives in which several of the simulated ranks take part.
void add_arrivals(const Measured& measured, Lowered& into, graph::GraphBuilder& builder) {
  for (const auto& [key, members] : measured)
    if (members.size() > 1)
      into.arrivals.insert(into.arrivals.end(), members.begin(), members.end());
  std::sort(into.arrivals.begin(), into.arrivals.end());
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

Status add_ops(const Program& program, bool one_stream, Lowered& into,
               graph::GraphBuilder& builder) {
  std::vector<std::vector<Order>> orders(program.programs.size());
  if (!one_stream)
    for (std::size_t p = 0; p < orders.size(); ++p)
      orders[p] = order_of_groups(program.programs[p]);
  std::size_t ops = 0, edges = 0;
  for (const RankId rank : into.ranks) {
    const std::uint32_t p = program.program_of[rank.index()];
    ops += program.programs[p].ops.size();
    edges += program.programs[p].dependencies.size() + orders[p].size();
  }
  builder.reserve(ops, edges);
  std::vector<NameId> names;
  for (std::size_t i = 0; i < program.names.size(); ++i)
    names.push_back(builder.intern(program.names[NameId(i)]));
  Measured measured;
  into.first_op.assign(1, 0);
  for (const RankId rank : into.ranks) {
    Servers servers(program, rank, one_stream, builder);
    servers.add_streams();
    for (const ProgramOp& op : program.program(rank).ops) {
      const bool communicates =
          op.task == Task::kCollective || op.task == Task::kSend || op.task == Task::kReceive;
      if (!op.duration && !communicates)
        return fail(
            fmt::format("op '{}' of rank {} has no duration", program.names[op.name], rank.index()),
            "a device of the catalog, whose rates give one");
      const OpId id = builder.add(graph::Op{.name = names[op.name.index()],
                                            .category = category_of(op.task),
                                            .duration = op.duration.value_or(Picoseconds(0)),
                                            .demand = servers.of(op)});
      if (op.need > 0) builder.wait_for_first(id, op.need);
      if (op.task != Task::kCollective || !op.duration) continue;
      const std::uint32_t group = program.groups_of[rank.index()][op.group];
      if (program.groups[group].members.size() > 1) measured[{group, op.tag}].push_back(id);
    }
    into.first_op.push_back(static_cast<std::uint32_t>(builder.size()));
  }
  add_arrivals(measured, into, builder);
  for (std::size_t run = 0; run < into.ranks.size(); ++run) {
    const std::uint32_t p = program.program_of[into.ranks[run].index()];
    const RankProgram& of = program.programs[p];
    for (std::uint32_t i = 0; i < of.ops.size(); ++i) {
      if (of.first_dependency[i] == of.first_dependency[i + 1]) continue;
      const OpId start = into.start_of(into.op(run, i));
      for (std::uint32_t d = of.first_dependency[i]; d < of.first_dependency[i + 1]; ++d)
        builder.add_edge(into.op(run, of.dependencies[d]), start);
    }
    for (const auto& [op, before] : orders[p])
      builder.add_edge(into.op(run, before), into.start_of(into.op(run, op)));
  }
  return {};
}

Result<Lowered> lower(const Program& program) {
  Lowered lowered;
  for (std::uint32_t r = 0; r < program.ranks(); ++r) lowered.ranks.emplace_back(r);
  graph::GraphBuilder builder;
  if (Status ok = add_ops(program, false, lowered, builder); !ok) return forward(ok);
  Result<graph::Graph> graph = std::move(builder).build();
  if (!graph) return forward(graph);
  lowered.graph = std::move(*graph);
  return lowered;
}

}  // namespace rehearse::program
