#include "cli/proving/shell.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/globals.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// After a first signal this program has 700 ms left (main.cc).
constexpr Milliseconds kInterruptGrace(400), kLimitGrace(5000), kPoll(50);

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// The process is the leader of a new group.
Result<pid_t> start(const ShellCommand& command, const std::string& out,
                    const std::string& errors) {
  std::vector<std::string> words = {"sh", "-c", command.text}, variables = command.variables;
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (std::ranges::none_of(command.variables,
                             [&](const std::string& own) { return own.starts_with(name); }))
      variables.emplace_back(text);
  }
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  const int written = O_WRONLY | O_CREAT | O_TRUNC;
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), written, 0600);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, errors.c_str(), written, 0600);
  ::posix_spawn_file_actions_addchdir_np(&files, command.folder.c_str());
  pid_t process = 0;
  const int error = ::posix_spawn(&process, "/bin/sh", &files, &attributes, pointers(words).data(),
                                  pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail(fmt::format("cannot be started: {}", std::strerror(error)));
  return process;
}

/// Whether the process ends before `until`, and before an interrupt if that is to count.
bool ends_before(int process, Clock::time_point until, bool heed_interrupt) {
  while (true) {
    pollfd ended{.fd = process, .events = POLLIN, .revents = 0};
    if (::poll(&ended, 1, static_cast<int>(kPoll.count())) > 0) return true;
    if (Clock::now() >= until || (heed_interrupt && interrupted)) return false;
  }
}

std::string last_line(std::string_view text) {
  text = trim(text);
  return std::string(text.substr(text.rfind('\n') + 1));
}

}  // namespace

Result<std::string> run_shell(const ShellCommand& command) {
  const std::string out = command.folder / "stdout", errors = command.folder / "stderr";
  const pid_t process = TRY(start(command, out, errors));
  const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  const auto limit =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(command.limit.s()));
  const bool ended = handle >= 0 && ends_before(handle, Clock::now() + limit, true);
  const bool stopped = interrupted;
  if (!ended && handle >= 0) {
    ::kill(-process, SIGTERM);
    ends_before(handle, Clock::now() + (stopped ? kInterruptGrace : kLimitGrace), false);
  }
  // The group keeps its number until its leader is waited for.
  ::kill(-process, SIGKILL);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (handle < 0) return fail("cannot be watched: pidfd_open needs Linux 5.3");
  ::close(handle);
  if (stopped) return fail("stopped");
  if (!ended) return fail(fmt::format("did not end within {}", to_string(command.limit)));
  if (status != 0) {
    const Result<std::string> said = read_file(errors);
    const std::string reason = said ? last_line(*said) : "";
    return fail(fmt::format("ended with {}{}{}",
                            WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                                : fmt::format("exit code {}", WEXITSTATUS(status)),
                            reason.empty() ? "" : ": ", reason));
  }
  return read_file(out);
}

}  // namespace rehearse::cli
