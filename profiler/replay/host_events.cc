#include "profiler/replay/host_events.h"

#include <algorithm>

namespace rehearse::replay {

bool may_wait(const Recording& recording, HostIndex op) {
  switch (call_kind(recording, op)) {
    case CallKind::kSyncDevice:
    case CallKind::kSyncStream:
    case CallKind::kSyncEvent:
    case CallKind::kCopy:
    case CallKind::kBlockingCopy:
    case CallKind::kQueueFull: return true;
    default: return false;
  }
}

bool communicates(const Recording& recording, HostIndex op) {
  return recording.streams().empty() && recording.host(op).collective;
}

EventSequence host_events(const Recording& recording, const HostThread& thread) {
  struct Open {
    HostIndex op;
    Nanoseconds end;
    bool waits;
  };
  EventSequence sequence;
  sequence.events.reserve(2 * thread.ops.size());
  std::vector<Open> open;
  const auto emit = [&](Nanoseconds time, HostIndex op, bool is_start) {
    sequence.events.push_back({time, op, is_start});
    sequence.innermost.push_back(open.empty() ? std::nullopt : std::optional(open.back().op));
  };
  const auto close_until = [&](Nanoseconds time) {
    while (!open.empty() && open.back().end <= time) {
      const Open closed = open.back();
      open.pop_back();
      emit(closed.end, closed.op, false);
    }
  };
  for (const HostIndex i : thread.ops) {
    const trace::HostOp& op = recording.host(i);
    close_until(op.start);
    if (!open.empty() && open.back().waits) continue;
    const Nanoseconds end = open.empty() ? op.end() : std::min(op.end(), open.back().end);
    open.push_back({i, end, may_wait(recording, i) || communicates(recording, i)});
    emit(op.start, i, true);
  }
  close_until(Nanoseconds(INT64_MAX));
  return sequence;
}

std::vector<std::optional<std::pair<std::size_t, std::size_t>>> start_events(
    const Recording& recording, const std::vector<EventSequence>& events) {
  std::vector<std::optional<std::pair<std::size_t, std::size_t>>> starts(
      recording.rank().host_ops.size());
  for (std::size_t t = 0; t < events.size(); ++t)
    for (std::size_t k = 0; k < events[t].events.size(); ++k)
      if (const HostEvent& event = events[t].events[k]; event.is_start) starts[event.op] = {t, k};
  return starts;
}

program::Task host_task(const Recording& r, std::optional<HostIndex> innermost) {
  if (innermost && communicates(r, *innermost)) return program::Task::kCollective;
  for (std::optional<HostIndex> at = innermost; at; at = r.parent(*at)) {
    if (r.host(*at).kind == trace::HostKind::kOverhead) return program::Task::kProfiler;
    if (r.name(r.host(*at)).starts_with("enumerate(DataLoader)")) return program::Task::kInput;
  }
  return program::Task::kHost;
}

}  // namespace rehearse::replay
