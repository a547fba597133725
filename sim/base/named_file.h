// Files that the text of another file names.
#pragma once

#include <filesystem>
#include <string_view>

#include "sim/base/result.h"

namespace rehearse {

/// The path that a file in `folder` names by `word`. Fails if it is neither below that folder nor below
/// the current one, links followed, so that a file from elsewhere cannot make the program read others
/// of its user's; unless allow_outside() was called.
Result<std::filesystem::path> named_file(const std::filesystem::path& folder,
                                         std::string_view word);

/// From now on files may name any path. REQUIRES: no other thread reads files yet.
void allow_outside();

}  // namespace rehearse
