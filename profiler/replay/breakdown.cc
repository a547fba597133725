#include "profiler/replay/breakdown.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

namespace rehearse::replay {
namespace {

using graph::Category;
using graph::PathStep;
using graph::Timeline;

struct Window {
  Picoseconds begin;
  Picoseconds end;
  std::size_t steps;
  OpId last_host_op;  ///< whose end is the host's end of the last step
};

/// The stretches of consecutive whole steps of a rank, by the host's marks; to the last device op
/// where the host has run ahead of it. Or each step by itself, from mark to mark.
std::vector<Window> whole_windows(const RankGraph& rank, const Timeline& timeline,
                                  bool apart = false) {
  std::vector<Window> windows;
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
    if (!open || apart) windows.push_back({begin, end, 0, step.ends_with});
    open = true;
    windows.back().end = end;
    windows.back().last_host_op = step.ends_with;
    ++windows.back().steps;
  }
  return windows;
}

constexpr Seconds Breakdown::*kParts[] = {&Breakdown::total,
                                          &Breakdown::compute,
                                          &Breakdown::exposed_communication,
                                          &Breakdown::memory,
                                          &Breakdown::input,
                                          &Breakdown::host_bound,
                                          &Breakdown::unexplained_wait,
                                          &Breakdown::profiler,
                                          &Breakdown::idle};

/// One device op as the sweep sees it.
struct Busy {
  Picoseconds start;
  Picoseconds end;
  Category category;
  OpId op;
};

class RankSweep {
 public:
  RankSweep(const ReplayGraph& replay, const Timeline& timeline, std::size_t rank)
      : replay_(replay), timeline_(timeline) {
    for (std::size_t i = 0; i < replay.origins.size(); ++i) {
      const Origin& origin = replay.origins[i];
      if (origin.rank != rank) continue;
      const bool on_device =
          origin.kind == Origin::Kind::kDevice || origin.kind == Origin::Kind::kArrival ||
          (origin.kind == Origin::Kind::kAdded && !replay.ranks[rank].device_first.empty());
      if (!on_device) continue;
      const OpId op(i);
      busy_.push_back({timeline[op].start, timeline[op].end, replay.graph.category(op), op});
    }
    std::stable_sort(busy_.begin(), busy_.end(),
                     [](const Busy& a, const Busy& b) { return a.start < b.start; });
    for (const Take& take : replay.takes) ask_of_.emplace(take.wait.index(), take.ask);
    Picoseconds reach(INT64_MIN);
    for (const Busy& b : busy_) reach_.push_back(reach = std::max(reach, b.end));
  }

  void add(const Window& window, Breakdown& sum) {
    // Between two changes of what runs, the highest kind that runs has the time.
    struct Change {
      Picoseconds at;
      std::size_t kind;  // 0 compute, 1 communication, 2 memory
      int by;
    };
    std::vector<Change> changes;
    const auto first = std::upper_bound(reach_.begin(), reach_.end(), window.begin);
    for (auto i = static_cast<std::size_t>(first - reach_.begin());
         i < busy_.size() && busy_[i].start < window.end; ++i) {
      const Busy& b = busy_[i];
      const Picoseconds start = std::max(b.start, window.begin), end = std::min(b.end, window.end);
      if (start >= end) continue;
      const std::size_t kind = b.category == Category::kCompute         ? 0
                               : b.category == Category::kCommunication ? 1
                                                                        : 2;
      changes.push_back({start, kind, 1});
      changes.push_back({end, kind, -1});
    }
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.at < b.at; });
    int running[3] = {0, 0, 0};
    Picoseconds at = window.begin;
    const auto pass = [&](Picoseconds until) {
      if (until <= at) return;
      const Seconds length = (until - at).seconds();
      if (running[0] > 0) {
        sum.compute += length;
      } else if (running[1] > 0) {
        sum.exposed_communication += length;
      } else if (running[2] > 0) {
        sum.memory += length;
      } else {
        explain_idle(at, until, window, sum);
      }
      at = until;
    };
    for (const Change& change : changes) {
      pass(change.at);
      running[change.kind] += change.by;
    }
    pass(window.end);
    sum.total += (window.end - window.begin).seconds();
  }

 private:
  /// Why nothing ran in [from, until): what the next op to start was waiting for, or, behind the
  /// last one, what the host did.
  void explain_idle(Picoseconds from, Picoseconds until, const Window& window, Breakdown& sum) {
    const auto next = std::lower_bound(busy_.begin(), busy_.end(), until,
                                       [](const Busy& b, Picoseconds t) { return b.start < t; });
    std::optional<OpId> at;
    if (next != busy_.end() && next->start == until) {
      if (waits_for_ranks(next->op)) {
        sum.exposed_communication += (until - from).seconds();
        return;
      }
      at = timeline_[next->op].cause;
    } else if (until == window.end) {
      at = window.last_host_op;
    }
    Picoseconds left = until;  // [from, left) is still to be explained
    for (std::optional<OpId> before; at && left > from; at = before) {
      // What the pipeline did while a rank waited for it is no work of the step.
      const auto take = ask_of_.find(at->index());
      before = take != ask_of_.end() ? take->second : timeline_[*at].cause;
      const Picoseconds begin =
          std::max(from, before ? timeline_[*before].end : timeline_[*at].start);
      if (begin >= left) continue;
      add_part((left - begin).seconds(), *at, sum);
      left = begin;
    }
    if (left > from) sum.idle += (left - from).seconds();
  }

  bool waits_for_ranks(OpId op) const {
    const std::optional<OpId> cause = timeline_[op].cause;
    return replay_.origins[op.index()].kind == Origin::Kind::kDevice && cause &&
           replay_.origins[cause->index()].kind == Origin::Kind::kArrival;
  }

  void add_part(Seconds time, OpId op, Breakdown& sum) const {
    switch (replay_.graph.category(op)) {
      case Category::kInput:
        sum.input += time;
        return;
      case Category::kProfiler:
        sum.profiler += time;
        return;
      case Category::kDelay:
        (replay_.origins[op.index()].kind == Origin::Kind::kUnexplained ? sum.unexplained_wait
                                                                        : sum.idle) += time;
        return;
      case Category::kCommunication:
        sum.exposed_communication += time;
        return;
      default:
        sum.host_bound += time;
        return;
    }
  }

  const ReplayGraph& replay_;
  const Timeline& timeline_;
  std::unordered_map<std::size_t, OpId> ask_of_;  ///< by the wait of a take
  std::vector<Busy> busy_;
  std::vector<Picoseconds> reach_;  ///< the latest end of an op and those before it
};

/// Without a device the host is what computes.
Breakdown by_device(const RankGraph& rank, Breakdown part) {
  if (rank.device_first.empty()) std::swap(part.compute, part.host_bound);
  return part;
}

}  // namespace

Breakdown break_down(const ReplayGraph& replay, const Timeline& timeline) {
  Breakdown sum;
  std::size_t steps = 0;
  for (std::size_t rank = 0; rank < replay.ranks.size(); ++rank) {
    RankSweep sweep(replay, timeline, rank);
    for (const Window& window : whole_windows(replay.ranks[rank], timeline)) {
      steps += window.steps;
      Breakdown part;
      sweep.add(window, part);
      part = by_device(replay.ranks[rank], part);
      for (const auto member : kParts) sum.*member += part.*member;
    }
  }
  if (steps == 0) return sum;
  const double share = 1.0 / static_cast<double>(steps);
  for (const auto member : kParts) sum.*member = sum.*member * share;
  return sum;
}

std::vector<std::vector<Breakdown>> break_down_steps(const ReplayGraph& replay,
                                                     const Timeline& timeline) {
  std::vector<std::vector<Breakdown>> ranks;
  for (std::size_t rank = 0; rank < replay.ranks.size(); ++rank) {
    RankSweep sweep(replay, timeline, rank);
    std::vector<Breakdown>& steps = ranks.emplace_back();
    for (const Window& window : whole_windows(replay.ranks[rank], timeline, true)) {
      Breakdown part;
      sweep.add(window, part);
      steps.push_back(by_device(replay.ranks[rank], part));
    }
  }
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
  const std::vector<Window> windows = whole_windows(*last_rank, timeline);
  for (const Window& window : windows) result.steps += window.steps;
  for (PathStep step : graph::critical_path(timeline, *last)) {
    step.begin = std::max(step.begin, windows.front().begin);
    if (step.begin < step.end) result.path.push_back(step);
  }
  return result;
}

CriticalPath find_critical_path(const ReplayGraph& replay, const Timeline& timeline,
                                std::size_t top) {
  CriticalPath result;
  result.by_category.assign(graph::kCategoryNames.size(), Seconds::s(0));
  const CriticalSteps critical = find_critical_steps(replay, timeline);
  if (critical.steps == 0) return result;
  const double share = 1.0 / static_cast<double>(critical.steps);
  std::map<std::pair<Category, std::string_view>, Seconds> by_name;
  for (const PathStep& step : critical.path) {
    const Category category = replay.graph.category(step.op);
    const Seconds time = (step.end - step.begin).seconds() * share;
    result.by_category[static_cast<std::size_t>(category)] += time;
    by_name.try_emplace({category, replay.graph.name(step.op)}, Seconds::s(0)).first->second +=
        time;
  }
  for (const auto& [key, time] : by_name)
    result.top.push_back({key.first, std::string(key.second), time});
  std::stable_sort(result.top.begin(), result.top.end(),
                   [](const PathShare& a, const PathShare& b) { return a.time > b.time; });
  if (result.top.size() > top)
    result.top.erase(result.top.begin() + static_cast<std::ptrdiff_t>(top), result.top.end());
  return result;
}

}  // namespace rehearse::replay
