#include "profiler/launch/launch.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include <dlfcn.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/capture/format.h"

namespace rehearse::capture {
namespace {

namespace fs = std::filesystem;

/// The cost of recording a range, which only our library can measure.
Result<Seconds> cost_per_range(const fs::path& library) {
  const auto wrong = [&](std::string problem) {
    return fail_in(library, std::move(problem), "the capture library (librehearse_capture.so)");
  };
  void* loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) return wrong(fmt::format("cannot be loaded: {}", ::dlerror()));
  const auto measure =
      reinterpret_cast<double (*)()>(::dlsym(loaded, "rehearse_capture_ns_per_range"));
  if (!measure) return wrong("is another library");
  return Seconds::ns(measure());
}

Status make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail_in(folder, fmt::format("cannot be made: {}", error.message()));
  const bool empty = fs::is_empty(folder, error);
  if (error) return fail_in(folder, fmt::format("cannot be read: {}", error.message()));
  if (!empty) return fail_in(folder, "is not empty", "a new or empty folder for the recording");
  if (::access(folder.c_str(), W_OK) != 0)
    return fail_in(folder, fmt::format("cannot be written: {}", std::strerror(errno)));
  return {};
}

std::atomic<pid_t> running{0};
std::atomic<int> waiting{0};  // a signal that came to another thread before the program was known

/// Passes the waiting signal on, once. The signal handler calls it, and so does the thread that
/// learns the process id of the program.
void pass_waiting(pid_t process) {
  if (process <= 0) return;
  if (const int signal = waiting.exchange(0)) ::kill(process, signal);
}

/// The terminal sends its signals to every process in front of it, the program included.
void pass_on(int signal, siginfo_t* info, void*) {
  const int error = errno;
  if (info->si_code <= 0) {
    waiting = signal;
    pass_waiting(running);
  }
  errno = error;
}

/// While it lives, SIGINT and SIGTERM go to the program that runs, not to us. Ignored ones stay so.
class PassSignals {
 public:
  PassSignals() {
    waiting = 0;
    ::sigemptyset(&passed_);
    for (const int signal : kSignals) ::sigaddset(&passed_, signal);
    ::pthread_sigmask(SIG_BLOCK, &passed_, &mask_);
    struct sigaction action = {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (std::size_t i = 0; i < std::size(kSignals); ++i) {
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
    }
  }
  ~PassSignals() {
    for (std::size_t i = 0; i < std::size(kSignals); ++i)
      ::sigaction(kSignals[i], &before_[i], nullptr);
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  PassSignals(const PassSignals&) = delete;
  PassSignals& operator=(const PassSignals&) = delete;

  /// The signals that we had blocked before; the program is to start with them.
  const sigset_t& mask() const { return mask_; }
  /// Passes signals to the process from now on. Signals that arrived earlier are passed on at once.
  void pass_to(pid_t process) {
    running = process;
    pass_waiting(process);
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  /// Before its number can become another's.
  void pass_no_more() { running = 0; }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM};
  sigset_t passed_;
  sigset_t mask_;
  struct sigaction before_[2];
};

/// The environment of the program: our values, then the inherited ones that they do not replace.
std::vector<std::string> environment_of(const LaunchOptions& options) {
  std::vector<std::string> variables = options.variables;
  if (options.inject) {
    for (const char* injection : kInjections)
      variables.push_back(fmt::format("{}={}", injection, fs::absolute(options.library).string()));
    variables.push_back(
        fmt::format("{}={}", kFolderVariable, fs::absolute(options.folder).string()));
    variables.push_back(fmt::format("{}={}", kOptionsVariable, option_words(options.record)));
  }
  if (!options.python.empty()) {
    const char* path = std::getenv("PYTHONPATH");
    variables.push_back(fmt::format("PYTHONPATH={}{}{}", fs::absolute(options.python).string(),
                                    path && *path ? ":" : "", path ? path : ""));
  }
  const std::size_t ours = variables.size();
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (std::none_of(variables.begin(), variables.begin() + static_cast<std::ptrdiff_t>(ours),
                     [&](const std::string& own) { return own.starts_with(name); }))
      variables.emplace_back(text);
  }
  return variables;
}

/// Starts the command. Fails with the reason, and with nothing started.
Result<pid_t> start(const LaunchOptions& options, const sigset_t& mask) {
  std::vector<std::string> variables = environment_of(options);
  std::vector<char*> environment, arguments;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::vector<std::string> command = options.command;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);

  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  if (options.output_to_stderr)
    ::posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, arguments[0], &files, &attributes, arguments.data(),
                                   environment.data());
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (error == 0) return process;
  return fail_in(command[0], fmt::format("cannot be started: {}", std::strerror(error)));
}

}  // namespace

std::string option_words(const Options& options) {
  std::string words = options.graph == Options::Graph::kNode ? "graph=node" : "graph=launch";
  words += fmt::format(" power={:.0f}", options.power);
  if (!options.device) words += " device=off";
  if (options.memory) words += " memory";
  if (options.jit) words += " jit";
  if (options.channels) words += " channels";
  if (options.first_step != 0 || options.end_step != UINT64_MAX)
    words += options.end_step == UINT64_MAX
                 ? fmt::format(" steps={}:", options.first_step)
                 : fmt::format(" steps={}:{}", options.first_step, options.end_step);
  if (options.ring != 0) words += fmt::format(" ring={}", options.ring);
  if (options.trigger[0] != '\0') words += fmt::format(" trigger={}", options.trigger);
  return words;
}

std::vector<std::string> launch_warnings() {
  std::vector<std::string> warnings;
  const char* daemon = std::getenv("KINETO_USE_DAEMON");
  if (daemon && *daemon && std::string_view(daemon) != "0")
    warnings.push_back(
        fmt::format("KINETO_USE_DAEMON={}: PyTorch's own profiler may use CUPTI, which supports "
                    "one tool at a time; unset it if kernels are missing",
                    daemon));
  return warnings;
}

Result<LaunchReport> launch(const LaunchOptions& options) {
  if (options.command.empty()) return fail("no command to run");
  for (const char* variable : kInjections)
    if (const char* other = std::getenv(variable); other && *other)
      return fail(fmt::format("{} is set to '{}': another tool is attached", variable, other),
                  "one profiler at a time", fmt::format("unset {}", variable));
  const Seconds cost = TRY(cost_per_range(options.library));
  if (options.inject) TRY(make_folder(options.folder));

  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  {
    PassSignals signals;
    const pid_t process = TRY(start(options, signals.mask()));
    signals.pass_to(process);
    siginfo_t ended;
    while (::waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
    signals.pass_no_more();
    if (::waitpid(process, &status, 0) != process)
      return fail_in(options.command[0],
                     fmt::format("ran, but its exit status is unknown: {}", std::strerror(errno)));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;

  LaunchReport report{
      .wall = Seconds::s(took.count()), .cost_per_range = cost, .recording = Seconds::s(0)};
  if (options.inject) report.processes = processes_in(options.folder);
  if (WIFEXITED(status)) report.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) report.signal = WTERMSIG(status);
  for (const LaunchedProcess& process : report.processes) {
    report.counts += process.counts;
    add_counts(report.steps, process.steps.counts);
  }
  // A mark is half a range: one reading of the clock, not two. Rows in a ring were recorded even if
  // they were not kept; their kinds are unknown.
  const double rows = report.steps ? static_cast<double>(report.steps->rows) : 0;
  report.recording = cost * std::max(rows, static_cast<double>(report.counts.ranges) +
                                               0.5 * static_cast<double>(report.counts.marks));
  return report;
}

}  // namespace rehearse::capture
