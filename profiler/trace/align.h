// align: one clock for all ranks of a trace.
#pragma once

#include "profiler/trace/trace.h"

namespace rehearse::trace {

/// Shifts the rows of every timed rank so that time zero is the earliest row of any of them, and
/// sets clock_base to that time. Distances between ranks are kept, because the clocks of one server
/// agree. Ranks whose clocks differ by more than a day are not from one run; they are each moved
/// to zero, and a clock_skew problem is counted.
///
/// Ranks on several hosts are then mapped to the clock of the first rank's host by align_hosts.
void align(Trace& trace);

/// Maps the clock of each host to that of the first timed rank's host by offset and drift, fitted
/// on collectives: the members of one must end nearly together, and where threads of hosts run them,
/// none may end before another starts (one in 20 may). Collectives are matched by group,
/// kind, bytes and order. RankInfo::clock_fit describes the result. A host that shares too few
/// collectives with the others keeps its clock, and has no fit. Starts and ends are both moved, so
/// that nesting is preserved. Returns whether any row was moved. REQUIRES: the ranks' times have
/// one origin.
bool align_hosts(Trace& trace);

}  // namespace rehearse::trace
