#include "cli/globals.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include <fmt/core.h>
#include <unistd.h>

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
  using Clock = std::chrono::steady_clock;
  struct Line {
    std::string what;
    Clock::time_point begin = Clock::now();
    Clock::time_point shown = Clock::now();
    std::optional<double> begun_at = {};  ///< the share of work that goes on where it was stopped
    double last = 0;
    bool drawn = false;
    ~Line() {
      if (drawn) std::fputs("\r\033[K", stderr);
    }
  };
  const bool show = !quiet && (progress || ::isatty(STDERR_FILENO));
  auto line = std::make_shared<Line>();
  line->what = std::move(what);
  return [line, show](double share) {
    const auto now = Clock::now();
    // A loop after another one begins again.
    if (share < line->last) line->begin = now;
    if (!line->begun_at || share < line->last) line->begun_at = share;
    line->last = share;
    if (show && now - line->shown > std::chrono::milliseconds(200)) {
      line->shown = now;
      line->drawn = true;
      const double elapsed = std::chrono::duration<double>(now - line->begin).count();
      const double done = share - *line->begun_at;
      const std::string left =
          done > 0.02 ? fmt::format(", {:.0f} s left", elapsed * (1 - share) / done) : "";
      const std::string text = fmt::format("\r\033[K{}: {:.0f} %{}", line->what, share * 100, left);
      std::fputs(text.c_str(), stderr);
    }
    return !interrupted.load();
  };
}

void Globals::warn(const std::string& line) const {
  if (!quiet) say("warning: " + line);
}

// Here and elsewhere what stderr cannot take is lost, and ends no command: fmt::print would throw.
void say(std::string_view line) { std::fputs((printable(line) + "\n").c_str(), stderr); }

}  // namespace rehearse::cli
