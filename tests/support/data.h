// Where tests find files: those of the source tree, and measured data that are not part of it.
#pragma once

#include <filesystem>
#include <optional>

namespace rehearse::test {

/// A file of the source tree, by its path there.
std::filesystem::path source_file(const std::filesystem::path& path);

/// Where the program was built.
std::filesystem::path program_folder();

/// A file of the folder of measured data that REHEARSE_DATA names (by default ../shared/data beside
/// the source tree); nothing where it is absent.
std::optional<std::filesystem::path> shared_data(const std::filesystem::path& path);

/// An empty folder of this test run, removed at exit.
std::filesystem::path scratch_folder();

}  // namespace rehearse::test

/// Ends the test, saying why, where the measured data are absent.
#define SKIP_WITHOUT_DATA(path)                                                   \
  if (!path) {                                                                    \
    WARN("skipped: no measured data beside the source tree (set REHEARSE_DATA)"); \
    return;                                                                       \
  }
