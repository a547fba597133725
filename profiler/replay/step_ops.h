// The steps of a recording as ops of its program.
#pragma once

#include <vector>

#include "profiler/replay/host_events.h"
#include "profiler/replay/lower.h"

namespace rehearse::replay {

/// Puts the recorded instants that bound the steps of a rank into `out`, as ends of
/// ops of the program. `events` are those of each thread; `ends_at` has for each of them the op
/// whose end it is. REQUIRES: `out` has its device ops and its unseen backlog.
void add_steps(const Recording& recording, Steps steps, const std::vector<EventSequence>& events,
               const std::vector<std::vector<OpIndex>>& ends_at, RankReplay& out);

}  // namespace rehearse::replay
