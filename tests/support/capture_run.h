// Runs programs under the capture library, and reads what they left.
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

/// The builds of target.cc: with our declarations of NVTX, and with NVIDIA's where they are found.
std::vector<std::string> target_builds();

/// A program that runs, with everything it prints on stderr in `folder`/stderr.txt.
class Running {
 public:
  /// Arguments follow the program's path. The variables are added to the environment.
  Running(std::vector<std::string> command, std::map<std::string, std::string> variables,
          std::filesystem::path folder);
  int process() const { return process_; }
  /// Its status, as waitpid gives it.
  int wait();
  std::string errors() const;

 private:
  int process_;
  std::filesystem::path folder_;
};

/// Variables that make a program record into `folder`.
std::map<std::string, std::string> recording_to(const std::filesystem::path& folder);

/// Runs target.cc, as `build` has it, recording into `folder`. Returns its exit code; 128 and the
/// signal when one ended it.
int run_target(const std::string& build, std::vector<std::string> arguments,
               const std::filesystem::path& folder);

/// Reads a capture folder into memory. Throws the error's text when that fails.
trace::Trace read_captures(const std::filesystem::path& folder);

/// How many problems of a kind a trace has, and where the first is.
std::uint64_t problems(const trace::Trace& trace, trace::ProblemKind kind);
std::string first_problem(const trace::Trace& trace, trace::ProblemKind kind);

/// The host ops of that name, in the order of the recording.
std::vector<trace::HostOp> named(const trace::Trace& trace, const trace::Rank& rank,
                                 std::string_view name);

}  // namespace rehearse::test
