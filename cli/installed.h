// Files that come with the program, found from wherever it is called.
#pragma once

#include <filesystem>
#include <string_view>

#include "sim/base/result.h"

namespace rehearse::cli {

/// A library that the program brings along: in lib/rehearse beside the program (build tree) or
/// beside its folder (installed). Fails with where it was looked for.
Result<std::filesystem::path> installed_library(std::string_view name);

}  // namespace rehearse::cli
