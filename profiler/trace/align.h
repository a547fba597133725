// align: one clock for all ranks of a trace.
#pragma once

#include "profiler/trace/trace.h"

namespace rehearse::trace {

/// Shifts the rows of every timed rank so that time zero is the earliest row of any of them, and
/// clock_base says when that was. Ranks keep their distances: the clocks of one server agree.
/// Ranks whose clocks lie more than a day apart are no recording of one moment; they are each moved
/// to zero, and a clock_skew problem is counted.
void align(Trace& trace);

}  // namespace rehearse::trace
