// Files that come with the program, found from wherever it is called.
#pragma once

#include <filesystem>
#include <string_view>

#include "sim/base/result.h"

namespace rehearse {

/// A library that the program brings along: in lib/rehearse beside the program (build tree),
/// beside its folder (installed), or one further up (benchmarks). Fails with where it was looked
/// for.
Result<std::filesystem::path> installed_library(std::string_view name);

}  // namespace rehearse
