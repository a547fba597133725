// The timeline of a simulated job: a process per simulated rank, and a thread per stream.
#pragma once

#include <filesystem>

#include "cli/output/timeline_sink.h"
#include "models/job/lower.h"
#include "sim/base/result.h"
#include "sim/graph/timeline.h"
#include "sim/program/program.h"

namespace rehearse::cli {

void show_job(const program::Program& job, const job::LoweredJob& lowered,
              const graph::Timeline& timeline, TimelineSink& sink);

/// The same as a trace for ui.perfetto.dev.
Status draw_job(const std::filesystem::path& path, const program::Program& job,
                const job::LoweredJob& lowered, const graph::Timeline& timeline);

}  // namespace rehearse::cli
