#include "profiler/capture/launch.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include <dlfcn.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/capture/blocks.h"
#include "profiler/capture/format.h"
#include "profiler/capture/options.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::capture {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInjectNvtx = "NVTX_INJECTION64_PATH";
constexpr const char* kInjectCuda = "CUDA_INJECTION64_PATH";

/// What a range costs, which only our library can tell.
Result<Seconds> cost_per_range(const fs::path& library) {
  const auto wrong = [&](std::string problem) {
    return fail(Diagnostic{.file = library.string(),
                           .problem = std::move(problem),
                           .expected = "the capture library (librehearse_capture.so)"});
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
  if (error)
    return fail(Diagnostic{.file = folder.string(),
                           .problem = fmt::format("cannot be made: {}", error.message())});
  const bool empty = fs::is_empty(folder, error);
  if (error)
    return fail(Diagnostic{.file = folder.string(),
                           .problem = fmt::format("cannot be read: {}", error.message())});
  if (!empty)
    return fail(Diagnostic{.file = folder.string(),
                           .problem = "holds files",
                           .expected = "a new or empty folder for the recording"});
  if (::access(folder.c_str(), W_OK) != 0)
    return fail(Diagnostic{.file = folder.string(),
                           .problem = fmt::format("cannot be written: {}", std::strerror(errno))});
  return {};
}

std::atomic<pid_t> running{0};
std::atomic<int> waiting{0};  // a signal that came to another thread before the program was known

/// Whoever takes the waiting signal passes it on: the handler, or whoever tells the program.
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
  /// From now on. What came meanwhile is passed on at once.
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

/// Starts the command. Fails with the reason, and with nothing started.
Result<pid_t> start(const LaunchOptions& options, const sigset_t& mask) {
  std::vector<std::string> variables = {
      fmt::format("{}={}", kInjectNvtx, fs::absolute(options.library).string()),
      fmt::format("{}={}", kFolderVariable, fs::absolute(options.folder).string()),
      fmt::format("{}={}", kOptionsVariable, option_words(options.record))};
  std::vector<char*> environment, arguments;
  for (std::string& variable : variables) environment.push_back(variable.data());
  for (char** variable = environ; *variable; ++variable)
    if (const std::string_view text = *variable;
        !text.starts_with(fmt::format("{}=", kFolderVariable)) &&
        !text.starts_with(fmt::format("{}=", kOptionsVariable)))
      environment.push_back(*variable);
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
  return fail(Diagnostic{.file = command[0],
                         .problem = fmt::format("cannot be started: {}", std::strerror(error))});
}

/// Counts what a capture holds.
void count(const fs::path& capture, LaunchedProcess& process) {
  std::ifstream file(capture, std::ios::binary);
  BlockReader blocks([&](std::span<char> into) {
    file.read(into.data(), static_cast<std::streamsize>(into.size()));
    return static_cast<std::size_t>(file.gcount());
  });
  if (blocks.begin() != BlockReader::Begin::kCapture) return;
  RowsBlock rows;
  ChosenStepsReader steps;
  while (const auto block = blocks.next()) {
    steps.read(*block);
    if (block->type == BlockType::kLoss)
      process.lost = decode_loss(block->payload).value_or(process.lost);
    if (block->type == BlockType::kTrailer)
      if (const auto trailer = decode_trailer(block->payload)) {
        process.lost = trailer->lost;
        process.ended = true;
      }
    if (block->type != BlockType::kRows || !decode_rows(block->payload, rows)) continue;
    process.recorded = true;
    for (const Row& row : rows.rows) {
      process.ranges += row.kind == RowKind::kRange || row.kind == RowKind::kStart;
      process.marks += row.kind == RowKind::kMark;
    }
  }
  process.steps = steps.steps();
}

/// The processes that left a greeting in the folder.
std::vector<LaunchedProcess> processes_in(const fs::path& folder) {
  std::vector<LaunchedProcess> processes;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != kHelloSuffix) continue;
    LaunchedProcess process{.name = entry.path().stem().string(),
                            .command = std::string(trim(read_file(entry.path()).value_or(""))),
                            .recorded = false,
                            .ended = false,
                            .ranges = 0,
                            .marks = 0,
                            .lost = 0,
                            .bytes = 0};
    const fs::path capture = fs::path(entry.path()).replace_extension(kCaptureSuffix);
    const std::uintmax_t bytes = fs::file_size(capture, ignored);
    if (!ignored) process.bytes = bytes;
    count(capture, process);
    processes.push_back(std::move(process));
  }
  std::sort(processes.begin(), processes.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return processes;
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

Result<LaunchReport> launch(const LaunchOptions& options) {
  if (options.command.empty()) return fail("no command to run");
  for (const char* variable : {kInjectNvtx, kInjectCuda})
    if (const char* other = std::getenv(variable); other && *other)
      return fail(fmt::format("{} is set to '{}': another tool is attached", variable, other),
                  "one profiler at a time", fmt::format("unset {}", variable));
  const Result<Seconds> cost = cost_per_range(options.library);
  if (!cost) return forward(cost);
  if (Status status = make_folder(options.folder); !status) return forward(status);

  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  {
    PassSignals signals;
    const Result<pid_t> process = start(options, signals.mask());
    if (!process) return forward(process);
    signals.pass_to(*process);
    siginfo_t ended;
    while (::waitid(P_PID, static_cast<id_t>(*process), &ended, WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
    signals.pass_no_more();
    if (::waitpid(*process, &status, 0) != *process)
      return fail(Diagnostic{.file = options.command[0],
                             .problem = fmt::format("ran, but how it ended cannot be told: {}",
                                                    std::strerror(errno))});
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;

  LaunchReport report{.exit_code = {},
                      .signal = {},
                      .wall = Seconds::s(took.count()),
                      .processes = processes_in(options.folder),
                      .cost_per_range = *cost,
                      .recording = Seconds::s(0)};
  if (WIFEXITED(status)) report.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) report.signal = WTERMSIG(status);
  for (const LaunchedProcess& process : report.processes) {
    report.ranges += process.ranges;
    report.marks += process.marks;
    report.lost += process.lost;
    add_counts(report.steps, process.steps.counts);
  }
  // A mark is half a range: one reading of the clock, not two. What went into a ring was recorded
  // whether or not it was kept; what it was is not known.
  const double rows = report.steps ? static_cast<double>(report.steps->rows) : 0;
  report.recording = *cost * std::max(rows, static_cast<double>(report.ranges) +
                                                0.5 * static_cast<double>(report.marks));
  return report;
}

}  // namespace rehearse::capture
