// A backward operator needs the forward operator that created it; the recording links them by
// sequence number.
#pragma once

#include <vector>

#include "profiler/replay/host_events.h"

namespace rehearse::replay {

// Recorders write 0, or nothing, for the forward thread of an operator that is forward itself.
bool is_forward(const trace::HostOp& op);
bool is_backward(const trace::HostOp& op);

/// The event `to` of thread `backward` cannot come before the event `from` of thread `forward`.
/// Threads are indices into Recording::threads().
struct BackwardLink {
  std::size_t forward;
  std::size_t from;
  std::size_t backward;
  std::size_t to;
};

/// Returns only links that are not implied by earlier ones on the same two threads: a backward pass
/// visits forward operators last to first, so there is one per pass. `events` has one sequence per
/// thread.
std::vector<BackwardLink> find_backward_links(const Recording& recording,
                                              const std::vector<EventSequence>& events);

}  // namespace rehearse::replay
