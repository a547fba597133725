// The one entry for recordings of any kind, used by the commands.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "profiler/ingest/detect.h"
#include "profiler/trace/trace.h"
#include "sim/base/progress.h"
#include "sim/base/result.h"

namespace rehearse::ingest {

struct ReadOptions {
  bool strict = false;  ///< fail on problems of severity warning or error
  Progress progress = {};
  /// Accepts a store that has only times of single operations.
  bool timings_suffice = false;
};

/// Reads recordings of one job into memory, on one clock (trace::align), in order of rank number.
///
/// A path is a recording or a folder of recordings (in order of name, numbers by value). A rank
/// whose recording does not say its number gets the lowest free one. Execution traces are joined to
/// the timed ranks they belong to (join.h). Fails on input that cannot be read, on two recordings
/// of one rank, and on stores without any.
Result<trace::Trace> read_inputs(std::span<const std::filesystem::path> paths,
                                 const ReadOptions& options);

/// A recording that read_inputs has read, as a page names it.
struct ReadRecording {
  std::filesystem::path path;        ///< as it was asked for: a file or a folder
  std::size_t ranks = 0;             ///< of all paths that were read with it
  std::vector<std::string> commits;  ///< of the recorded program; without duplicates
  std::vector<std::string> devices;  ///< names of devices; without duplicates
};
/// Those of this process, in the order in which they were read first.
std::vector<ReadRecording> recordings_read();

struct ImportSummary {
  std::size_t ranks = 0;
  std::size_t devices = 0;  ///< devices that were used, per rank
  std::uint64_t host_ops = 0;
  std::uint64_t gpu_ops = 0;
  std::uint64_t steps = 0;  ///< step marks of the rank that has the most
  bool in_memory = false;   ///< rows passed through memory, because of a store or execution trace
  trace::Problems problems;
};

/// Reads recordings into a trace store. Rows are streamed to the file, in bounded memory, unless
/// execution traces must be joined or stores merged. The rows keep the clocks of their ranks;
/// read_inputs gives the same result for the store as for the recordings.
Result<ImportSummary> import_inputs(std::span<const std::filesystem::path> paths,
                                    const std::filesystem::path& store, const ReadOptions& options);

}  // namespace rehearse::ingest
