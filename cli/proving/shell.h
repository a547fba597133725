// Shell commands that end: on their own, after a time limit, or with an interrupt of this program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::cli {

struct ShellCommand {
  std::string text;
  std::filesystem::path folder;  ///< in which it runs; receives its stdout and stderr as files
  std::vector<std::string> variables;  ///< NAME=VALUE, in addition to those of this process
  Seconds limit;
};

/// Runs the command without input, and returns its stdout. Fails with the exit code and the last line
/// of stderr if the command fails, after the limit, and after an interrupt. In every case no process
/// of its process group remains.
Result<std::string> run_shell(const ShellCommand& command);

}  // namespace rehearse::cli
