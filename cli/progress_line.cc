#include "cli/progress_line.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include "sim/work/communicator.h"

namespace rehearse::cli {
namespace {

struct Phase {
  std::string what;
  std::atomic<std::chrono::steady_clock::time_point> begin = std::chrono::steady_clock::now();
  std::atomic<double> begun_at = -1;  ///< the share of work that goes on where it was stopped
  std::atomic<double> share = 0;
};

struct Terminal {
  std::mutex mutex;                       ///< of the rest
  std::vector<const Phase*> phases = {};  ///< the one that began last is the last
  bool drawn = false;

  /// REQUIRES: the mutex is held.
  void clear() {
    if (drawn) std::fputs("\r\033[K", stderr);
    drawn = false;
  }
};
Terminal progress_terminal;

double elapsed_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// "searching plans: 40 %, 3 s left"; "simulating: 3 s" as long as nothing is known of the rest.
std::string words_of(const Phase& phase) {
  const double elapsed = elapsed_since(phase.begin), share = phase.share;
  const double done = share - phase.begun_at;
  if (phase.begun_at < 0 || share <= 0 || share >= 1)
    return fmt::format("{}: {:.0f} s", phase.what, elapsed);
  const std::string left =
      done > 0.02 ? fmt::format(", {:.0f} s left", elapsed * (1 - share) / done) : "";
  return fmt::format("{}: {:.0f} %{}", phase.what, share * 100, left);
}

void draw_progress(const Phase& command) {
  Terminal& on = progress_terminal;
  const std::lock_guard lock(on.mutex);
  const std::string text = "\r\033[K" + words_of(on.phases.empty() ? command : *on.phases.back());
  std::fputs(text.c_str(), stderr);
  on.drawn = true;
}

void draw_progress_until(const std::stop_token& stop, std::string command) {
  const Phase phase{.what = std::move(command)};
  std::mutex own;
  std::unique_lock lock(own);
  std::condition_variable_any wake;
  const auto stopped = [&] { return stop.stop_requested(); };
  using std::chrono::milliseconds;
  if (wake.wait_for(lock, stop, milliseconds(500), stopped)) return;
  do draw_progress(phase);
  while (!wake.wait_for(lock, stop, milliseconds(200), stopped));
}

/// Lists a phase as long as it exists.
class ListedPhase {
 public:
  explicit ListedPhase(std::string what) : phase_{.what = std::move(what)} {
    const std::lock_guard lock(progress_terminal.mutex);
    progress_terminal.phases.push_back(&phase_);
  }
  ~ListedPhase() {
    const std::lock_guard lock(progress_terminal.mutex);
    std::erase(progress_terminal.phases, &phase_);
    progress_terminal.clear();
  }
  ListedPhase(const ListedPhase&) = delete;
  ListedPhase& operator=(const ListedPhase&) = delete;

  void report(double share) {
    const bool begins_again = share < phase_.share.exchange(share);  // a loop after another one
    if (begins_again) phase_.begin = std::chrono::steady_clock::now();
    if (begins_again || phase_.begun_at < 0) phase_.begun_at = share;
  }

 private:
  Phase phase_;
};

}  // namespace

bool shows_progress(const Globals& globals) {
  return work::leads() && !globals.quiet && (globals.progress || ::isatty(STDERR_FILENO) != 0);
}

ProgressLine::ProgressLine(std::string command, bool shown) {
  if (!shown) return;
  // Signals interrupt the waits of the command's own thread.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  drawing_ = std::jthread(draw_progress_until, std::move(command));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ProgressLine::~ProgressLine() {
  if (!drawing_.joinable()) return;
  drawing_.request_stop();
  drawing_.join();
  clear_progress_line();
}

Progress begin_phase(std::string what) {
  return [phase = std::make_shared<ListedPhase>(std::move(what))](double share) {
    phase->report(share);
    return !interrupted.load();
  };
}

void clear_progress_line() {
  const std::lock_guard lock(progress_terminal.mutex);
  progress_terminal.clear();
}

}  // namespace rehearse::cli
