#include "models/sharing/tenant_turns.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/spans.h"
#include "sim/engine/engine.h"
#include "sim/graph/verify.h"

namespace rehearse::sharing {
namespace {

using graph::Category;
using graph::Timeline;

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

}  // namespace

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

}  // namespace rehearse::sharing
