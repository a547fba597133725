#include "tests/support/data.h"

#include <cstdlib>
#include <string>

#include <unistd.h>

namespace rehearse::test {

namespace fs = std::filesystem;

fs::path source_file(const fs::path& path) { return fs::path(REHEARSE_SOURCE_DIR) / path; }

fs::path program_folder() { return REHEARSE_BINARY_DIR; }

std::optional<fs::path> shared_data(const fs::path& path) {
  const char* named = std::getenv("REHEARSE_DATA");
  const fs::path root =
      named ? fs::path(named) : fs::path(REHEARSE_SOURCE_DIR).parent_path() / "shared" / "data";
  if (!fs::exists(root / path)) return std::nullopt;
  return root / path;
}

namespace {

struct Scratch {
  fs::path path = fs::temp_directory_path() / ("rehearse-test-" + std::to_string(::getpid()));
  Scratch() {
    fs::remove_all(path);  // of a killed test that had the same process ID
    fs::create_directories(path);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

}  // namespace

fs::path scratch_folder() {
  static const Scratch scratch;
  static int next = 0;
  const fs::path folder = scratch.path / std::to_string(next++);
  fs::create_directories(folder);
  return folder;
}

}  // namespace rehearse::test
