// Reader of the Chrome traces that JAX's profiler writes next to its xplane (trace.json.gz): threads of
// the host, and the streams of the GPUs of one process. docs/formats/inputs.md lists the fields.
#pragma once

#include <string_view>

#include "profiler/ingest/byte_source.h"
#include "profiler/trace/recorder.h"
#include "sim/base/progress.h"
#include "sim/base/result.h"

namespace rehearse::ingest {

/// Whether the name of a process in a Chrome trace is one that XLA gives.
bool names_xla_process(std::string_view name);

/// Reads one file (one process, with all its GPUs) into `recorder`, whose info().source names it.
/// Fails on a trace without streams of a GPU.
Status read_jax(ByteSource& source, trace::Recorder& recorder, const Progress& progress);

}  // namespace rehearse::ingest
