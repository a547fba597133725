// Reads logs of nccl-tests: text output, and the JSON of its option -J.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/comm/fit.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// One run of one test.
struct NcclRun {
  CollectiveKind kind;
  std::uint32_t ranks = 0;
  std::uint32_t nodes = 1;
  std::string device = {};        ///< as the driver names it; may be empty
  std::string nccl_version = {};  ///< may be empty
  std::vector<comm::MeasuredRow> rows =
      {};  ///< out of place; in place where only that was measured
};

/// All runs of a file, in order. The kind of collective is read from the log, else from the file's
/// name (all_reduce…, alltoall…). Fails with the place on what is no such log: without devices,
/// without results, lines that do not fit the heading, wrong results, times that are not above 0.
Result<std::vector<NcclRun>> read_nccl_log(const std::filesystem::path& path);
/// The same for text in memory.
Result<std::vector<NcclRun>> parse_nccl_log(const std::string& text, const std::string& name);

}  // namespace rehearse::cli
