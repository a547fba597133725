// Readers of what rocprofv3 (ROCm 6 and 7) writes: its JSON, and its CSV files, one per process and
// kind of event. docs/formats/inputs.md lists the fields.
#pragma once

#include <filesystem>
#include <string_view>

#include "profiler/ingest/byte_source.h"
#include "profiler/ingest/new_rank.h"
#include "sim/base/progress.h"
#include "sim/base/result.h"

namespace rehearse::ingest {

/// The key at the top of its JSON.
inline constexpr std::string_view kRocprofKey = "rocprofiler-sdk-tool";

/// Whether a text begins with the heading of a table of kernels.
bool looks_like_rocprof_csv(std::string_view begin);

/// Each process of the document becomes a rank. `file` names it in messages. Fails on a document
/// without device work.
Status read_rocprof_json(ByteSource& source, const std::string& file, const NewRank& new_rank,
                         const Progress& progress);

/// The table of kernels with the tables in its folder whose names differ in "kernel_trace" alone:
/// memory_copy_trace, hip_api_trace, marker_api_trace and agent_info, as far as they exist. Fails on
/// the first wrong cell, with its line and column.
Status read_rocprof_csv(const std::filesystem::path& kernels, const NewRank& new_rank);

}  // namespace rehearse::ingest
