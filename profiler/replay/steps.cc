#include "profiler/replay/steps.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "profiler/replay/periods.h"
#include "profiler/trace/recorder.h"

namespace rehearse::replay {
namespace {

using trace::HostKind;
using trace::HostOp;

/// "ProfilerStep#12" -> "ProfilerStep#": marks of one family differ in their number only.
std::string family(std::string_view name) {
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return std::string(name);
}

struct Found {
  std::size_t thread;
  std::vector<HostIndex> ops;
};

/// Ops that pass `wanted`, by thread and family; the largest group, the outermost where equal.
template <class Wanted>
std::optional<Found> largest_family(const Recording& r, Wanted wanted) {
  std::map<std::pair<std::size_t, std::string>, std::vector<HostIndex>> groups;
  for (std::size_t t = 0; t < r.threads().size(); ++t)
    for (const HostIndex i : r.threads()[t].ops)
      if (wanted(r.host(i))) groups[{t, family(r.name(r.host(i)))}].push_back(i);
  std::optional<Found> best;
  Nanoseconds best_covered(0);
  for (auto& [key, ops] : groups) {
    // Marks inside each other (a step within a step of an outer loop) do not follow each other;
    // those that overlap by a rounded nanosecond do.
    for (std::size_t k = 1; k < ops.size(); ++k)
      if (r.host(ops[k]).end() <= r.host(ops[k - 1]).end()) {
        ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(k));
        --k;
      }
    Nanoseconds covered(0);
    for (const HostIndex i : ops) covered += r.host(i).duration;
    if (!best || covered > best_covered) {
      best = Found{key.first, ops};
      best_covered = covered;
    }
  }
  return best;
}

Steps from_marks(const Recording& r, const Found& found) {
  Steps steps{StepSource::kMarks, {}};
  for (const HostIndex i : found.ops)
    steps.steps.push_back({.name = std::string(r.name(r.host(i))),
                           .start = r.host(i).start,
                           .end = r.host(i).end(),
                           .thread = found.thread});
  return steps;
}

/// Marks of a rank without a host: they are not on a thread that is replayed.
std::optional<Found> marks_without_host(const Recording& r) {
  if (!r.threads().empty()) return std::nullopt;
  Found found{0, {}};
  for (HostIndex i = 0; i < r.rank().host_ops.size(); ++i)
    if (r.host(i).kind == HostKind::kAnnotation && trace::is_step_name(r.name(r.host(i))))
      found.ops.push_back(i);
  std::ranges::stable_sort(
      found.ops, [&](HostIndex a, HostIndex b) { return r.host(a).start < r.host(b).start; });
  return found.ops.empty() ? std::nullopt : std::optional(std::move(found));
}

/// Steps from one start to the next; what comes before the first and after the last is partial.
Steps from_starts(StepSource source, std::size_t thread, const std::vector<Nanoseconds>& starts,
                  Nanoseconds last) {
  Steps steps{source, {}};
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const bool is_last = k + 1 == starts.size();
    steps.steps.push_back({.name = fmt::format("step {}", k + 1),
                           .start = starts[k],
                           .end = is_last ? last : starts[k + 1],
                           .thread = thread,
                           .partial = is_last});
  }
  return steps;
}

/// Loading begins a step. If several batches are loaded per update (gradient accumulation), the first
/// one after an update does.
std::optional<Steps> from_ranges(const Recording& r) {
  const auto of = [&](std::string_view prefix) {
    return largest_family(r, [&](const HostOp& op) {
      return op.kind == HostKind::kAnnotation && r.name(op).starts_with(prefix);
    });
  };
  const auto loads = of("enumerate(DataLoader)"), updates = of("Optimizer.step");
  for (const auto& found : {loads, updates}) {
    if (!found || found->ops.size() < 3) continue;
    std::vector<Nanoseconds> starts;
    for (const HostIndex i : found->ops) {
      const Nanoseconds start = r.host(i).start;
      const bool begins =
          starts.empty() || !updates || updates->ops.size() < 2 ||
          std::ranges::any_of(updates->ops, [&](HostIndex update) {
            return r.host(update).start >= starts.back() && r.host(update).start < start;
          });
      if (begins) starts.push_back(start);
    }
    return from_starts(StepSource::kRanges, found->thread, starts, r.threads()[found->thread].last);
  }
  return std::nullopt;
}

/// A call that started device work, and the first op that it started.
struct Launch {
  Nanoseconds time;
  std::size_t thread;
  NameId name;
  bool copies;
  bool graph;        ///< the call launches a CUDA or HIP graph
  Nanoseconds work;  ///< sum of the durations of its ops
};

/// In order of time.
std::vector<Launch> launches_of(const Recording& r) {
  std::vector<Launch> launches;
  for (std::size_t t = 0; t < r.threads().size(); ++t)
    for (const HostIndex i : r.threads()[t].ops) {
      const auto ops = r.launched(i);
      if (ops.empty()) continue;
      const trace::GpuOp& op = r.gpu(ops.front());
      const bool copies = op.direction == trace::CopyDirection::kHostToDevice ||
                          op.direction == trace::CopyDirection::kDeviceToHost;
      Nanoseconds work(0);
      for (const GpuIndex of : ops) work += r.gpu(of).duration;
      const bool graph = r.name(r.host(i)).find("GraphLaunch") != std::string_view::npos;
      launches.push_back({r.host(i).start, t, op.name, copies, graph, work});
    }
  std::ranges::stable_sort(launches, {}, &Launch::time);
  return launches;
}

/// A copy between host and device that comes back at even distances in the order of launches: a
/// step takes in a batch or gives out a result.
std::optional<Steps> from_repetition(const Recording& r, const std::vector<Launch>& launches) {
  std::map<NameId, std::vector<std::size_t>> places;
  for (std::size_t k = 0; k < launches.size(); ++k)
    if (launches[k].copies) places[launches[k].name].push_back(k);

  const auto evenly_spaced = [&](const std::vector<std::size_t>& at) {
    if (at.size() < 3) return false;
    const double period =
        static_cast<double>(at.back() - at.front()) / static_cast<double>(at.size() - 1);
    // Its turns must account for the recording.
    if (period < 4 ||
        period * static_cast<double>(at.size()) < 0.7 * static_cast<double>(launches.size()))
      return false;
    for (std::size_t k = 1; k < at.size(); ++k)
      if (std::abs(static_cast<double>(at[k] - at[k - 1]) - period) > 0.02 * period) return false;
    return true;
  };
  const std::vector<std::size_t>* best = nullptr;
  for (const auto& [name, at] : places)
    if (evenly_spaced(at) &&
        (!best || std::pair(at.size(), at.front()) < std::pair(best->size(), best->front())))
      best = &at;
  if (!best) return std::nullopt;
  std::vector<Nanoseconds> starts;
  for (const std::size_t k : *best) starts.push_back(launches[k].time);
  return from_starts(StepSource::kRepetition, launches[best->front()].thread, starts, r.last());
}

/// A server decodes one token per turn with a graph that does most of the work. A step begins with
/// each launch of the graph that comes first, if these are evenly spaced among the launches of graphs
/// and each turn copies between host and device: its tokens. Graphs of the layers of one pass follow
/// each other without such copies.
std::optional<Steps> from_graphs(const Recording& r, const std::vector<Launch>& launches) {
  Nanoseconds all(0), in_graphs(0);
  std::vector<std::size_t> graphs, turns;  // turns: positions in graphs
  for (std::size_t k = 0; k < launches.size(); ++k) {
    all += launches[k].work;
    if (!launches[k].graph) continue;
    in_graphs += launches[k].work;
    if (launches[k].name == launches[graphs.empty() ? k : graphs.front()].name)
      turns.push_back(graphs.size());
    graphs.push_back(k);
  }
  if (turns.size() < 3 || in_graphs * 2.0 < all) return std::nullopt;
  const std::size_t period = turns[1];
  std::vector<Nanoseconds> starts;
  for (std::size_t k = 0; k < turns.size(); ++k) {
    if (turns[k] != k * period) return std::nullopt;
    const std::size_t from = graphs[turns[k]];
    starts.push_back(launches[from].time);
    if (k + 1 < turns.size() &&
        std::none_of(launches.begin() + static_cast<std::ptrdiff_t>(from),
                     launches.begin() + static_cast<std::ptrdiff_t>(graphs[turns[k + 1]]),
                     [](const Launch& launch) { return launch.copies; }))
      return std::nullopt;
  }
  return from_starts(StepSource::kGraphs, launches[graphs.front()].thread, starts, r.last());
}

/// Without any range or operator: the order of the launches, which repeats from step to step as a
/// whole. If a program names its work without naming steps, the repetition is more likely the
/// layers of one pass. A program without names has no other information.
std::optional<Steps> from_kernels(const Recording& r, const std::vector<Launch>& launches) {
  const auto& ops = r.rank().host_ops;
  if (std::ranges::any_of(ops, [](const HostOp& op) {
        return op.kind == HostKind::kOperator || op.kind == HostKind::kFrame ||
               (op.kind == HostKind::kAnnotation && !op.collective);  // libraries name those
      }))
    return std::nullopt;
  std::vector<std::uint32_t> names;
  names.reserve(launches.size());
  for (const Launch& launch : launches) names.push_back(launch.name.index());
  const std::vector<std::size_t> turns = find_turns(names);
  if (turns.empty()) return std::nullopt;
  std::vector<Nanoseconds> starts;
  starts.reserve(turns.size());
  for (const std::size_t turn : turns) starts.push_back(launches[turn].time);
  return from_starts(StepSource::kKernels, launches[turns.front()].thread, starts, r.last());
}

/// A last step whose launches have no device op recorded ends outside.
void mark_partial(const Recording& r, Steps& steps) {
  Step& last = steps.steps.back();
  std::size_t launches = 0, unfinished = 0;
  for (const HostThread& thread : r.threads())
    for (const HostIndex i : thread.ops) {
      const HostOp& op = r.host(i);
      if (op.start < last.start || op.start >= last.end) continue;
      if (r.name(op).find("LaunchKernel") == std::string_view::npos) continue;
      ++launches;
      if (r.launched(i).empty()) ++unfinished;
    }
  if (launches > 0 && unfinished * 20 > launches) last.partial = true;
}

}  // namespace

std::string_view to_string(StepSource source) {
  switch (source) {
    case StepSource::kMarks: return "step marks";
    case StepSource::kRanges: return "ranges that occur once per step";
    case StepSource::kRepetition: return "copies at regular intervals";
    case StepSource::kKernels: return "kernels that repeat in the same order";
    case StepSource::kGraphs: return "launches of a graph that repeat";
    case StepSource::kSpan: return "the whole recording";
  }
  return "?";
}

Steps find_steps(const Recording& r) {
  auto marks = largest_family(r, [&](const HostOp& op) {
    return op.kind == HostKind::kAnnotation && trace::is_step_name(r.name(op));
  });
  if (!marks) marks = marks_without_host(r);
  Steps steps{StepSource::kSpan, {}};
  if (marks) {
    steps = from_marks(r, *marks);
  } else if (auto ranges = from_ranges(r)) {
    steps = std::move(*ranges);
  } else if (const std::vector<Launch> launches = launches_of(r);
             auto repetition = from_repetition(r, launches)) {
    steps = std::move(*repetition);
  } else if (auto graphs = from_graphs(r, launches)) {
    steps = std::move(*graphs);
  } else if (auto kernels = from_kernels(r, launches)) {
    steps = std::move(*kernels);
  } else {
    steps.steps.push_back(
        {.name = "whole recording", .start = r.first(), .end = r.last(), .thread = 0});
  }
  if (steps.source != StepSource::kSpan) mark_partial(r, steps);
  return steps;
}

}  // namespace rehearse::replay
