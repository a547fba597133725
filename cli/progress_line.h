// The line on stderr that shows the present phase of a command, the share of it that is done, and the remaining time.
#pragma once

#include <string>
#include <thread>

#include "cli/globals.h"

namespace rehearse::cli {

/// Whether progress is shown: on a terminal, or where --progress asks for it. Of several ranks the first shows its own.
bool shows_progress(const Globals& globals);

/// The line of a command. From half a second on it is drawn five times per second, whether the work reports anything
/// or not: the phase that began last, or the command between phases.
class ProgressLine {
 public:
  ProgressLine(std::string command, bool shown);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

 private:
  std::jthread drawing_;
};

/// Begins a phase, which ends with the last copy of the result. Any thread may report to it.
Progress begin_phase(std::string what);

/// Removes the line until it is drawn again, so that other text can be written.
void clear_progress_line();

}  // namespace rehearse::cli
