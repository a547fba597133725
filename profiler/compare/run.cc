#include "profiler/compare/run.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include <fmt/core.h>

#include "profiler/replay/attribution.h"
#include "profiler/replay/compare.h"
#include "profiler/replay/energy.h"
#include "profiler/replay/host_events.h"
#include "profiler/replay/lower.h"
#include "profiler/trace/collective_names.h"
#include "profiler/trace/recorder.h"
#include "profiler/trace/shapes.h"
#include "sim/base/text.h"
#include "sim/base/utf8.h"

namespace rehearse::compare {
namespace {

using replay::HostIndex, replay::Recording, trace::GpuKind, trace::HostKind;

/// Marks of steps differ in their number, and are one op.
std::string range_name(std::string_view name) {
  if (!trace::is_step_name(name)) return std::string(name);
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return std::string(name);
}

using Key = std::array<std::string, 6>;  ///< kind, name, from, layer, shapes, grid

using Windows = std::vector<replay::StepSpan>;

/// The first `steps` whole steps of a rank.
Windows windows_of(const replay::RankReplay& graph, std::size_t steps) {
  Windows windows;
  for (const replay::StepOps& step : graph.steps)
    if (!step.step.partial && windows.size() < steps)
      windows.push_back({step.step.start, step.step.end});
  return windows;
}

/// The step that an instant lies in.
std::optional<std::size_t> step_at(const Windows& windows, Nanoseconds time) {
  const auto next = std::upper_bound(
      windows.begin(), windows.end(), time,
      [](Nanoseconds at, const replay::StepSpan& window) { return at < window.start; });
  if (next == windows.begin()) return std::nullopt;
  const auto step = static_cast<std::size_t>(next - windows.begin()) - 1;
  if (time >= windows[step].end) return std::nullopt;
  return step;
}

/// When a device op was asked for, where that was recorded.
Nanoseconds asked_at(const Recording& r, replay::GpuIndex op) {
  const auto call = r.launcher(op);
  return call ? r.host(*call).start : r.gpu(op).start;
}

std::string commit_of(const Recording& r) {
  for (const trace::Fact& fact : r.rank().info.facts)
    if (fact.key == "commit") return printable(fact.value);
  return "";
}

/// How many of the first steps of a recording that lacks records have all: of each thread and
/// stream that does something in the first step, the step where it does something last may have
/// lost the rest.
std::size_t steps_with_all(const Recording& r, const Windows& windows) {
  std::size_t whole = windows.size();
  const auto look = [&](const auto& ops, const auto& time_of) {
    bool in_first = false;
    std::size_t last = 0;
    for (const auto i : ops)
      if (const auto step = step_at(windows, time_of(i))) {
        in_first |= *step == 0;
        last = std::max(last, *step);
      }
    if (in_first) whole = std::min(whole, last);
  };
  for (const replay::HostThread& thread : r.threads())
    look(thread.ops, [&](HostIndex i) { return r.host(i).start; });
  for (const replay::Stream& stream : r.streams())
    look(stream.ops, [&](replay::GpuIndex i) { return asked_at(r, i); });
  return whole;
}

/// The ops of the whole steps of one rank, into the slots of all.
class RankOps {
 public:
  RankOps(const Recording& recording, const Windows& windows, std::map<Key, OpSlot>& slots)
      : r_(recording), steps_(windows.size()), windows_(windows), slots_(slots) {}

  void add() {
    add_device_ops();
    for (const replay::HostThread& thread : r_.threads()) add_host_ops(thread);
  }

 private:
  void add(OpKind kind, Key key, std::size_t step, double place, Seconds time, double calls) {
    key[0] = std::string(to_string(kind));
    const auto [at, is_new] = slots_.try_emplace(key);
    OpSlot& slot = at->second;
    if (is_new)
      slot = {.kind = kind,
              .name = key[1],
              .from = key[2],
              .layer = key[3],
              .shapes = key[4],
              .grid = key[5],
              .times = std::vector<double>(steps_)};
    slot.times[step] += time.s();
    slot.place += place * calls;
    slot.calls += calls;
  }

  std::string grid_of(const trace::GpuOp& op) const {
    if (op.kind != GpuKind::kKernel) return op.bytes ? fmt::format("{} B", *op.bytes) : "";
    if (!op.launch_shape) return "";
    const trace::LaunchShape& s = r_.rank().launch_shapes[op.launch_shape->index()];
    return fmt::format("{}x{}x{} of {}x{}x{}", s.grid[0], s.grid[1], s.grid[2], s.block[0],
                       s.block[1], s.block[2]);
  }

  /// The origin of a device op: the innermost operator around its call, and the range around that.
  void name_origin(HostIndex call, Key& key) const {
    for (std::optional<HostIndex> at = r_.parent(call); at; at = r_.parent(*at)) {
      const trace::HostOp& op = r_.host(*at);
      if (op.kind == HostKind::kOperator && key[2].empty()) {
        key[2] = r_.name(op);
        if (op.inputs)
          key[4] = trace::evenly_spaced(r_.name(r_.rank().inputs[op.inputs->index()].shapes));
      } else if (op.kind == HostKind::kAnnotation && !trace::is_step_name(r_.name(op))) {
        key[3] = r_.name(op);
        return;
      }
    }
  }

  void add_device_ops() {
    struct Placed {
      std::size_t step;
      Nanoseconds time;
      replay::GpuIndex op;
    };
    std::vector<Placed> ops;
    for (const replay::Stream& stream : r_.streams())
      for (const replay::GpuIndex i : stream.ops) {
        const Nanoseconds time = asked_at(r_, i);
        if (const auto step = step_at(windows_, time)) ops.push_back({*step, time, i});
      }
    std::ranges::stable_sort(ops, {}, &Placed::time);
    std::vector<double> in_step(steps_), so_far(steps_);
    for (const Placed& op : ops) ++in_step[op.step];
    for (const Placed& placed : ops) {
      const trace::GpuOp& op = r_.gpu(placed.op);
      Key key;
      key[1] = r_.name(op);
      key[5] = grid_of(op);
      if (const auto call = r_.launcher(placed.op)) name_origin(*call, key);
      const bool communicates = op.kind == GpuKind::kKernel &&
                                (op.collective || trace::is_communication_kernel(r_.name(op)));
      const OpKind kind = communicates                  ? OpKind::kCollective
                          : op.kind == GpuKind::kKernel ? OpKind::kKernel
                          : op.kind == GpuKind::kCopy   ? OpKind::kCopy
                                                        : OpKind::kSet;
      add(kind, std::move(key), placed.step, so_far[placed.step]++ / in_step[placed.step],
          op.duration.seconds(), 1);
    }
  }

  /// Time in each op itself. The waiting of a call is time of the device, not work of the host.
  void add_host_ops(const replay::HostThread& thread) {
    const replay::EventSequence sequence = replay::host_events(r_, thread);
    for (std::size_t k = 0; k + 1 < sequence.events.size(); ++k) {
      const auto inner = sequence.innermost[k];
      if (!inner) continue;
      const trace::HostOp& op = r_.host(*inner);
      if (replay::may_wait(r_, *inner)) continue;
      const replay::HostEvent& event = sequence.events[k];
      const auto step = step_at(windows_, event.time);
      if (!step) continue;
      Key key;
      key[1] = range_name(r_.name(op));
      if (const auto around = r_.parent(*inner)) key[2] = range_name(r_.name(r_.host(*around)));
      const replay::StepSpan& window = windows_[*step];
      const double place = (event.time - window.start) / (window.end - window.start);
      add(OpKind::kHost, std::move(key), *step, place,
          (sequence.events[k + 1].time - event.time).seconds(),
          event.is_start && event.op == *inner ? 1 : 0);
    }
  }

  const Recording& r_;
  std::size_t steps_;
  const Windows& windows_;
  std::map<Key, OpSlot>& slots_;
};

/// The peak memory over ranks, as recorded ("memory.0.peak", "123 B").
std::optional<Bytes> peak_memory(const std::vector<Recording>& recordings) {
  std::optional<Bytes> peak;
  for (const Recording& r : recordings)
    for (const trace::Fact& fact : r.rank().info.facts) {
      if (!fact.key.starts_with("memory.") || !fact.key.ends_with(".peak")) continue;
      double bytes = 0;
      const char* end = fact.value.data() + fact.value.size();
      if (std::from_chars(fact.value.data(), end, bytes).ec != std::errc()) continue;
      if (!peak || *peak < Bytes::b(bytes)) peak = Bytes::b(bytes);
    }
  return peak;
}

std::vector<std::string> devices_of(const std::vector<Recording>& recordings) {
  std::set<std::string> names;
  for (const Recording& r : recordings)
    for (const replay::Stream& stream : r.streams())
      for (const trace::Device& device : r.rank().devices)
        if (device.ordinal == stream.device) names.insert(device.name);
  return {names.begin(), names.end()};
}

/// The times of the whole steps by rank. A step lasts as long as the longer of its two periods.
std::vector<std::vector<double>> step_times(const replay::Comparison& comparison,
                                            std::size_t ranks) {
  struct Periods {
    std::vector<double> host, device;
    double host_sum = 0, device_sum = 0;
  };
  std::vector<Periods> periods(ranks);
  for (const replay::StepComparison& step : comparison.steps) {
    if (step.partial) continue;
    Periods& p = periods[step.rank];
    p.host.push_back((step.host ? step.host->measured : Seconds::s(0)).s());
    p.device.push_back((step.device ? step.device->measured : Seconds::s(0)).s());
    p.host_sum += p.host.back();
    p.device_sum += p.device.back();
  }
  std::vector<std::vector<double>> times;
  times.reserve(periods.size());
  for (Periods& p : periods)
    times.push_back(std::move(p.host_sum >= p.device_sum ? p.host : p.device));
  return times;
}

/// Energy of every whole step of all ranks; empty where one has none.
std::vector<double> step_energy(const std::vector<Recording>& recordings,
                                const std::vector<Windows>& windows) {
  const std::size_t steps = windows.front().size();
  const auto energy = replay::measure_energy(recordings, windows);
  if (!energy) return {};
  std::vector<double> sums(steps);
  for (const auto& of_rank : energy->steps)
    for (std::size_t s = 0; s < steps; ++s) {
      if (!of_rank[s]) return {};
      sums[s] += of_rank[s]->total().j();
    }
  return sums;
}

}  // namespace

std::string_view to_string(OpKind kind) {
  constexpr std::string_view kNames[] = {"kernel", "collective", "copy", "set", "host"};
  return kNames[static_cast<int>(kind)];
}

bool lacks_records(const trace::Trace& trace) {
  for (const trace::Problem& problem : trace.problems.list())
    if (problem.kind == trace::ProblemKind::kTruncated ||
        problem.kind == trace::ProblemKind::kMalformed ||
        problem.kind == trace::ProblemKind::kDroppedRecords)
      return true;
  return false;
}

Result<Run> measure_run(const std::vector<Recording>& recordings, std::string source,
                        bool incomplete) {
  const auto wrong = [&](std::string problem, std::string expected) {
    return fail_in(source, std::move(problem), std::move(expected));
  };
  for (const Recording& r : recordings) {
    if (!r.rank().info.timed)
      return wrong("has no times, only dependencies",
                   "a recording of the profiler, Kineto or Nsight Systems");
    if (r.rank().host_ops.empty() && r.rank().gpu_ops.empty())
      return wrong("is empty: not one op was recorded", "a recording of some steps");
  }
  const replay::ReplayGraph graph = TRY(replay::to_graph(recordings));
  const graph::Timeline recorded = replay::recorded_timeline(recordings, graph);
  const auto times = step_times(replay::compare(recordings, graph, recorded), recordings.size());
  std::size_t steps = SIZE_MAX;
  for (const auto& of_rank : times) steps = std::min(steps, of_rank.size());
  const std::size_t marked = steps;
  if (incomplete)
    for (std::size_t r = 0; r < recordings.size(); ++r)
      steps = std::min(steps,
                       steps_with_all(recordings[r], windows_of(graph.program.replays[r], marked)));
  const replay::StepSource from = graph.program.replays.front().step_source;
  if (steps < 2 && marked >= 2)
    return wrong(fmt::format("lacks records, and fewer than two of its {} are known to be complete",
                             counted(marked, "step")),
                 "a complete recording");
  if (steps < 2)
    return wrong(fmt::format("has {} (from {}): the variation between steps needs at least two",
                             counted(steps, "whole step"), replay::to_string(from)),
                 "at least two whole steps; ten or more for a verdict");

  Run run{.source = std::move(source),
          .commit = commit_of(recordings.front()),
          .ranks = recordings.size(),
          .devices = devices_of(recordings),
          .steps_from = replay::to_string(from),
          .step_time = std::vector<double>(steps),
          .incomplete = incomplete};
  for (const replay::RankReplay& rank : graph.program.replays)
    run.windows.push_back(windows_of(rank, steps));
  const double share = 1 / static_cast<double>(recordings.size());
  for (const auto& of_rank : times)
    for (std::size_t s = 0; s < steps; ++s) run.step_time[s] += share * of_rank[s];

  const bool on_devices =
      std::ranges::all_of(recordings, [](const Recording& r) { return !r.rank().gpu_ops.empty(); });
  if (on_devices) {
    for (auto* part : {&run.compute, &run.exposed_communication, &run.copies, &run.launch_gaps})
      part->resize(steps);
    for (const auto& of_rank : replay::occupancy_of_steps(graph, recorded))
      for (std::size_t s = 0; s < steps; ++s) {
        const program::Occupancy& b = of_rank[s];
        run.compute[s] += share * b.compute.s();
        run.exposed_communication[s] += share * b.exposed_communication.s();
        run.copies[s] += share * b.memory.s();
        run.launch_gaps[s] +=
            share * (b.input + b.host + b.unexplained_wait + b.profiler + b.idle).s();
      }
  }
  run.energy = step_energy(recordings, run.windows);
  run.memory = peak_memory(recordings);

  std::map<Key, OpSlot> slots;
  for (std::size_t r = 0; r < recordings.size(); ++r)
    RankOps(recordings[r], run.windows[r], slots).add();
  for (auto& [key, slot] : slots) {
    if (slot.calls > 0) slot.place /= slot.calls;
    slot.calls *= share / static_cast<double>(steps);
    for (double& time : slot.times) time *= share;
    run.slots.push_back(std::move(slot));
  }
  return run;
}

}  // namespace rehearse::compare
