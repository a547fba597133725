#include "models/job/path_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/graph/critical_path.h"

namespace rehearse::job {
namespace {

using graph::PathStep;
using program::PartKind;
using program::PathShare;
using program::Task;

/// Where an op of the graph stands in the programs; nothing for what carries messages.
struct Place {
  std::size_t run;
  std::uint32_t program, op;
};

std::optional<Place> place_of(const program::Program& job, const LoweredJob& lowered, OpId op) {
  const auto at = static_cast<std::uint32_t>(op.index());
  if (at >= lowered.first_op.back()) return std::nullopt;
  const auto next = std::upper_bound(lowered.first_op.begin(), lowered.first_op.end(), at);
  const auto run = static_cast<std::size_t>(next - lowered.first_op.begin()) - 1;
  return Place{run, job.program_of[lowered.ranks[run].index()], at - lowered.first_op[run]};
}

bool works(Task task) {
  return task == Task::kCompute || task == Task::kHost || task == Task::kMemory;
}

/// The times at which a rank is at work, in their order, joined.
class Busy {
 public:
  Busy(const program::Program& job, const LoweredJob& lowered, const graph::Timeline& timeline,
       std::size_t run) {
    const program::RankProgram& program = job.program(lowered.ranks[run]);
    std::vector<Span> all;
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      const graph::OpTimes& times = timeline[OpId(lowered.first_op[run] + i)];
      if (works(program.ops[i].task) && times.start < times.end)
        all.push_back({times.start, times.end});
    }
    std::sort(all.begin(), all.end(), [](const Span& a, const Span& b) { return a.from < b.from; });
    for (const Span& span : all) {
      if (spans_.empty() || spans_.back().to < span.from)
        spans_.push_back(span);
      else
        spans_.back().to = std::max(spans_.back().to, span.to);
    }
  }

  /// Of [from, to), how long it is at work.
  Picoseconds within(Picoseconds from, Picoseconds to) const {
    Picoseconds sum(0);
    for (auto span = std::partition_point(spans_.begin(), spans_.end(),
                                          [&](const Span& s) { return s.to <= from; });
         span != spans_.end() && span->from < to; ++span)
      sum += std::min(to, span->to) - std::max(from, span->from);
    return sum;
  }

 private:
  struct Span {
    Picoseconds from, to;
  };
  std::vector<Span> spans_;
};

/// Time of ops that are alike.
struct Stretch {
  std::uint32_t op = 0;  ///< one of them
  Picoseconds time{0};
};
using Stretches = std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, Stretch>;  // bubble

}  // namespace

program::PathParts path_parts(const program::Program& job, const LoweredJob& lowered,
                              const graph::Timeline& timeline, const OpOrigins& origins) {
  program::PathParts result;
  const std::vector<PathStep> path = graph::critical_path(timeline);
  std::size_t home = 0;
  std::set<std::size_t> runs;
  for (const PathStep& step : path)
    if (const auto place = place_of(job, lowered, step.op)) {
      home = place->run;
      runs.insert(home);
    }
  if (runs.empty()) return result;
  result.ends_on = lowered.ranks[home].index();
  result.ranks = static_cast<std::uint32_t>(runs.size());
  const Busy busy(job, lowered, timeline, home);
  program::PathSum sum;
  Stretches stretches;
  for (const PathStep& step : path) {
    const Picoseconds time = step.end - step.begin;
    if (time == Picoseconds(0)) continue;
    const auto place = place_of(job, lowered, step.op);
    if (!place || job.programs[place->program].ops[place->op].task == Task::kReceive) {
      sum.add(time, origins.message(lowered.graph.name(step.op)));
      continue;
    }
    const program::ProgramOp& op = job.programs[place->program].ops[place->op];
    Picoseconds beside(0), waiting(0);
    if (works(op.task) && op.duration) {
      beside = std::max(Picoseconds(0), time - *op.duration);
      if (place->run != home)
        waiting = std::min(time - beside, time - busy.within(step.begin, step.end));
    }
    if (beside > Picoseconds(0)) {
      PathShare slowed = origins.message(lowered.graph.name(step.op));
      slowed.part = "computing slowed by communication beside it";
      sum.add(beside, slowed);
    }
    const auto add = [&](Picoseconds part, bool bubble) {
      if (part == Picoseconds(0)) return;
      Stretch& stretch =
          stretches[{place->program, origins.alike(place->program, place->op), bubble}];
      stretch.op = place->op;
      stretch.time += part;
    };
    add(waiting, true);
    add(time - beside - waiting, false);
  }
  for (const auto& [key, stretch] : stretches) {
    const auto& [program, alike, bubble] = key;
    std::vector<PathShare> shares = origins.shares(program, stretch.op);
    if (bubble)
      for (PathShare& share : shares) {
        share.kind = PartKind::kBubble;
        share.op = share.part + " on other ranks";
        share.part = "bubble";
      }
    sum.add(stretch.time, shares);
  }
  result.parts = sum.parts();
  return result;
}

}  // namespace rehearse::job
