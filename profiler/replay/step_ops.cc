#include "profiler/replay/step_ops.h"

#include <algorithm>

namespace rehearse::replay {

void add_steps(const Recording& r, Steps steps, const std::vector<EventSequence>& events,
               const std::vector<std::vector<OpIndex>>& ends_at, RankReplay& out) {
  out.step_source = steps.source;
  // A step that inherits work of unknown length is not a step to compare with.
  Step& first = steps.steps.front();
  if (steps.steps.size() > 1 && out.unseen_backlog > (first.end - first.start) * 0.01)
    first.partial = true;

  const auto op_at = [&](std::size_t thread, Nanoseconds time) {
    const auto& of_thread = events[thread].events;
    const auto at =
        std::lower_bound(of_thread.begin(), of_thread.end(), time,
                         [](const HostEvent& event, Nanoseconds t) { return event.time < t; });
    const auto k = at == of_thread.end() ? of_thread.size() - 1
                                         : static_cast<std::size_t>(at - of_thread.begin());
    return ends_at[thread][k];
  };
  // Without a host, and where the recording is one step as a whole, a step ends with its device work:
  // what the host does after that belongs to no repetition. A host alone ends with its last thread.
  const bool by_device =
      !r.streams().empty() && (steps.source == StepSource::kSpan || r.threads().empty());
  const auto last_thread = [&](StepOps& ops) {
    Nanoseconds time(INT64_MIN);
    for (std::size_t t = 0; t < r.threads().size(); ++t)
      if (r.threads()[t].last > time) {
        time = r.threads()[t].last;
        ops.ends_with = ends_at[t].back();
      }
  };

  for (std::size_t s = 0; s < steps.steps.size(); ++s) {
    Step& step = steps.steps[s];
    const bool is_last = s + 1 == steps.steps.size();
    StepOps ops{.step = step, .begins_after = std::nullopt, .ends_with = 0, .of_host = !by_device};
    if (by_device) {
      if (s > 0) ops.begins_after = out.steps.back().ends_with;
    } else if (steps.source == StepSource::kSpan) {
      last_thread(ops);
    } else {
      ops.begins_after = op_at(step.thread, step.start);
      ops.ends_with = op_at(step.thread, is_last ? step.end : steps.steps[s + 1].start);
      if (!is_last) ops.step.end = steps.steps[s + 1].start;
    }
    for (const Stream& stream : r.streams()) {
      std::optional<GpuIndex> last;
      for (const GpuIndex i : stream.ops) {
        const auto call = r.launcher(i);
        const Nanoseconds at = call                  ? r.host(*call).start
                               : r.threads().empty() ? r.gpu(i).start
                                                     : Nanoseconds(INT64_MIN);
        const bool inside = steps.source == StepSource::kSpan ||
                            (at >= step.start && (is_last || at < steps.steps[s + 1].start));
        if (inside) last = i;
      }
      if (!last) continue;
      ops.last_device_ops.push_back(out.device_last[*last]);
      const Nanoseconds end = r.gpu(*last).end();
      if (ops.measured_device_end && *ops.measured_device_end >= end) continue;
      ops.measured_device_end = end;
      if (by_device) ops.ends_with = out.device_last[*last];
    }
    if (by_device && ops.measured_device_end) {
      ops.step.end = *ops.measured_device_end;
    } else if (by_device) {  // a step in which this rank did nothing
      ops.step.partial = true;
      ops.ends_with = ops.begins_after.value_or(0);
    }
    out.steps.push_back(std::move(ops));
  }
}

}  // namespace rehearse::replay
