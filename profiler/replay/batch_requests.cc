#include "profiler/replay/batch_requests.h"

#include <map>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::replay {
namespace {

using graph::Category;
using graph::GraphBuilder;
using Kind = Origin::Kind;

}  // namespace

std::vector<Load> loads_of(const Recording& r, const ReplayGraph& replay) {
  std::vector<Load> loads;  // op ids follow the thread
  for (std::size_t i = 0; i < replay.origins.size(); ++i) {
    const Origin& origin = replay.origins[i];
    if (origin.rank != r.rank_index() || !origin.row) continue;
    if (origin.kind != Kind::kHost && origin.kind != Kind::kCall) continue;
    std::optional<HostIndex> range = *origin.row;
    while (range && !matches_wildcard(kLoadingRange, r.name(r.host(*range))))
      range = r.parent(*range);
    if (!range) continue;
    if (loads.empty() || loads.back().range != *range) loads.push_back({*range, {}});
    loads.back().ops.push_back(OpId(i));
  }
  return loads;
}

Result<WithBatchRequests> add_batch_requests(const std::vector<Recording>& recordings,
                                             const ReplayGraph& replay) {
  if (!replay.batch_requests.empty()) return fail("the recording already has an input pipeline");
  WithBatchRequests result{.replay = replay};
  GraphBuilder builder(replay.graph);
  const NameId ask_name = builder.intern("ask for input"),
               wait_name = builder.intern("wait for input");
  const auto add_batch_request = [&](std::uint32_t rank, std::size_t thread) {
    const auto instant = [&](NameId name) {
      result.replay.origins.push_back({Kind::kFeed, rank, std::nullopt});
      return builder.add(
          graph::Op{.name = name, .category = Category::kInput, .duration = Picoseconds(0)});
    };
    const OpId ask = instant(ask_name);
    const BatchRequest batch_request{
        .rank = rank, .thread = thread, .ask = ask, .wait = instant(wait_name)};
    builder.add_edge(batch_request.ask, batch_request.wait);
    result.replay.batch_requests.push_back(batch_request);
    return batch_request;
  };
  std::map<std::size_t, OpId> asks;  // by the first op of a loading range
  Picoseconds replaced(0);
  for (std::size_t index = 0; index < recordings.size(); ++index) {
    const auto rank = static_cast<std::uint32_t>(index);
    const std::size_t before = result.replay.batch_requests.size();
    for (const Load& load : loads_of(recordings[rank], replay)) {
      for (const OpId op : load.ops) {
        replaced += replay.graph.duration(op);
        builder.set_duration(op, Picoseconds(0));
      }
      const auto server = replay.graph.demand(load.ops.front()).server;
      const auto thread =
          server ? replay.thread_of_server[server->index()] : std::optional<std::size_t>();
      const BatchRequest batch_request = add_batch_request(rank, thread.value_or(0));
      builder.add_edge(batch_request.wait, load.ops.front());
      asks.emplace(load.ops.front().index(), batch_request.ask);
      ++result.loading_ranges;
    }
    if (result.replay.batch_requests.size() > before) continue;
    for (const StepOps& step : replay.ranks[rank].steps)
      if (step.begins_after) {
        const BatchRequest batch_request = add_batch_request(rank, step.step.thread);
        builder.add_edge(*step.begins_after, batch_request.ask);
        for (const OpId next : replay.graph.successors(*step.begins_after))
          builder.add_edge(batch_request.wait, next);
      }
    if (result.replay.batch_requests.size() == before)
      return fail(Diagnostic{
          .file = recordings[rank].rank().info.source,
          .problem = "has neither steps nor loading ranges to which batches could be fed",
          .expected = fmt::format("step marks, or ranges named {}", kLoadingRange)});
  }
  // A loading range asks when all that came before it has ended.
  for (std::size_t i = 0; i < replay.graph.size(); ++i)
    for (const OpId next : replay.graph.successors(OpId(i)))
      if (const auto ask = asks.find(next.index()); ask != asks.end())
        builder.add_edge(OpId(i), ask->second);
  if (result.loading_ranges > 0)
    result.replaced = replaced.seconds() / static_cast<double>(result.loading_ranges);
  Result<graph::Graph> graph = std::move(builder).build();
  if (!graph) return forward(graph);
  result.replay.graph = std::move(*graph);
  return result;
}

void begin_at_zero(const ReplayGraph& replay, graph::Timeline& timeline) {
  if (!replay.begin) return;
  const Picoseconds zero = timeline[*replay.begin].end;
  for (graph::OpTimes& op : timeline.ops) {
    op.start = op.start - zero;
    op.end = op.end - zero;
  }
}

}  // namespace rehearse::replay
