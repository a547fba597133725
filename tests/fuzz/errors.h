// What must hold of every error of a reader that is fuzzed.
#pragma once

#include <string>

#include "sim/base/check.h"
#include "sim/base/result.h"

namespace rehearse::fuzz {

/// The file that the bytes are said to come from.
inline constexpr const char* kName = "fuzzed";

/// An error is one line that names the file.
inline void check_error(const Error& error) {
  REHEARSE_CHECK(!error.diagnostics.empty());
  for (const Diagnostic& diagnostic : error.diagnostics) {
    const std::string line = to_string(diagnostic);
    REHEARSE_CHECK(line.find(kName) != std::string::npos, "{}", line);
    REHEARSE_CHECK(line.find('\n') == std::string::npos, "{}", line);
  }
}

/// The same of one that knows of no file, which the command then names.
inline void check_error_without_file(Error error) {
  for (Diagnostic& d : error.diagnostics) d.file = kName;
  check_error(error);
}

}  // namespace rehearse::fuzz
