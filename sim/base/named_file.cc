#include "sim/base/named_file.h"

#include <algorithm>

#include <fmt/core.h>

namespace rehearse {
namespace {

namespace fs = std::filesystem;

bool outside_allowed = false;

/// Both are canonical.
bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

}  // namespace

void allow_outside() { outside_allowed = true; }

Result<fs::path> named_file(const fs::path& folder, std::string_view word) {
  const fs::path path = folder / word;
  if (outside_allowed) return path;
  std::error_code error;
  const fs::path real = fs::weakly_canonical(fs::absolute(path, error), error);
  for (const fs::path& allowed : {folder, fs::path()}) {
    const fs::path above = fs::weakly_canonical(fs::absolute(allowed / ".", error), error);
    if (!error && is_below(real, above.has_filename() ? above : above.parent_path())) return path;
  }
  return fail(fmt::format("'{}' is outside the folder of the file and the current folder", word),
              "a file below one of them, or --allow-outside");
}

}  // namespace rehearse
