// Reader of Nsight Systems recordings exported to SQLite ("nsys export --type sqlite").
// docs/formats/inputs-nsys.md lists the tables.
#pragma once

#include <filesystem>

#include "profiler/ingest/new_rank.h"
#include "sim/base/progress.h"
#include "sim/base/result.h"

namespace rehearse::ingest {

/// Whether the file is an SQLite database with tables of such an export, or one that is packed by
/// gzip.
bool is_nsys(const std::filesystem::path& file);

/// A packed file is unpacked into the folder of temporary files while it is read.
/// Reads one rank per process that used CUDA or NVTX, in order of process number. Missing tables
/// and columns count as empty; damage is counted as problems. Fails on other databases, and on an
/// export without CUDA and NVTX activity.
Status read_nsys(const std::filesystem::path& file, const NewRank& new_rank,
                 const Progress& progress);

}  // namespace rehearse::ingest
