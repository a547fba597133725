// The timeline of a job that was run, for ui.perfetto.dev: a process per rank that was run, a
// thread per stream of it.
#pragma once

#include <filesystem>

#include "models/job/lower.h"
#include "sim/base/result.h"
#include "sim/graph/job.h"
#include "sim/graph/timeline.h"

namespace rehearse::cli {

Status draw_job(const std::filesystem::path& path, const graph::Job& job,
                const job::LoweredJob& lowered, const graph::Timeline& timeline);

}  // namespace rehearse::cli
