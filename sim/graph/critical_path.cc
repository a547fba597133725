#include "sim/graph/critical_path.h"

#include <algorithm>

namespace rehearse::graph {

std::vector<PathStep> critical_path(const Timeline& timeline, OpId last) {
  std::vector<PathStep> path;
  for (std::optional<OpId> at = last; at; at = timeline[*at].cause) {
    const std::optional<OpId> before = timeline[*at].cause;
    const Picoseconds begin = before ? timeline[*before].end : Picoseconds(0);
    path.push_back({*at, begin, timeline[*at].end});
  }
  std::ranges::reverse(path);
  return path;
}

std::vector<PathStep> critical_path(const Timeline& timeline) {
  if (timeline.ops.empty()) return {};
  const auto ends_earlier = [](const OpTimes& a, const OpTimes& b) { return a.end < b.end; };
  const auto last = std::ranges::max_element(timeline.ops, ends_earlier);
  return critical_path(timeline, OpId(static_cast<std::size_t>(last - timeline.ops.begin())));
}

}  // namespace rehearse::graph
