// Files that come with the program, found from wherever it is called.
#pragma once

#include <filesystem>
#include <string_view>

#include "sim/base/result.h"

namespace rehearse {

/// A library that belongs to the program: in lib/rehearse in the program's folder (build tree),
/// in the parent folder (installed), or one further up (benchmarks). Fails with the places that
/// were searched.
Result<std::filesystem::path> installed_library(std::string_view name);

}  // namespace rehearse
