// The checksum at the end of a store, after the pages of SQLite, which ignores it.
#pragma once

#include <filesystem>

#include "sim/base/result.h"

namespace rehearse::trace {

/// Appends the checksum of all bytes of a file that is otherwise complete.
Status seal(const std::filesystem::path& path);

enum class Seal { kNone, kIntact, kBroken };
/// Whether the file ends with the checksum of the bytes before. kBroken also if it cannot be read.
Seal seal_of(const std::filesystem::path& path);

}  // namespace rehearse::trace
