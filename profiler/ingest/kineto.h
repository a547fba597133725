// Reader of Kineto and other Chrome-trace JSON: PyTorch profilers from 2021 on, on CUDA and ROCm.
// docs/formats/inputs.md lists the fields.
#pragma once

#include "profiler/ingest/byte_source.h"
#include "profiler/trace/recorder.h"
#include "sim/base/progress.h"

namespace rehearse::ingest {

/// Reads one file (one rank) into `recorder`, whose info().source names it. Damage is counted as
/// problems; fails on invalid JSON, and on a file without events.
Status read_kineto(ByteSource& source, trace::Recorder& recorder, const Progress& progress);

}  // namespace rehearse::ingest
