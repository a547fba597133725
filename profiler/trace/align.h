// align: one clock for all ranks of a trace.
#pragma once

#include "profiler/trace/trace.h"

namespace rehearse::trace {

/// Shifts the rows of every timed rank so that time zero is the earliest row of any of them, and
/// clock_base says when that was. Ranks keep their distances: the clocks of one server agree.
/// Ranks whose clocks lie more than a day apart are no recording of one moment; they are each moved
/// to zero, and a clock_skew problem is counted.
///
/// Ranks on several hosts are then brought to the clock of the first rank's host by align_hosts.
void align(Trace& trace);

/// Brings the clock of each host to that of the first timed rank's by offset and drift, fitted on
/// collectives: the members of one must end nearly together. Which belong together is told by
/// group, kind, bytes and order. Says in RankInfo::clock_fit what was done; a host that shares too
/// few collectives with the others keeps its clock, and has none. Starts and ends are both moved,
/// so that what nested still does. Returns whether any was moved. REQUIRES: the ranks' times have
/// one origin.
bool align_hosts(Trace& trace);

}  // namespace rehearse::trace
