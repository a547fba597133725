// join: what an execution trace knows of operators, added to the timed recording of the same rank.
#pragma once

#include "profiler/trace/trace.h"

namespace rehearse::ingest {

/// Whether the rank knows its operators, but not their times.
inline bool is_execution_trace(const trace::Rank& rank) {
  return !rank.info.timed && rank.info.format == "execution_trace";
}

/// Merges every execution trace of the trace that belongs to a timed rank into that rank, and
/// removes it. It belongs to the rank with the same number; else to the only one of the same
/// process; else to the one with the number in its file name; else to the only one that is left.
///
/// Operators are matched by record-function id and name where the timed recording has such ids,
/// else by name in the order of each thread; the execution trace may cover any part of the
/// recording. A matched operator is given what it lacks: inputs, collective and record-function id;
/// its sequence number and forward thread only where both recordings number alike, as an execution
/// trace may be of another step. Operators without a match are counted as unjoined.
void join_execution_traces(trace::Trace& trace);

}  // namespace rehearse::ingest
