// session.yaml: what the launcher knows of a recording and its captures do not say.
// docs/profiling.md describes it.
#pragma once

#include <filesystem>
#include <optional>

#include "cli/commands/profile_overhead.h"
#include "profiler/launch/launch.h"

namespace rehearse::cli {

/// Writes the file into the folder of the recording.
Status write_session(const capture::LaunchOptions& options, const capture::LaunchReport& report,
                     const std::optional<Overhead>& overhead);

}  // namespace rehearse::cli
