// Work that one host thread hands to another and waits for: PyTorch's backward pass runs on an
// autograd thread while the main thread is silent.
#pragma once

#include <vector>

#include "profiler/replay/host_events.h"

namespace rehearse::replay {

/// All events [first, last] of `worker` lie within the silence of `owner` after the owner's event
/// `gap`. Threads are indices into Recording::threads().
struct HandOff {
  std::size_t owner;
  std::size_t gap;
  std::size_t worker;
  std::size_t first;
  std::size_t last;
};

/// Finds the hand-offs; the owner's silence is to be replaced by its wait for the worker. `events`
/// has one sequence per thread.
std::vector<HandOff> find_hand_offs(const Recording& recording,
                                    const std::vector<EventSequence>& events);

}  // namespace rehearse::replay
