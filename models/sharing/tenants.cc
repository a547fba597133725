#include "models/sharing/tenants.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/core.h>

#include "models/comm/interference.h"
#include "models/sharing/tenant_program.h"
#include "sim/base/check.h"
#include "sim/base/spans.h"
#include "sim/engine/engine.h"
#include "sim/graph/verify.h"

namespace rehearse::sharing {

using graph::Category, graph::Timeline, program::OpIndex, program::Program;

namespace {

/// The turns of a period alone, in order; the first may have no ops.
struct TurnPlan {
  std::vector<std::vector<OpId>> turns;  ///< in the order in which the ops begin
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
std::vector<OpId> by_begin(const Tenant& tenant, std::vector<OpId> ops) {
  const Timeline& timeline = tenant.timeline;
  std::vector<std::size_t> rank(tenant.alone.graph.size());
  const std::vector<OpId> order = graph::topological_order(tenant.alone.graph);
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i].index()] = i;
  std::ranges::sort(ops, [&](OpId a, OpId b) {
    return std::pair(timeline[a].start, rank[a.index()]) <
           std::pair(timeline[b].start, rank[b.index()]);
  });
  return ops;
}

std::vector<Picoseconds> bounds_of(const Tenant& tenant) {
  std::vector<Picoseconds> bounds;
  for (const program::OpRef op : tenant.step_bounds)
    bounds.push_back(tenant.timeline[tenant.alone.op(op)].end);
  std::ranges::sort(bounds);
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
    plan.turns[turn].push_back(op);
  }
  return plan;
}

/// The points in each of its steps where the tenant communicates longest without computing.
std::vector<Picoseconds> synchronisations(const Tenant& tenant, const std::vector<OpId>& kernels) {
  const Timeline& timeline = tenant.timeline;
  const graph::Graph& graph = tenant.alone.graph;
  std::vector<OpId> communication;
  for (std::size_t i = 0; i < graph.size(); ++i)
    if (graph.category(OpId(i)) == Category::kCommunication) communication.push_back(OpId(i));
  const Spans computes = busy(kernels, timeline);
  const Spans communicates = busy(communication, timeline);
  const std::vector<Picoseconds> bounds = bounds_of(tenant);
  const Picoseconds end = timeline.makespan();
  std::vector<Picoseconds> best(bounds.size() + 1, Picoseconds(0)), at = best;
  const std::vector<Span>& stretches = computes.joined();
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const Picoseconds gap_ends = i + 1 < stretches.size() ? stretches[i + 1].begin : end;
    const Picoseconds exposed = communicates.within(stretches[i].end, gap_ends);
    const auto step = static_cast<std::size_t>(std::ranges::lower_bound(bounds, stretches[i].end) -
                                               bounds.begin());
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
  const program::Lowered& alone = tenant.alone;
  std::vector<OpId> ops;
  if (policy == Policy::kCrossover) {
    for (std::size_t run = 0; run < alone.ranks.size(); ++run)
      for (const DeviceOp& on : tenant.on_device)
        if (on.program == tenant.program.program_of[alone.ranks[run].index()] &&
            (on.multiprocessors > 0 || on.bandwidth > 0))
          ops.push_back(alone.op(run, on.op));
    ops = by_begin(tenant, std::move(ops));
    const std::vector<Picoseconds> cuts = synchronisations(tenant, ops);
    if (cuts.empty())
      return fail(fmt::format("{} has no communication during which another job could compute",
                              tenant.name),
                  "a crossover of jobs whose communication is exposed",
                  "timeslice, mps or exclusive");
    TurnPlan plan = cut(ops, tenant.timeline, cuts);
    plan.joined = true;
    return plan;
  }
  for (OpId op(alone.first_op.front()); op.index() < alone.first_op.back();
       op = OpId(op.index() + 1)) {
    const Category category = alone.graph.category(op);
    if (category == Category::kCompute || category == Category::kCommunication ||
        category == Category::kMemory)
      ops.push_back(op);
  }
  return cut(by_begin(tenant, std::move(ops)), tenant.timeline, bounds_of(tenant));
}

/// The turns of all periods. `leases`: those that other tenants have, counted on.
std::vector<Turn> turns_of_periods(const Program& program, const program::Lowered& alone,
                                   const TurnPlan& plan, std::uint32_t periods,
                                   std::uint32_t& leases) {
  std::vector<Turn> turns;
  bool open = false;  // the last turn may go on in the next period
  for (std::uint32_t p = 0; p < periods; ++p)
    for (std::size_t t = 0; t < plan.turns.size(); ++t) {
      for (const OpId op : plan.turns[t]) {
        const auto place = *alone.place_of(op);
        const std::uint32_t of = program.program_of[alone.ranks[place.run].index()];
        if (op == plan.turns[t].front() && !(plan.joined && t == 0 && open))
          turns.push_back(
              {leases++, p, of, std::vector<std::vector<OpIndex>>(program.programs.size())});
        const auto size = static_cast<std::uint32_t>(program.programs[of].ops.size());
        turns.back().ops[of].push_back(p * size + place.op);
      }
      if (!plan.turns[t].empty()) open = t + 1 == plan.turns.size() && t > 0;
    }
  return turns;
}

/// Gives each rank a program of its own if all are run: their turns differ.
void separate(Program& program, const program::Lowered& alone) {
  if (alone.ranks.size() != program.ranks()) return;
  std::vector<program::RankProgram> own;
  for (std::uint32_t r = 0; r < program.ranks(); ++r) {
    own.push_back(program.program(RankId(r)));
    program.program_of[r] = r;
  }
  program.programs = std::move(own);
}

/// The collectives of each tenant slow the kernels of the others on the same device, but not of those
/// that have priority. Its own kernels have their times with its own collectives.
void interfere(graph::GraphBuilder& builder, std::span<const Tenant> tenants, Policy policy,
               std::span<const std::uint32_t> periods,
               std::span<const program::Lowered* const> lowered) {
  using Devices = std::map<std::uint32_t, std::vector<OpId>>;  // by number of the rank
  std::vector<Devices> kernels(tenants.size()), collectives(tenants.size());
  std::vector<Seconds> mean(tenants.size(), Seconds::s(0));
  for (std::size_t t = 0; t < tenants.size(); ++t) {
    const Program& own = tenants[t].program;
    const program::Lowered& all = *lowered[t];
    double count = 0;
    for (std::size_t run = 0; run < all.ranks.size(); ++run) {
      const std::uint32_t rank = all.ranks[run].index(), of = own.program_of[rank];
      const auto size = static_cast<std::uint32_t>(own.programs[of].ops.size());
      const auto add = [&](std::vector<OpId>& to, OpIndex op) {
        for (std::uint32_t p = 0; p < periods[t]; ++p) to.push_back(all.op(run, p * size + op));
      };
      for (const DeviceOp& on : tenants[t].on_device)
        if (on.program == of && (on.multiprocessors > 0 || on.bandwidth > 0)) {
          add(kernels[t][rank], on.op);
          const OpId alone = tenants[t].alone.op(run, on.op);
          mean[t] += (tenants[t].timeline[alone].end - tenants[t].timeline[alone].start).seconds();
          count += 1;
        }
      for (OpIndex i = 0; i < size; ++i)
        if (own.programs[of].ops[i].task == program::Task::kCollective)
          add(collectives[t][rank], i);
    }
    if (count > 0) mean[t] = mean[t] / count;
  }
  for (std::size_t t = 0; t < tenants.size(); ++t) {
    std::vector<comm::DeviceOps> devices;
    for (auto& [rank, compute] : kernels[t]) {
      comm::DeviceOps device{.compute = std::move(compute), .communication = {}};
      for (std::size_t other = 0; other < (policy == Policy::kPriority ? t : tenants.size());
           ++other)
        if (const auto found = collectives[other].find(rank);
            other != t && found != collectives[other].end())
          device.communication.insert(device.communication.end(), found->second.begin(),
                                      found->second.end());
      if (!device.communication.empty()) devices.push_back(std::move(device));
    }
    comm::interfere(builder, devices, comm::slowdown_by_collectives(mean[t]).value);
  }
}

}  // namespace

Result<Tenant> make_tenant(std::string name, Program program, std::vector<DeviceOp> on_device,
                           std::vector<program::OpRef> step_bounds, AddProgram add) {
  program::Assembly onto;
  program::Lowered alone = TRY(add(program, false, onto));
  alone.graph = TRY(std::move(onto.builder).build());
  Timeline timeline = TRY(engine::run(alone.graph));
  return Tenant{std::move(name), std::move(program), std::move(on_device), std::move(step_bounds),
                std::move(add),  std::move(alone),   std::move(timeline)};
}

Picoseconds Together::begin(std::size_t tenant, std::size_t period) const {
  return period == 0 ? parts_[tenant].begins : end(tenant, period - 1);
}

Picoseconds Together::end(std::size_t tenant, std::size_t period) const {
  return timeline[parts_[tenant].ends[period]].end;
}

Timeline Together::of_period(std::size_t tenant, std::size_t period) const {
  const Part& part = parts_[tenant];
  const Picoseconds from = begin(tenant, period);
  const graph::OpTimes never{Picoseconds(0), Picoseconds(0), {}};
  Timeline own{std::vector<graph::OpTimes>(part.size, never)};
  for (std::size_t run = 0; run + 1 < part.first_op.size(); ++run) {
    const std::uint32_t size = part.first_op[run + 1] - part.first_op[run];
    for (std::uint32_t i = 0; i < size; ++i) {
      const graph::OpTimes& times =
          timeline[part.lowered.op(run, static_cast<std::uint32_t>(period) * size + i)];
      own.ops[part.first_op[run] + i] = {times.start - from, times.end - from, {}};
    }
  }
  return own;
}

Result<Together> run_together(std::span<const Tenant> tenants, const Sharing& sharing,
                              std::span<const std::uint32_t> periods, const Contended& contended,
                              std::span<const Picoseconds> begins) {
  REHEARSE_CHECK(periods.size() == tenants.size(), "{} numbers of periods for {} tenants",
                 periods.size(), tenants.size());
  const bool in_turns =
      sharing.policy == Policy::kCrossover || sharing.policy == Policy::kExclusive;
  program::Assembly onto;
  Together together;
  std::uint32_t leases = 0;
  for (std::size_t t = 0; t < tenants.size(); ++t) {
    const Tenant& tenant = tenants[t];
    Program program = on_shared_devices(tenant.program, tenant.on_device, t, sharing, contended);
    std::vector<Turn> turns;
    if (in_turns) {
      const TurnPlan plan = TRY(turns_of(tenant, sharing.policy));
      separate(program, tenant.alone);
      turns = turns_of_periods(program, tenant.alone, plan, periods[t], leases);
    }
    const Picoseconds begin = begins.empty() ? Picoseconds(0) : begins[t];
    Repeated all = repeated(std::move(program), periods[t], begin);
    add_turns(all, turns);
    program::Lowered lowered = TRY(tenant.add(all.program, contended.links, onto));
    Together::Part part{
        tenant.alone.graph.size(), tenant.alone.first_op, std::move(lowered), {}, begin};
    for (const program::OpRef end : all.ends)
      part.ends.push_back(
          OpId(part.lowered.first_of_service[end.of - all.program.ranks()] + end.op));
    together.parts_.push_back(std::move(part));
  }
  if (sharing.policy == Policy::kMps || sharing.policy == Policy::kPriority) {
    std::vector<const program::Lowered*> lowered;
    for (const Together::Part& part : together.parts_) lowered.push_back(&part.lowered);
    interfere(onto.builder, tenants, sharing.policy, periods, lowered);
  }
  for (const graph::Capacity& link : onto.builder.so_far().capacities())
    if (!link.changes.empty())
      return fail("jobs that share devices on links that change", "links of constant rates");
  const graph::Graph graph = TRY(std::move(onto.builder).build());
  together.timeline = TRY(engine::run(graph));
  return together;
}

}  // namespace rehearse::sharing
