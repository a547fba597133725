// Runs programs under the capture library, and reads their recordings.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "profiler/trace/trace.h"

namespace rehearse::test {

/// The library, and the folder of the programs in tests/capture_targets.
std::filesystem::path capture_library();
std::filesystem::path capture_program(const std::string& name);

/// The builds of target.cc: with our declarations of NVTX, and with NVIDIA's if they are found.
std::vector<std::string> target_builds();

/// A running program; everything that it prints to stderr goes to `folder`/stderr.txt.
class Running {
 public:
  /// The command is the program's path and its arguments. The variables are added to the
  /// environment.
  Running(std::vector<std::string> command, std::map<std::string, std::string> variables,
          std::filesystem::path folder);
  int process() const { return process_; }
  /// Waits for its end and returns its status as waitpid does.
  int wait();
  std::string errors() const;

 private:
  int process_;
  std::filesystem::path folder_;
};

/// Variables that make a program record into `folder`.
std::map<std::string, std::string> recording_to(const std::filesystem::path& folder);

/// Runs target.cc in the build `build`, recording into `folder`. Returns its exit code, or 128 plus
/// the signal that ended it.
int run_target(const std::string& build, std::vector<std::string> arguments,
               const std::filesystem::path& folder);

/// Reads a capture folder into memory. Throws the text of the error if that fails.
trace::Trace read_captures(const std::filesystem::path& folder);

/// The number of problems of a kind in a trace, and the position of the first.
std::uint64_t problems(const trace::Trace& trace, trace::ProblemKind kind);
std::string first_problem(const trace::Trace& trace, trace::ProblemKind kind);

/// The host ops with that name, in the order of the recording.
std::vector<trace::HostOp> named(const trace::Trace& trace, const trace::Rank& rank,
                                 std::string_view name);

}  // namespace rehearse::test
