// Reads logs of nccl-tests: text output, and the JSON of its option -J.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/comm/fit.h"
#include "sim/base/result.h"

namespace rehearse::cli {

struct NcclRun {
  CollectiveKind kind;
  std::uint32_t ranks = 0;
  std::uint32_t nodes = 1;
  std::string device = {};        ///< as the driver names it; may be empty
  std::string nccl_version = {};  ///< may be empty
  std::vector<comm::MeasuredRow> rows =
      {};  ///< out of place; in place where only that was measured
};

/// Returns all runs of a file, in order. The kind of collective is read from the log, or else from
/// the file name (all_reduce…, alltoall…). Fails with the position if the file is not such a log:
/// no devices, no results, lines that do not fit the heading, wrong results, or times that are not
/// above 0.
Result<std::vector<NcclRun>> read_nccl_log(const std::filesystem::path& path);
/// Reads the same from text in memory.
Result<std::vector<NcclRun>> parse_nccl_log(const std::string& text, const std::string& name);

}  // namespace rehearse::cli
