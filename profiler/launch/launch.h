// Runs a program so that it, and every process it starts, is recorded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "profiler/capture/options.h"
#include "profiler/launch/session.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::capture {

/// The variables that inject a tool into programs: through NVTX, the CUDA driver, NCCL. The
/// launcher sets them all to its library, and refuses to start if another tool has set one.
inline constexpr const char* kInjections[] = {"NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH",
                                              "NCCL_PROFILER_PLUGIN"};

struct LaunchOptions {
  std::filesystem::path folder;      ///< where the recording goes: new or empty
  std::vector<std::string> command;  ///< the program, looked up as a shell does, and its arguments
  std::filesystem::path library;     ///< the capture library
  Options record = {};               ///< recording options
  bool inject = true;  ///< false: run and timed without the library, for comparison; no folder
  std::filesystem::path python = {};        ///< a folder that Python searches first for modules
  std::vector<std::string> variables = {};  ///< NAME=VALUE, in addition to those of this process
  bool output_to_stderr = false;            ///< sends the program's output to our stderr
};

struct LaunchReport {
  std::optional<int> exit_code = {};  ///< absent if a signal ended the program
  std::optional<int> signal = {};     ///< that ended it
  Seconds wall;
  std::vector<LaunchedProcess> processes = {};  ///< by name; empty if none used CUDA or NVTX
  Counts counts = {};                           ///< of all processes
  std::optional<StepCounts> steps = {};         ///< of all processes, if steps were selected
  Seconds cost_per_range;  ///< of recording, measured on this machine before the start
  Seconds recording;       ///< estimated time that all threads together spent recording

  /// A shell's exit code: 128 plus the signal if one ended the program.
  int shell_code() const { return exit_code.value_or(128 + signal.value_or(0)); }
};

/// The launcher's options for the library (options.h), as words.
std::string option_words(const Options& options);

/// Environment settings that prevent parts of the recording, one line each; usually empty.
std::vector<std::string> launch_warnings();

/// Runs the command to its end, with our input and output. Passes on SIGINT and SIGTERM that this
/// process receives meanwhile (one from the terminal has reached the command already). Fails,
/// without running anything, if another tool is set to be injected, the folder is not empty or
/// cannot be created, the library is not ours, or the command cannot be started.
Result<LaunchReport> launch(const LaunchOptions& options);

}  // namespace rehearse::capture
