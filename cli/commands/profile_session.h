// session.yaml: facts of a recording that only the launcher knows. docs/profiling.md describes it.
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
