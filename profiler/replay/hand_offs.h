// Work that one host thread hands to another and waits for: PyTorch's backward pass runs on an
// autograd thread while the main thread is silent.
#pragma once

#include <vector>

#include "profiler/replay/host_events.h"

namespace rehearse::replay {

/// The events [first, last] of `worker` follow the owner's event `gap`, and the owner's event `back`
/// waits for them in the silence before it; absent: it does not wait. Most lie in one silence, so that
/// `back` is the event after `gap`. Threads are indices into Recording::threads().
struct HandOff {
  std::size_t owner;
  std::size_t gap;
  std::size_t worker;
  std::size_t first;
  std::size_t last;
  std::optional<std::size_t> back = {};
};

/// Finds the hand-offs; the owner's silence is to be replaced by its wait for the worker. `events`
/// has one sequence per thread.
std::vector<HandOff> find_hand_offs(const Recording& recording,
                                    const std::vector<EventSequence>& events);

}  // namespace rehearse::replay
