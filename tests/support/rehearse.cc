#include "tests/support/rehearse.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/file.h"
#include "tests/support/data.h"
#include "tests/support/spawn.h"

namespace rehearse::test {

namespace fs = std::filesystem;

RunningRehearse::RunningRehearse(std::vector<std::string> arguments,
                                 std::map<std::string, std::string> variables)
    : folder_(scratch_folder()) {
  arguments.insert(arguments.begin(), (program_folder() / "rehearse").string());
  std::vector<std::string> texts = environment_with(std::move(variables));
  const std::vector<char*> environment = null_ended(texts), argument_list = null_ended(arguments);
  const fs::path source = source_file("");
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (folder_ / "out").c_str(), flags,
                                     0666);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder_ / "errors").c_str(), flags,
                                     0666);
  ::posix_spawn_file_actions_addchdir_np(&actions, source.c_str());
  const int error = ::posix_spawn(&process_, argument_list[0], &actions, nullptr,
                                  argument_list.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  INFO(arguments[0]);
  REQUIRE(error == 0);
}

void RunningRehearse::signal(int number) { ::kill(process_, number); }

bool RunningRehearse::ended() const {
  siginfo_t info = {};
  const int failed =
      ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT);
  return failed != 0 || info.si_pid != 0;
}

void RunningRehearse::wait_for(const std::string& says) const {
  for (bool over = false; text_of(folder_ / "errors").find(says) == std::string::npos;) {
    INFO(says);
    REQUIRE(!over);
    over = ended();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Ran RunningRehearse::wait() {
  int status = 0;
  REQUIRE(::waitpid(process_, &status, 0) == process_);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          text_of(folder_ / "out"), text_of(folder_ / "errors")};
}

Ran rehearse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "--allow-outside");
  return RunningRehearse(std::move(arguments)).wait();
}

void check_failed(const Ran& ran, int code, const std::string& says) {
  INFO(ran.errors);
  CHECK(ran.code == code);
  CHECK(ran.out.empty());
  CHECK(ran.errors.starts_with("rehearse: "));
  CHECK(std::count(ran.errors.begin(), ran.errors.end(), '\n') == 1);
  CHECK(ran.errors.find(says) != std::string::npos);
}

std::string text_of(const fs::path& path) {
  const Result<std::string> text = read_file(path);
  INFO((text ? "" : to_string(text.error())));
  REQUIRE(text);
  return *text;
}

fs::path write_scratch(const std::string& name, const std::string& text) {
  const fs::path path = scratch_folder() / name;
  write_file(path, text);
  return path;
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string kineto_recording(int steps, const std::string& name) {
  std::string text = "{\"schemaVersion\": 1, \"traceEvents\": [\n";
  const auto add = [&](std::string_view category, std::string_view what, long start, int length) {
    text += fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": 1, "ts": {}, "dur": {}}})",
        category, what, 1700000000000000 + start, length);
    text += ",\n";
  };
  for (int step = 0; step < steps; ++step) {
    const long begin = 1000L * step;
    add("user_annotation", fmt::format("ProfilerStep#{}", step + 1), begin, 1000);
    add("cpu_op", "aten::mm", begin + 10, 400);
    add("cpu_op", name, begin + 500, 400);
  }
  text.resize(text.size() - 2);
  return text + "\n]}\n";
}

}  // namespace rehearse::test
