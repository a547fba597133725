// Published tables are kept compressed.
#pragma once

#include <filesystem>
#include <string>

#include "sim/base/result.h"

namespace rehearse::cli {

/// The contents of a file, decompressed if it is gzip; a truncated file is an error.
Result<std::string> read_inflated(const std::filesystem::path& path);

}  // namespace rehearse::cli
