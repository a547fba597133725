#include "sim/base/installed.h"

#include <fmt/core.h>

namespace rehearse {

namespace fs = std::filesystem;

Result<fs::path> installed_library(std::string_view name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return fail("the path of this program cannot be determined: " + error.message());
  const fs::path folder = program.parent_path();
  fs::path base = folder;
  for (int level = 0; level < 3; ++level, base = base.parent_path())
    if (const fs::path file = base / "lib" / "rehearse" / name; fs::exists(file, error))
      return file;
  return fail_in(fmt::format("{}/lib/rehearse/{}", folder.parent_path().string(), name),
                 "is missing: the installation is incomplete",
                 "the file that `cmake --install` puts there");
}

}  // namespace rehearse
