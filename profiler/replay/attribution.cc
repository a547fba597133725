#include "profiler/replay/attribution.h"

#include <algorithm>
#include <optional>

namespace rehearse::replay {
namespace {

using graph::PathStep;
using graph::Timeline;

struct WholeSteps {
  program::Window window;  ///< `last`: whose end is the host's end of the last step
  std::size_t count;
};

/// The stretches of consecutive whole steps of a rank, by the host's marks; to the last device op
/// where the host has run ahead of it. Or each step by itself, from mark to mark.
std::vector<WholeSteps> whole_steps(const ReplayGraph& replay, std::size_t number,
                                    const Timeline& timeline, bool apart = false) {
  const RankReplay& rank = replay.program.replays[number];
  const auto end_of = [&](OpIndex op) { return timeline[replay.lowered.op(number, op)].end; };
  std::vector<WholeSteps> windows;
  bool open = false;
  for (std::size_t s = 0; s < rank.steps.size(); ++s) {
    const StepOps& step = rank.steps[s];
    if (step.step.partial) {
      open = false;
      continue;
    }
    const Picoseconds begin = step.begins_after ? end_of(*step.begins_after) : Picoseconds(0);
    const OpId last = replay.lowered.op(number, step.ends_with);
    Picoseconds end = timeline[last].end;
    if (s + 1 == rank.steps.size() && !apart)
      for (const OpIndex op : step.last_device_ops) end = std::max(end, end_of(op));
    if (!open || apart) windows.push_back({{begin, end, last}, 0});
    open = true;
    windows.back().window.end = end;
    windows.back().window.last = last;
    ++windows.back().count;
  }
  return windows;
}

/// Without a device the host is what computes.
program::Occupancy by_device(const RankReplay& rank, program::Occupancy part) {
  if (rank.has_device) return part;
  part.compute = part.compute + part.host;
  part.host = Seconds::s(0);
  return part;
}

}  // namespace

ReplayOps::ReplayOps(const ReplayGraph& replay, const Timeline& timeline,
                     program::Interval interval)
    : LoweredOps(replay.program, replay.lowered, timeline, interval, interval), replay_(replay) {
  for (const BatchRequest& request : replay.program.batch_requests)
    ask_of_.emplace(replay.lowered.op(request.rank, request.wait).index(),
                    replay.lowered.op(request.rank, request.ask));
}

std::optional<OpId> ReplayOps::cause(OpId op) const {
  // While a rank waits for the input pipeline, the work of the pipeline is no work of the step.
  const auto ask = ask_of_.find(op.index());
  return ask != ask_of_.end() ? ask->second : LoweredOps::cause(op);
}

bool ReplayOps::on_device(OpId op) const {
  if (LoweredOps::on_device(op)) return true;
  const std::optional<std::uint32_t> run = rank(op);
  if (!run || !without_device(*run)) return false;
  const graph::Category category = replay_.graph().category(op);
  return category == graph::Category::kHost || category == graph::Category::kCommunication;
}

program::Occupancy occupancy(const ReplayGraph& replay, const Timeline& timeline) {
  const ReplayOps ops(replay, timeline);
  const program::Occupancies occupancies(replay.graph(), timeline, ops);
  program::Occupancy sum;
  std::size_t count = 0;
  for (std::uint32_t rank = 0; rank < ops.ranks(); ++rank)
    for (const WholeSteps& steps : whole_steps(replay, rank, timeline)) {
      count += steps.count;
      sum += by_device(replay.program.replays[rank], occupancies.within(rank, steps.window));
    }
  return count > 0 ? sum * (1.0 / static_cast<double>(count)) : sum;
}

std::vector<std::vector<program::Occupancy>> occupancy_of_steps(const ReplayGraph& replay,
                                                                const Timeline& timeline) {
  const ReplayOps ops(replay, timeline);
  const program::Occupancies occupancies(replay.graph(), timeline, ops);
  std::vector<std::vector<program::Occupancy>> ranks(ops.ranks());
  for (std::uint32_t rank = 0; rank < ops.ranks(); ++rank)
    for (const WholeSteps& step : whole_steps(replay, rank, timeline, true))
      ranks[rank].push_back(
          by_device(replay.program.replays[rank], occupancies.within(rank, step.window)));
  return ranks;
}

Timeline recorded_timeline(const std::vector<Recording>& recordings, const ReplayGraph& replay) {
  Timeline timeline;
  timeline.ops.assign(replay.graph().size(), {Picoseconds(0), Picoseconds(0), std::nullopt});
  for (std::size_t rank = 0; rank < replay.program.replays.size(); ++rank) {
    const RankReplay& r = replay.program.replays[rank];
    const auto at = [&](OpIndex op) -> graph::OpTimes& {
      return timeline[replay.lowered.op(rank, op)];
    };
    for (std::size_t i = 0; i < r.device_last.size(); ++i) {
      const trace::GpuOp& op = recordings[rank].gpu(static_cast<GpuIndex>(i));
      at(r.device_last[i]) = {Picoseconds::from(op.start), Picoseconds::from(op.end()),
                              std::nullopt};
    }
    for (const StepOps& step : r.steps) {
      const auto mark = [&](OpIndex op, Nanoseconds time) {
        at(op) = {Picoseconds::from(time), Picoseconds::from(time), std::nullopt};
      };
      if (step.begins_after) mark(*step.begins_after, step.step.start);
      mark(step.ends_with, step.step.end);
    }
  }
  return timeline;
}

CriticalSteps find_critical_steps(const ReplayGraph& replay, const Timeline& timeline) {
  std::optional<OpId> last;
  std::size_t last_rank = 0;
  for (std::size_t rank = 0; rank < replay.program.replays.size(); ++rank)
    for (const StepOps& step : replay.program.replays[rank].steps) {
      if (step.step.partial) continue;
      std::vector<OpIndex> ends = step.last_device_ops;
      ends.push_back(step.ends_with);
      for (const OpIndex end : ends)
        if (const OpId op = replay.lowered.op(rank, end);
            !last || timeline[op].end > timeline[*last].end) {
          last = op;
          last_rank = rank;
        }
    }
  CriticalSteps result;
  if (!last) return result;
  const std::vector<WholeSteps> windows = whole_steps(replay, last_rank, timeline);
  for (const WholeSteps& steps : windows) result.steps += steps.count;
  for (PathStep step : graph::critical_path(timeline, *last)) {
    step.begin = std::max(step.begin, windows.front().window.begin);
    if (step.begin < step.end) result.path.push_back(step);
  }
  return result;
}

}  // namespace rehearse::replay
