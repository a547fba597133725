// The timeline of a replay: recorded above simulated, per rank.
#pragma once

#include <filesystem>
#include <vector>

#include "cli/output/timeline_sink.h"
#include "profiler/replay/lower.h"
#include "sim/graph/timeline.h"

namespace rehearse::cli {

/// Adds two processes per rank ("rank 0 recorded", "rank 0 simulated"), with a thread per host
/// thread and per stream. Simulated host work is shown as the stretches between marks, each named
/// after the range that contains it.
void show_replay(const std::vector<replay::Recording>& recordings,
                 const replay::ReplayGraph& replay, const graph::Timeline& timeline,
                 TimelineSink& sink);

/// The same as a Chrome trace that Perfetto opens.
Status write_perfetto(const std::filesystem::path& path,
                      const std::vector<replay::Recording>& recordings,
                      const replay::ReplayGraph& replay, const graph::Timeline& timeline);

}  // namespace rehearse::cli
