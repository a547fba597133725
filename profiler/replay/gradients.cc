#include "profiler/replay/gradients.h"

#include <algorithm>

#include "profiler/trace/shapes.h"

namespace rehearse::replay {
namespace {

using trace::HostOp;

constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";
constexpr std::string_view kRange = "gradient";

bool is_accumulate(const Recording& r, const HostOp& op) {
  return op.kind == trace::HostKind::kOperator && r.name(op) == kAccumulate;
}
bool is_range(const Recording& r, const HostOp& op) {
  return op.kind == trace::HostKind::kAnnotation && op.payload && r.name(op) == kRange;
}

struct FoundGradients {
  program::Gradient gradient;
  Nanoseconds end;  ///< of the operator or range
  trace::ThreadId thread;
};

/// Device ops with the time of the call that launched them, in order of time.
struct GradientLaunch {
  Nanoseconds time;
  GpuIndex op;
};

std::vector<GradientLaunch> launches_of(const Recording& r, const HostThread& thread) {
  std::vector<GradientLaunch> launches;
  for (const HostIndex call : thread.ops)
    for (const GpuIndex op : r.launched(call)) launches.push_back({r.host(call).start, op});
  return launches;
}

Result<std::vector<FoundGradients>> accumulated(const Recording& r, const RankReplay& rank) {
  std::vector<FoundGradients> found;
  for (const HostThread& thread : r.threads()) {
    const std::vector<GradientLaunch> launches = launches_of(r, thread);
    for (const HostIndex i : thread.ops) {
      const HostOp& op = r.host(i);
      if (!is_accumulate(r, op)) continue;
      const auto bytes =
          op.inputs ? trace::tensor_bytes(r.name(r.rank().inputs[op.inputs->index()].shapes),
                                          r.name(r.rank().inputs[op.inputs->index()].types))
                    : std::nullopt;
      if (!bytes)
        return fail_in(r.rank().info.source, "has no recorded gradient sizes",
                       "a recording with record_shapes=True, or the execution "
                       "trace of the same run in addition");
      const auto next =
          std::upper_bound(launches.begin(), launches.end(), op.end(),
                           [](Nanoseconds time, const GradientLaunch& l) { return time < l.time; });
      std::optional<OpIndex> ready;  // absent: computed before the recording began
      if (next != launches.begin()) ready = rank.device_last[std::prev(next)->op];
      if (!rank.has_device) ready = rank.host_last[i];
      if (ready) found.push_back({{*ready, Bytes::b(double(*bytes))}, op.end(), thread.id});
    }
  }
  return found;
}

std::vector<FoundGradients> ranges(const Recording& r, const RankReplay& rank) {
  std::vector<FoundGradients> found;
  for (const HostThread& thread : r.threads())
    for (const HostIndex i : thread.ops)
      if (const HostOp& op = r.host(i); is_range(r, op) && rank.host_last[i])
        found.push_back({{*rank.host_last[i], Bytes::b(double(*op.payload))}, op.end(), thread.id});
  return found;
}

/// The first device op that each stream gets after `time`.
std::vector<OpIndex> next_on_streams(const Recording& r, const RankReplay& rank, Nanoseconds time) {
  std::vector<OpIndex> next;
  for (const Stream& stream : r.streams())
    for (const GpuIndex i : stream.ops)
      if (const auto call = r.launcher(i); call && r.host(*call).start > time) {
        next.push_back(rank.device_first[i]);
        break;
      }
  return next;
}

/// The end of the first operator without others inside that the thread runs after `time`.
std::vector<OpIndex> next_on_thread(const Recording& r, const RankReplay& rank,
                                    trace::ThreadId thread, Nanoseconds time) {
  for (const HostThread& each : r.threads()) {
    if (each.id != thread) continue;
    for (std::size_t k = 0; k < each.ops.size(); ++k) {
      const HostOp& op = r.host(each.ops[k]);
      const bool inner = k + 1 == each.ops.size() || r.parent(each.ops[k + 1]) != each.ops[k];
      if (op.start < time || op.duration == Nanoseconds(0) || !inner) continue;
      if (const auto end = rank.host_last[each.ops[k]]) return {*end};
    }
  }
  return {};
}

}  // namespace

Result<Gradients> find_gradients(const Recording& r, const RankReplay& rank) {
  std::vector<FoundGradients> found = TRY(accumulated(r, rank));
  Gradients gradients{.overlapped = !found.empty()};
  if (found.empty()) found = ranges(r, rank);
  if (found.empty())
    return fail_in(r.rank().info.source, "contains no gradients",
                   "operators torch::autograd::AccumulateGrad, or NVTX ranges "
                   "'gradient' whose payload is their size in bytes");
  std::ranges::stable_sort(found, {}, &FoundGradients::end);

  // A new step begins where a step of the recording does.
  std::size_t step = 0;
  const auto step_of = [&](Nanoseconds time) {
    while (step < rank.steps.size() && rank.steps[step].step.start <= time) ++step;
    return step;
  };
  std::optional<std::size_t> current;
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (const std::size_t s = step_of(found[k].end); s != current) {
      current = s;
      gradients.steps.emplace_back().whole = s > 0 && !rank.steps[s - 1].step.partial;
    }
    gradients.steps.back().gradients.push_back(found[k].gradient);
    const bool last = k + 1 == found.size() || step_of(found[k + 1].end) != current;
    if (last && gradients.overlapped)
      gradients.steps.back().users = rank.has_device
                                         ? next_on_streams(r, rank, found[k].end)
                                         : next_on_thread(r, rank, found[k].thread, found[k].end);
  }
  return gradients;
}

}  // namespace rehearse::replay
