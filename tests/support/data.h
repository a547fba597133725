// Finds the files of tests: those of the source tree, and measured data outside it.
#pragma once

#include <filesystem>
#include <optional>

namespace rehearse::test {

/// A file of the source tree, by its path there.
std::filesystem::path source_file(const std::filesystem::path& path);

/// The build folder of the program.
std::filesystem::path program_folder();

/// A file in the folder of measured data that REHEARSE_DATA names (default: ../shared/data next to
/// the source tree); nothing if it is absent.
std::optional<std::filesystem::path> shared_data(const std::filesystem::path& path);

/// An empty folder of this test run, removed at exit.
std::filesystem::path scratch_folder();

}  // namespace rehearse::test

/// Skips the test, with the reason, if the measured data is absent.
#define SKIP_WITHOUT_DATA(path)                                                   \
  if (!path) {                                                                    \
    WARN("skipped: no measured data next to the source tree (set REHEARSE_DATA)"); \
    return;                                                                       \
  }
