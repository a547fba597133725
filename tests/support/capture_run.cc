#include "tests/support/capture_run.h"

#include <memory>
#include <optional>
#include <stdexcept>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/ingest/capture.h"
#include "profiler/trace/recorder.h"
#include "sim/base/file.h"
#include "tests/support/spawn.h"

namespace rehearse::test {

namespace fs = std::filesystem;

fs::path capture_library() { return REHEARSE_CAPTURE_LIBRARY; }
fs::path capture_program(const std::string& name) { return fs::path(REHEARSE_TARGETS_DIR) / name; }

std::vector<std::string> target_builds() {
  std::vector<std::string> builds = {"capture_target"};
  if (fs::exists(capture_program("capture_target_nvidia")))
    builds.push_back("capture_target_nvidia");
  return builds;
}

Running::Running(std::vector<std::string> command, std::map<std::string, std::string> variables,
                 fs::path folder)
    : folder_(std::move(folder)) {
  std::vector<std::string> texts = environment_with(std::move(variables));
  const std::vector<char*> environment = null_ended(texts), arguments = null_ended(command);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder_ / "stderr.txt").c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0666);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (folder_ / "stdout.txt").c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0666);
  const int error =
      posix_spawn(&process_, arguments[0], &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot run " + command[0]);
}

int Running::wait() {
  int status = 0;
  ::waitpid(process_, &status, 0);
  return status;
}

std::string Running::errors() const { return read_file(folder_ / "stderr.txt").value_or(""); }

std::map<std::string, std::string> recording_to(const fs::path& folder) {
  return {{"NVTX_INJECTION64_PATH", capture_library()}, {"REHEARSE_CAPTURE_DIR", folder}};
}

int run_target(const std::string& build, std::vector<std::string> arguments,
               const fs::path& folder) {
  arguments.insert(arguments.begin(), capture_program(build));
  const int status = Running(std::move(arguments), recording_to(folder), folder).wait();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

trace::Trace read_captures(const fs::path& folder) {
  trace::Trace trace;
  std::unique_ptr<trace::RankRows> rows;
  std::optional<trace::Recorder> recorder;
  const auto new_rank = [&](std::string source) -> trace::Recorder& {
    recorder.reset();
    trace::Rank& rank = trace.ranks.emplace_back();
    rank.info.source = std::move(source);
    rows = std::make_unique<trace::RankRows>(rank);
    return recorder.emplace(trace.names, trace.problems, rank, *rows);
  };
  const Status status = ingest::read_capture_folder(folder, new_rank, {});
  if (!status) throw std::runtime_error(to_string(status.error()));
  return trace;
}

std::uint64_t problems(const trace::Trace& trace, trace::ProblemKind kind) {
  for (const trace::Problem& problem : trace.problems.list())
    if (problem.kind == kind) return problem.count;
  return 0;
}

std::string first_problem(const trace::Trace& trace, trace::ProblemKind kind) {
  for (const trace::Problem& problem : trace.problems.list())
    if (problem.kind == kind) return problem.first;
  return "";
}

std::vector<trace::HostOp> named(const trace::Trace& trace, const trace::Rank& rank,
                                 std::string_view name) {
  std::vector<trace::HostOp> found;
  for (const trace::HostOp& op : rank.host_ops)
    if (trace.names[op.name] == name) found.push_back(op);
  return found;
}

}  // namespace rehearse::test
