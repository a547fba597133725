// Runs the built program, in the source tree.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace rehearse::test {

/// The recording that most tests give to the program, by its path in the source tree.
inline constexpr char kExample[] = "examples/recordings/three_steps.json";

/// The result of a run.
struct Ran {
  int code;  ///< its exit code; 128 plus the signal if one ended it
  std::string out;
  std::string errors;
};

/// The program while it runs. Its stdout and stderr are files, so that it is never at a terminal.
class RunningRehearse {
 public:
  /// The variables are added to the environment.
  explicit RunningRehearse(std::vector<std::string> arguments,
                           std::map<std::string, std::string> variables = {});
  void signal(int number);
  /// Whether it has ended; it must still be waited for.
  bool ended() const;
  /// Returns when stderr contains the text; fails the test if the program ends before that.
  void wait_for(const std::string& says) const;
  Ran wait();

 private:
  int process_ = 0;
  std::filesystem::path folder_;
};

/// Runs the program to its end. Files of tests may name files of other folders.
Ran rehearse(std::vector<std::string> arguments);

/// Checks that a run ended with this code, printed nothing to stdout, and printed one line to
/// stderr that begins as errors do and contains `says`.
void check_failed(const Ran& ran, int code, const std::string& says);

/// The contents of a file; fails the test if it cannot be read.
std::string text_of(const std::filesystem::path& path);

/// Writes a text to a new file with that name in an empty folder, and returns its path.
std::filesystem::path write_scratch(const std::string& name, const std::string& text);

/// Writes a text to a file, replacing its contents.
void write_file(const std::filesystem::path& path, const std::string& text);

/// The names of the entries of a folder, sorted.
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// A Kineto recording of one thread: `steps` steps of a millisecond with two operators of 400 us
/// each, the second called `name` (as JSON has it). About 300 bytes per step.
std::string kineto_recording(int steps, const std::string& name = "aten::relu");

}  // namespace rehearse::test
