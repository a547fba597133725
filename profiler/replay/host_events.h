// The work of a host thread as a sequence of events: the starts and ends of its ops, properly
// nested.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "profiler/replay/recording.h"
#include "sim/program/program.h"

namespace rehearse::replay {

struct HostEvent {
  Nanoseconds time;
  HostIndex op;
  bool is_start;
};

/// The events of one thread. Times never decrease, and every start has its end. Between event k and
/// event k+1 the thread works in `innermost[k]`, or in nothing that was recorded.
struct EventSequence {
  std::vector<HostEvent> events;
  std::vector<std::optional<HostIndex>> innermost;
};

/// Returns the events of a thread. Ops that overlap without nesting (clocks of whole microseconds,
/// ranges closed out of order) are cut to end with the op in which they start. Ops inside a waiting
/// call or a collective are dropped, because a replay simulates these as a whole.
EventSequence host_events(const Recording& recording, const HostThread& thread);

/// By HostIndex: the thread of an op's start, and its number there. `events` has one sequence per thread.
std::vector<std::optional<std::pair<std::size_t, std::size_t>>> start_events(
    const Recording& recording, const std::vector<EventSequence>& events);

/// Whether the op may wait for the device, so that its recorded duration is not its cost: a call
/// that synchronizes or copies, or a launch that is held up by a full queue.
bool may_wait(const Recording& recording, HostIndex op);

/// Whether the op communicates on its thread, because no device does it. Like a call that waits, it is
/// simulated as a whole.
bool communicates(const Recording& recording, HostIndex op);

/// The activity of a thread while this op is the innermost: loading samples, work of the profiler,
/// communication (only where no device does it), or other work.
program::Task host_task(const Recording& recording, std::optional<HostIndex> innermost);

}  // namespace rehearse::replay
