// Reader of the folders that the profiler's capture library writes: one file per process.
// docs/formats/capture.md describes the files, and docs/profiling.md the recording.
#pragma once

#include <filesystem>

#include "profiler/ingest/byte_source.h"
#include "profiler/ingest/capture_clock.h"
#include "profiler/ingest/new_rank.h"
#include "profiler/trace/recorder.h"
#include "sim/base/progress.h"
#include "sim/base/result.h"

namespace rehearse::ingest {

/// Whether the folder holds capture files.
bool is_capture_folder(const std::filesystem::path& path);

/// Reads every process of a capture folder, in order of rank, then of name. If several processes
/// claim the same rank, the ancestor of the others gets the number.
/// Damage is counted as problems; fails if no file can be read as a capture, and on an
/// unknown format version.
Status read_capture_folder(const std::filesystem::path& folder, const NewRank& new_rank,
                           const Progress& progress);

/// Reads one file into `recorder`, whose info().source names it. Ranges and marks become
/// annotations (marks have no duration) or, if PyTorch wrote them, operators. Calls of NCCL carry
/// their Collective. Records of devices become calls, device ops and synchronizations. Times are
/// adjusted by `clock`. Fails only on an unknown format version; other contents count as one
/// malformed part.
Status read_capture(ByteSource& source, trace::Recorder& recorder, const Progress& progress,
                    CaptureClock clock = {});

}  // namespace rehearse::ingest
