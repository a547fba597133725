// A set of jobs and the GPUs to put them on (docs/formats/pack.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/sharing/pack.h"

namespace rehearse::cli {

struct PackFile {
  std::string device = {};
  sharing::Site site;  ///< its pairs refer to nothing of this struct
  sharing::Goal goal = sharing::Goal::kThroughput;
  std::optional<double> usd_per_gpu_hour = {};
  std::vector<sharing::PackJob> jobs = {};
  std::size_t measured_pairs = 0;
};

/// Fails with every mistake of the file, one line each.
Result<PackFile> load_pack(const std::filesystem::path& path);

}  // namespace rehearse::cli
