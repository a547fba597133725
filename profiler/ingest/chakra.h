// Reader of MLCommons Chakra execution traces (.et): a stream of protobuf messages, each preceded
// by its length, first the metadata of the file and then one per op.
#pragma once

#include "profiler/ingest/byte_source.h"
#include "profiler/trace/recorder.h"
#include "sim/base/progress.h"

namespace rehearse::ingest {

/// Reads one file (one rank) into `recorder`, whose info().source names it. The rows have no start:
/// such a trace has only dependencies and durations. Damage is counted as problems; fails on a file
/// without ops. Memory grows only with the ids of the ops.
Status read_chakra(ByteSource& source, trace::Recorder& recorder, const Progress& progress);

}  // namespace rehearse::ingest
