// Globals: the options that every command accepts, and the destinations of results and progress.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/progress.h"
#include "sim/base/result.h"

namespace rehearse::cli {

enum class Format { kTable, kJson, kCsv, kMarkdown };

/// Exit codes, as docs/exit-codes.md promises them.
enum class Exit : int { kSuccess = 0, kFailed = 1, kUsage = 2, kFault = 3 };

struct Globals {
  Format format = Format::kTable;
  std::filesystem::path output;  ///< empty: stdout
  std::filesystem::path report;  ///< the result as one HTML page; empty: not
  std::filesystem::path json;    ///< the result, or the errors, also as JSON; empty: not
  std::vector<std::filesystem::path> inputs = {};  ///< the files that the command line names
  bool quiet = false;                              ///< no warnings, no progress
  bool progress = false;                           ///< progress also where stderr is no terminal
  bool strict = false;                             ///< problems of a recording are errors
  unsigned threads = 0;                            ///< 0: one per core
  std::uint64_t seed = 1;                          ///< random seed

  unsigned thread_count() const;
  /// The options for a command whose -o names a file of its own: the document goes to stdout.
  Globals on_stdout() const;
  /// The options for a second document, after the page was written.
  Globals without_page() const;
  /// Begins a phase of the progress line (progress_line.h), if it has a name. Stops the work after an interrupt.
  Progress progress_of(std::string what) const;
  /// Writes a warning to stderr, unless quiet.
  void warn(const std::string& line) const;
};

/// Writes one line to stderr, as a terminal can show it (utf8.h).
void say(std::string_view line);

/// Set by the interrupt handler.
extern std::atomic<bool> interrupted;

}  // namespace rehearse::cli
