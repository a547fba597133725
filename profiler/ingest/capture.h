// Reader of the folders that the profiler's capture library writes.
#pragma once

#include <filesystem>

#include "profiler/ingest/new_rank.h"
#include "sim/base/progress.h"
#include "sim/base/result.h"

namespace rehearse::ingest {

/// Whether the folder holds capture files.
bool is_capture_folder(const std::filesystem::path& path);

/// Reads every process of a capture folder.
Status read_capture_folder(const std::filesystem::path& folder, const NewRank& new_rank,
                           const Progress& progress);

}  // namespace rehearse::ingest
