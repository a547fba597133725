#include "sim/graph/critical_path.h"

#include <algorithm>
#include <numeric>

namespace rehearse::graph {

std::vector<PathStep> critical_path(const Timeline& timeline, OpId last) {
  std::vector<PathStep> path;
  for (std::optional<OpId> at = last; at; at = timeline[*at].cause) {
    const std::optional<OpId> before = timeline[*at].cause;
    const Picoseconds begin = before ? timeline[*before].end : Picoseconds(0);
    path.push_back({*at, begin, timeline[*at].end});
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<PathStep> critical_path(const Timeline& timeline) {
  if (timeline.ops.empty()) return {};
  const auto ends_earlier = [](const OpTimes& a, const OpTimes& b) { return a.end < b.end; };
  const auto last = std::max_element(timeline.ops.begin(), timeline.ops.end(), ends_earlier);
  return critical_path(timeline, OpId(static_cast<std::size_t>(last - timeline.ops.begin())));
}

std::vector<Picoseconds> slack(const Graph& graph, const Timeline& timeline) {
  const Picoseconds makespan = timeline.makespan();
  // In order of start (ties by id), an op comes before all ops that its end could delay.
  std::vector<std::uint32_t> order(graph.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const OpTimes &x = timeline.ops[a], &y = timeline.ops[b];
    return std::pair(x.start, x.end) < std::pair(y.start, y.end);
  });
  std::vector<Picoseconds> latest_end(graph.size(), makespan);
  const auto hold = [&](std::size_t before, std::size_t after, Picoseconds turnaround) {
    const OpTimes& times = timeline.ops[after];
    const Picoseconds latest_start = latest_end[after] - (times.end - times.start);
    latest_end[before] = std::min(latest_end[before], latest_start - turnaround);
  };
  std::vector<std::optional<std::uint32_t>> next_on_server(graph.servers().size());
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const OpId op(*at);
    for (const OpId to : graph.successors(op))
      if (timeline[op].end <= timeline[to].start) hold(op.index(), to.index(), Picoseconds(0));
    const std::optional<ServerId> server = graph.demand(op).server;
    if (!server || graph.servers()[server->index()].slots != 1) continue;
    std::optional<std::uint32_t>& next = next_on_server[server->index()];
    if (next) hold(op.index(), *next, graph.servers()[server->index()].turnaround);
    next = op.index();
  }
  std::vector<Picoseconds> slack(graph.size(), Picoseconds(0));
  for (std::size_t i = 0; i < graph.size(); ++i)
    slack[i] = std::max(Picoseconds(0), latest_end[i] - timeline.ops[i].end);
  return slack;
}

}  // namespace rehearse::graph
