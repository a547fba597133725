#include "sim/program/attribution.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "sim/base/spans.h"

namespace rehearse::program {
namespace {

using graph::Category;

constexpr Seconds Occupancy::*kParts[] = {&Occupancy::compute,   &Occupancy::exposed_communication,
                                          &Occupancy::memory,    &Occupancy::bubble,
                                          &Occupancy::input,     &Occupancy::launch,
                                          &Occupancy::host,      &Occupancy::unexplained_wait,
                                          &Occupancy::profiler,  &Occupancy::idle,
                                          &Occupancy::recompute, &Occupancy::optimizer};
enum Part : std::size_t {
  kCompute,
  kCommunication,
  kMemory,
  kBubble,
  kInput,
  kLaunch,
  kHost,
  kUnexplainedWait,
  kProfiler,
  kIdle,
  kRecompute,
  kOptimizer
};

/// The activity of the device during an op.
Part on_device_part(Category category) {
  if (category == Category::kCompute || category == Category::kHost) return kCompute;
  return category == Category::kCommunication ? kCommunication : kMemory;
}

/// The cause of waiting, if an idle device waits while such an op of its rank runs.
Part waiting_part(Category category) {
  switch (category) {
    case Category::kInput: return kInput;
    case Category::kLaunch: return kLaunch;
    case Category::kProfiler: return kProfiler;
    case Category::kDelay: return kIdle;
    case Category::kCommunication: return kCommunication;
    default: return kHost;
  }
}

}  // namespace

Occupancy& Occupancy::operator+=(const Occupancy& other) {
  total += other.total;
  for (const auto part : kParts) this->*part += other.*part;
  return *this;
}

Occupancy Occupancy::operator*(double factor) const {
  Occupancy result;
  result.total = total * factor;
  for (const auto part : kParts) result.*part = this->*part * factor;
  return result;
}

Occupancies::Occupancies(const graph::Graph& graph, const graph::Timeline& timeline,
                         const RunOps& ops)
    : graph_(graph), timeline_(timeline), ops_(ops), ranks_(ops.ranks()) {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    RankBusy& rank = ranks_[r];
    for (const OpId op : ops.of_rank(r)) {
      const graph::OpTimes& times = timeline[op];
      if (!rank.last || times.end > timeline[*rank.last].end) rank.last = op;
      if (!ops.on_device(op)) continue;
      const OpId begins = ops.last_arrival(op);
      rank.ops.push_back({std::min(timeline[begins].start, times.end), times.end,
                          on_device_part(graph.category(op)), begins, ops.purpose(op)});
    }
    if (rank.last && (!last_ || timeline[*rank.last].end > timeline[*last_].end)) last_ = rank.last;
    std::ranges::stable_sort(rank.ops, {}, &Busy::start);
    Picoseconds reach(INT64_MIN);
    for (const Busy& busy : rank.ops) rank.reach.push_back(reach = std::max(reach, busy.end));
  }
}

Occupancy Occupancies::of_run(std::uint32_t rank) const {
  // A rank that ends earlier waits for the rank that ends last.
  const Picoseconds end = timeline_.makespan();
  const std::optional<OpId> own = ranks_[rank].last;
  return within(rank, {Picoseconds(0), end, own && timeline_[*own].end == end ? own : last_});
}

Occupancy Occupancies::within(std::uint32_t number, const Window& window) const {
  struct Change {
    Picoseconds at;
    const Busy* op;
    int by;
  };
  const RankBusy& rank = ranks_[number];
  std::vector<Change> changes;
  const auto first = std::ranges::upper_bound(rank.reach, window.begin);
  for (auto i = static_cast<std::size_t>(first - rank.reach.begin());
       i < rank.ops.size() && rank.ops[i].start < window.end; ++i) {
    const Busy& busy = rank.ops[i];
    const Picoseconds start = std::max(busy.start, window.begin),
                      end = std::min(busy.end, window.end);
    if (start >= end) continue;
    changes.push_back({start, &busy, 1});
    changes.push_back({end, &busy, -1});
  }
  std::ranges::stable_sort(changes, {}, &Change::at);
  // Between two changes of the running ops, the time belongs to the first part that runs.
  Sum sum = {};
  int running[] = {0, 0, 0};
  Purpose purpose;  // summed up over the computing ops that run
  Picoseconds at = window.begin;
  const auto pass = [&](Picoseconds until) {
    if (until <= at) return;
    const auto part = static_cast<std::size_t>(
        std::ranges::find_if(running, [](int n) { return n > 0; }) - std::begin(running));
    const std::int64_t time = (until - at).count();
    if (part == kCompute) {
      const auto of_ops = [&](double share) {
        return std::llround(static_cast<double>(time) * share / running[kCompute]);
      };
      const std::int64_t launch = of_ops(purpose.launch);
      sum[kCompute] += time - launch;
      sum[kLaunch] += launch;
      sum[kRecompute] += of_ops(purpose.recompute);
      sum[kOptimizer] += of_ops(purpose.optimizer);
    } else if (part < std::size(running)) {
      sum[part] += time;
    } else {
      explain_idle(number, at, until, window, sum);
    }
    at = until;
  };
  for (const Change& change : changes) {
    pass(change.at);
    running[change.op->part] += change.by;
    if (change.op->part != kCompute) continue;
    purpose.launch += change.by * change.op->purpose.launch;
    purpose.recompute += change.by * change.op->purpose.recompute;
    purpose.optimizer += change.by * change.op->purpose.optimizer;
    if (running[kCompute] == 0) purpose = {};
  }
  pass(window.end);
  Occupancy result;
  result.total = (std::max(window.begin, window.end) - window.begin).seconds();
  for (std::size_t part = 0; part < sum.size(); ++part)
    result.*kParts[part] = Picoseconds(sum[part]).seconds();
  return result;
}

/// The cause of waiting, if the idle device of a rank waits while this op runs.
std::size_t Occupancies::waiting_for(OpId op, std::uint32_t number) const {
  const std::optional<std::uint32_t> rank = ops_.rank(op);
  const Category category = graph_.category(op);
  if (!rank || category == Category::kCommunication) return kCommunication;
  const Purpose purpose = ops_.purpose(op);
  if (purpose.idle) return kIdle;
  if (*rank != number) return kBubble;
  if (ops_.unexplained(op)) return kUnexplainedWait;
  return purpose.launch > 0 ? kLaunch : waiting_part(category);
}

/// Explains why the device was idle in [from, until): by what the next op to start was waiting for,
/// or, at the end of the window, by what the rank waited for.
void Occupancies::explain_idle(std::uint32_t number, Picoseconds from, Picoseconds until,
                               const Window& window, Sum& sum) const {
  const RankBusy& rank = ranks_[number];
  const auto next = std::lower_bound(rank.ops.begin(), rank.ops.end(), until,
                                     [](const Busy& b, Picoseconds t) { return b.start < t; });
  Picoseconds left = until;  // [from, left) is still to be explained
  std::optional<OpId> at;
  if (next != rank.ops.end() && next->start == until) {
    at = ops_.cause(next->op);
  } else if (until == window.end && window.last) {
    at = window.last;
    left = std::max(from, std::min(until, timeline_[*at].end));
    sum[kIdle] += (until - left).count();
  }
  while (at && left > from) {
    const OpId last = ops_.last_arrival(*at);
    const std::optional<OpId> before = ops_.cause(last);
    const Picoseconds begin =
        std::max(from, before ? timeline_[*before].end : timeline_[last].start);
    if (begin < left) {
      sum[waiting_for(*at, number)] += (left - begin).count();
      left = begin;
    }
    at = before;
  }
  if (left > from) sum[kIdle] += (left - from).count();
}

std::vector<graph::PathStep> critical_path(const graph::Timeline& timeline, const RunOps& ops) {
  std::vector<graph::PathStep> path = graph::critical_path(timeline);
  if (path.empty()) return path;
  std::optional<OpId> at = path.back().op;
  for (path.clear(); at;) {
    const std::optional<OpId> before = timeline[ops.last_arrival(*at)].cause;
    path.push_back({*at, before ? timeline[*before].end : Picoseconds(0), timeline[*at].end});
    at = before;
  }
  std::ranges::reverse(path);
  return path;
}

PathTimes path_times(const graph::Graph& graph, const std::vector<graph::PathStep>& path,
                     std::size_t steps) {
  PathTimes sum;
  sum.by_category.assign(graph::kCategoryNames.size(), Seconds::s(0));
  const double share = 1.0 / static_cast<double>(steps);
  std::map<std::pair<Category, std::string_view>, Seconds> by_name;
  for (const graph::PathStep& step : path) {
    const Category category = graph.category(step.op);
    const Seconds time = (step.end - step.begin).seconds() * share;
    sum.by_category[static_cast<std::size_t>(category)] += time;
    by_name.try_emplace({category, graph.name(step.op)}, Seconds::s(0)).first->second += time;
  }
  for (const auto& [key, time] : by_name)
    sum.by_name.push_back({key.first, std::string(key.second), time});
  std::ranges::stable_sort(sum.by_name, std::greater{}, &PathTimes::Named::time);
  return sum;
}

namespace {

/// The times in which a rank computes.
Spans computing(const graph::Timeline& timeline, const RunOps& ops, std::uint32_t rank) {
  std::vector<Span> spans;
  for (const OpId op : ops.of_rank(rank))
    if (ops.alone(op)) spans.push_back({timeline[op].start, timeline[op].end});
  return Spans(std::move(spans));
}

/// The time of ops with equal shares.
struct Stretch {
  OpId op;  ///< one of them
  Picoseconds time;
};

}  // namespace

PathParts path_parts(const std::vector<graph::PathStep>& path, const graph::Timeline& timeline,
                     const RunOps& ops) {
  PathParts result;
  std::set<std::uint32_t> ranks;
  for (const graph::PathStep& step : path)
    if (const auto rank = ops.rank(step.op)) {
      result.ends_on = *rank;
      ranks.insert(*rank);
    }
  if (ranks.empty()) return result;
  result.ranks = static_cast<std::uint32_t>(ranks.size());
  const Spans home = computing(timeline, ops, result.ends_on);
  std::map<std::pair<std::uint64_t, bool>, Stretch> stretches;  // by likeness, and whether a bubble
  PathSum sum;
  for (const graph::PathStep& step : path) {
    const Picoseconds time = step.end - step.begin;
    if (time == Picoseconds(0)) continue;
    const auto add = [&](Picoseconds part, bool bubble) {
      if (part == Picoseconds(0)) return;
      stretches.try_emplace({ops.alike(step.op), bubble}, Stretch{step.op, Picoseconds(0)})
          .first->second.time += part;
    };
    Picoseconds slowed(0), waiting(0);
    if (const std::optional<Picoseconds> alone = ops.alone(step.op)) {
      // Not the turnaround of its server, with which the time on the path begins.
      const graph::OpTimes& times = timeline[step.op];
      slowed = std::clamp(times.end - times.start - *alone, Picoseconds(0), time);
      if (ops.rank(step.op) != result.ends_on)
        waiting = std::min(time - slowed, time - home.within(step.begin, step.end));
    }
    if (slowed > Picoseconds(0)) sum.add(slowed, ops.slowed(step.op));
    add(waiting, true);
    add(time - slowed - waiting, false);
  }
  for (const auto& [key, stretch] : stretches) {
    std::vector<PathShare> shares = ops.shares(stretch.op);
    if (key.second)
      for (PathShare& share : shares) {
        share.kind = PartKind::kBubble;
        share.op = share.part;
        share.part = "work of other ranks";
      }
    sum.add(stretch.time, shares);
  }
  result.parts = sum.parts();
  return result;
}

}  // namespace rehearse::program
