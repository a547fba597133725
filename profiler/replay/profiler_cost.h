// What recording cost the host, where the recorder measured it.
#pragma once

#include "profiler/trace/trace.h"

namespace rehearse::replay {

/// Host time that each recorded range or call took of the program, beside what the recording shows
/// as work of the profiler. Zero where it was not measured.
struct ProfilerCost {
  Nanoseconds per_range{0};
  Nanoseconds per_call{0};

  /// Of one host op.
  Nanoseconds of(trace::HostKind kind) const;
};

/// From the facts `overhead.ns_per_range` and `overhead.ns_per_call`: numbers of nanoseconds. What
/// is no number, or beyond a millisecond, is no measurement of that.
ProfilerCost profiler_cost(const trace::RankInfo& info);

}  // namespace rehearse::replay
