#include "cli/globals.h"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "cli/progress_line.h"
#include "sim/base/utf8.h"

namespace rehearse::cli {

std::atomic<bool> interrupted = false;

unsigned Globals::thread_count() const {
  return threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
}

Globals Globals::on_stdout() const {
  Globals globals = *this;
  globals.output.clear();
  return globals;
}

Globals Globals::without_page() const {
  Globals globals = *this;
  globals.report.clear();
  return globals;
}

Progress Globals::progress_of(std::string what) const {
  if (quiet || what.empty()) return [](double) { return !interrupted.load(); };
  return begin_phase(std::move(what));
}

void Globals::warn(const std::string& line) const {
  if (!quiet) say("warning: " + line);
}

// Here and elsewhere what stderr cannot take is lost, and ends no command: fmt::print would throw.
void say(std::string_view line) {
  clear_progress_line();
  std::fputs((printable(line) + "\n").c_str(), stderr);
}

}  // namespace rehearse::cli
