// Reader of PyTorch execution traces (ExecutionTraceObserver): the operators of one rank in JSON,
// with inputs, shapes and numbers, but no times. Schemas 1.0.1 to 1.1.1, with and without
// "-chakra".
#pragma once

#include "profiler/ingest/byte_source.h"
#include "profiler/trace/recorder.h"
#include "sim/base/progress.h"

namespace rehearse::ingest {

/// Reads one file (one rank) into `recorder`, whose info().source names it. Damage is counted as
/// problems; fails on invalid JSON, on another schema, and on a file without any operator.
Status read_execution_trace(ByteSource& source, trace::Recorder& recorder,
                            const Progress& progress);

}  // namespace rehearse::ingest
