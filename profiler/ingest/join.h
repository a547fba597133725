// join: adds the data of an execution trace to the timed recording of the same rank.
#pragma once

#include "profiler/trace/trace.h"

namespace rehearse::ingest {

/// Whether the rank has operators without times.
inline bool is_execution_trace(const trace::Rank& rank) {
  return !rank.info.timed && rank.info.format == "execution_trace";
}

/// Merges every execution trace that belongs to a timed rank into that rank, and removes it. It
/// belongs to the rank with the same number; else to the only one of the same process; else to the
/// one with the number in its file name; else to the only one that is left.
///
/// Operators are matched by record-function id and name if the timed recording has such ids, else
/// by name in the order of each thread; the execution trace may cover any part of the recording. A
/// matched operator gets missing data: inputs, collective and record-function id. It gets sequence
/// number and forward thread only if both recordings use the same numbers, because the execution
/// trace may be of another step. Operators without a match are counted as unjoined.
void join_execution_traces(trace::Trace& trace);

}  // namespace rehearse::ingest
