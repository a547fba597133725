// The timeline of a run, for Perfetto and for the report: of a program that a plan or a Chakra trace
// made, or of a replay next to its recording.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "cli/output/timeline_sink.h"
#include "models/job/lower.h"
#include "profiler/replay/lower.h"
#include "sim/base/result.h"
#include "sim/graph/timeline.h"
#include "sim/program/program.h"

namespace rehearse::cli {

/// Adds a process per simulated rank, with a thread per stream.
void show_job(const program::Program& job, const job::LoweredJob& lowered,
              const graph::Timeline& timeline, TimelineSink& sink);

/// Adds two processes per rank ("rank 0 recorded", "rank 0 simulated"), with a thread per host
/// thread and per stream. Simulated host work is shown as the stretches between marks, each named
/// after the range that contains it.
void show_replay(const std::vector<replay::Recording>& recordings,
                 const replay::ReplayGraph& replay, const graph::Timeline& timeline,
                 TimelineSink& sink);

/// Writes a Chrome trace that ui.perfetto.dev opens; does nothing if the path is empty.
Status write_timeline(const std::filesystem::path& path,
                      const std::function<void(TimelineSink&)>& show);

}  // namespace rehearse::cli
