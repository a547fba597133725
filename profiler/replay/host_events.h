// What a host thread did, as a sequence of instants: the starts and ends of its ops, nested
// soundly.
#pragma once

#include <vector>

#include "profiler/replay/recording.h"

namespace rehearse::replay {

struct HostEvent {
  Nanoseconds time;
  HostIndex op;
  bool is_start;
};

/// One thread's events. Times never decrease, and every start has its end.
/// Between event k and event k+1 the thread is at work in `innermost[k]`, or in nothing recorded.
struct EventSequence {
  std::vector<HostEvent> events;
  std::vector<std::optional<HostIndex>> innermost;
};

/// Ops that overlap without nesting (clocks of whole microseconds, ranges closed out of order) are
/// cut to end with the op they start in. What happens within a call that waits is left out: the
/// call as a whole is what a replay decides anew.
EventSequence host_events(const Recording& recording, const HostThread& thread);

/// Whether the op may wait for the device, so that its recorded duration is no cost: a call that
/// synchronises or copies, or a launch held up by a full queue.
bool may_wait(const Recording& recording, HostIndex op);

}  // namespace rehearse::replay
