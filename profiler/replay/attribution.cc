#include "profiler/replay/attribution.h"

#include <algorithm>
#include <optional>

namespace rehearse::replay {
namespace {

using graph::Category;
using graph::PathStep;
using graph::Timeline;

struct WholeSteps {
  program::Window window;  ///< `last`: whose end is the host's end of the last step
  std::size_t count;
};

/// The stretches of consecutive whole steps of a rank, by the host's marks; to the last device op
/// where the host has run ahead of it. Or each step by itself, from mark to mark.
std::vector<WholeSteps> whole_steps(const RankGraph& rank, const Timeline& timeline,
                                    bool apart = false) {
  std::vector<WholeSteps> windows;
  bool open = false;
  for (std::size_t s = 0; s < rank.steps.size(); ++s) {
    const StepOps& step = rank.steps[s];
    if (step.step.partial) {
      open = false;
      continue;
    }
    const Picoseconds begin = step.begins_after ? timeline[*step.begins_after].end : Picoseconds(0);
    Picoseconds end = timeline[step.ends_with].end;
    if (s + 1 == rank.steps.size() && !apart)
      for (const OpId op : step.last_device_ops) end = std::max(end, timeline[op].end);
    if (!open || apart) windows.push_back({{begin, end, step.ends_with}, 0});
    open = true;
    windows.back().window.end = end;
    windows.back().window.last = step.ends_with;
    ++windows.back().count;
  }
  return windows;
}

/// Without a device the host is what computes.
program::Occupancy by_device(const RankGraph& rank, program::Occupancy part) {
  if (rank.device_first.empty()) std::swap(part.compute, part.host);
  return part;
}

}  // namespace

ReplayOps::ReplayOps(const ReplayGraph& replay, const Timeline& timeline)
    : replay_(replay), timeline_(timeline), of_rank_(replay.ranks.size()) {
  for (const BatchRequest& batch_request : replay.batch_requests)
    ask_of_.emplace(batch_request.wait.index(), batch_request.ask);
  for (const BatchRequest& batch_request : replay.batch_requests)
    ask_of_.emplace(batch_request.ask.index(), batch_request.ask);
  for (std::size_t i = 0; i < replay.origins.size(); ++i)
    if (const auto rank = this->rank(OpId(i))) of_rank_[*rank].emplace_back(i);
}

std::uint32_t ReplayOps::ranks() const { return static_cast<std::uint32_t>(of_rank_.size()); }

std::optional<std::uint32_t> ReplayOps::rank(OpId op) const {
  const Origin& origin = replay_.origins[op.index()];
  const bool meeting = origin.kind == Origin::Kind::kArrival &&
                       replay_.ranks[origin.rank].device_first[*origin.row] != op;
  const bool pipeline = origin.kind == Origin::Kind::kFeed && !ask_of_.contains(op.index());
  return meeting || pipeline ? std::nullopt : std::optional(origin.rank);
}

bool ReplayOps::on_device(OpId op) const {
  const Origin& origin = replay_.origins[op.index()];
  return origin.kind == Origin::Kind::kDevice || origin.kind == Origin::Kind::kArrival ||
         (origin.kind == Origin::Kind::kAdded && !replay_.ranks[origin.rank].device_first.empty());
}

bool ReplayOps::unexplained(OpId op) const {
  return replay_.origins[op.index()].kind == Origin::Kind::kUnexplained;
}

std::optional<OpId> ReplayOps::cause(OpId op) const {
  // What the pipeline did while a rank waited for it is no work of the step.
  const auto take = ask_of_.find(op.index());
  return take != ask_of_.end() && take->second != op ? take->second : timeline_[op].cause;
}

program::Occupancy occupancy(const ReplayGraph& replay, const Timeline& timeline) {
  const ReplayOps ops(replay, timeline);
  const program::Occupancies occupancies(replay.graph, timeline, ops);
  program::Occupancy sum;
  std::size_t count = 0;
  for (std::uint32_t rank = 0; rank < ops.ranks(); ++rank)
    for (const WholeSteps& steps : whole_steps(replay.ranks[rank], timeline)) {
      count += steps.count;
      sum += by_device(replay.ranks[rank], occupancies.within(rank, steps.window));
    }
  return count > 0 ? sum * (1.0 / static_cast<double>(count)) : sum;
}

std::vector<std::vector<program::Occupancy>> occupancy_of_steps(const ReplayGraph& replay,
                                                                const Timeline& timeline) {
  const ReplayOps ops(replay, timeline);
  const program::Occupancies occupancies(replay.graph, timeline, ops);
  std::vector<std::vector<program::Occupancy>> ranks(ops.ranks());
  for (std::uint32_t rank = 0; rank < ops.ranks(); ++rank)
    for (const WholeSteps& step : whole_steps(replay.ranks[rank], timeline, true))
      ranks[rank].push_back(by_device(replay.ranks[rank], occupancies.within(rank, step.window)));
  return ranks;
}

Timeline recorded_timeline(const std::vector<Recording>& recordings, const ReplayGraph& replay) {
  Timeline timeline;
  timeline.ops.assign(replay.graph.size(), {Picoseconds(0), Picoseconds(0), std::nullopt});
  for (std::size_t rank = 0; rank < replay.ranks.size(); ++rank) {
    const RankGraph& r = replay.ranks[rank];
    for (std::size_t i = 0; i < r.device_last.size(); ++i) {
      const trace::GpuOp& op = recordings[rank].gpu(static_cast<GpuIndex>(i));
      timeline[r.device_last[i]] = {Picoseconds::from(op.start), Picoseconds::from(op.end()),
                                    std::nullopt};
    }
    for (const StepOps& step : r.steps) {
      const auto mark = [&](OpId op, Nanoseconds at) {
        timeline[op] = {Picoseconds::from(at), Picoseconds::from(at), std::nullopt};
      };
      if (step.begins_after) mark(*step.begins_after, step.step.start);
      mark(step.ends_with, step.step.end);
    }
  }
  return timeline;
}

CriticalSteps find_critical_steps(const ReplayGraph& replay, const Timeline& timeline) {
  std::optional<OpId> last;
  const RankGraph* last_rank = nullptr;
  for (const RankGraph& rank : replay.ranks)
    for (const StepOps& step : rank.steps) {
      if (step.step.partial) continue;
      std::vector<OpId> ends = step.last_device_ops;
      ends.push_back(step.ends_with);
      for (const OpId op : ends)
        if (!last || timeline[op].end > timeline[*last].end) {
          last = op;
          last_rank = &rank;
        }
    }
  CriticalSteps result;
  if (!last) return result;
  const std::vector<WholeSteps> windows = whole_steps(*last_rank, timeline);
  for (const WholeSteps& steps : windows) result.steps += steps.count;
  for (PathStep step : graph::critical_path(timeline, *last)) {
    step.begin = std::max(step.begin, windows.front().window.begin);
    if (step.begin < step.end) result.path.push_back(step);
  }
  return result;
}

}  // namespace rehearse::replay
