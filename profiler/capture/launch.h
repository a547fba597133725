// Runs a program so that it, and every process it starts, is recorded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "profiler/capture/chosen_steps.h"
#include "profiler/capture/options.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::capture {

struct LaunchOptions {
  std::filesystem::path folder;      ///< where the recording goes: new or empty
  std::vector<std::string> command;  ///< the program, looked up as a shell does, and its arguments
  std::filesystem::path library;     ///< the capture library
  Options record = {};               ///< what is recorded
  bool output_to_stderr = false;     ///< what the program prints goes to our stderr
};

/// A process that loaded the capture library.
struct LaunchedProcess {
  std::string name;     ///< HOST-PID
  std::string command;  ///< its arguments, with spaces between
  bool recorded;        ///< its capture holds records
  bool ended;           ///< it ended in order, and nothing of its last moments is missing
  std::uint64_t ranges;
  std::uint64_t marks;
  std::uint64_t lost;
  std::uint64_t bytes;  ///< of the capture
  ChosenSteps steps = {};
};

struct LaunchReport {
  std::optional<int> exit_code;  ///< of the program; absent when a signal ended it
  std::optional<int> signal;     ///< that ended it
  Seconds wall;
  std::vector<LaunchedProcess> processes;  ///< by name; empty when no process used NVTX
  std::uint64_t ranges = 0;                ///< of all processes, as are the two below
  std::uint64_t marks = 0;
  std::uint64_t lost = 0;
  std::optional<StepCounts> steps = {};  ///< of all processes, where steps were chosen
  Seconds cost_per_range;  ///< that recording takes, measured on this machine before the start
  Seconds recording;       ///< estimated time that all threads together spent on it

  /// What a shell calls its exit code: 128 and the signal when one ended it.
  int shell_code() const { return exit_code.value_or(128 + signal.value_or(0)); }
};

/// The words by which the launcher tells the library what to record (options.h).
std::string option_words(const Options& options);

/// Runs the command to its end, with our input and output. SIGINT and SIGTERM that this process
/// gets meanwhile are passed on to it (one from the terminal has reached it already). Fails, having
/// run nothing, where another tool has asked to be injected, the folder holds something or cannot
/// be made, the library is not ours, or the command cannot be started.
Result<LaunchReport> launch(const LaunchOptions& options);

}  // namespace rehearse::capture
