// Cost of recording on the host, if the recorder measured it.
#pragma once

#include "profiler/trace/trace.h"

namespace rehearse::replay {

/// Host time of each recorded range or call, in addition to the recorded work of the
/// profiler. Zero if it was not measured.
struct ProfilerCost {
  Nanoseconds per_range{0};
  Nanoseconds per_call{0};

  /// The cost of recording one host op.
  Nanoseconds of(trace::HostKind kind) const;
};

/// Reads the facts `overhead.ns_per_range` and `overhead.ns_per_call`, in nanoseconds. Other
/// values, or values above a millisecond, are ignored.
ProfilerCost profiler_cost(const trace::RankInfo& info);

}  // namespace rehearse::replay
