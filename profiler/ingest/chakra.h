// Reader of MLCommons Chakra execution traces (.et): a stream of protobuf messages, each behind its
// length, first the metadata of the file and then one per op.
#pragma once

#include "profiler/ingest/byte_source.h"
#include "profiler/trace/recorder.h"
#include "sim/base/progress.h"

namespace rehearse::ingest {

/// Reads one file (one rank) into `recorder`, whose info().source names it. The rows have no start:
/// what such a trace states are dependencies and durations. Damage is counted as problems; fails on
/// what holds no op at all. Memory grows with the ops only by what their ids take.
Status read_chakra(ByteSource& source, trace::Recorder& recorder, const Progress& progress);

}  // namespace rehearse::ingest
