#include "profiler/launch/launch.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <catch2/catch.hpp>
#include <unistd.h>

#include "tests/support/capture_run.h"
#include "tests/support/data.h"

namespace rehearse::capture {
namespace {

namespace fs = std::filesystem;

LaunchOptions options(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), test::capture_program("capture_target"));
  return {.folder = test::scratch_folder() / "session",
          .command = std::move(arguments),
          .library = test::capture_library()};
}

std::string error_of(const LaunchOptions& launched) {
  const Result<LaunchReport> report = launch(launched);
  return report ? "no error" : to_string(report.error());
}

TEST_CASE("a launched program is recorded and reported") {
  const Result<LaunchReport> report = launch(options({"fork", "exit"}));
  REQUIRE(report);
  CHECK(report->exit_code == 0);
  CHECK_FALSE(report->signal);
  CHECK(report->shell_code() == 0);
  REQUIRE(report->processes.size() == 2);
  CHECK(report->counts.ranges == 10 + 1 + 10 + 20);
  CHECK(report->counts.marks == 0);
  CHECK(report->counts.lost == 0);
  for (const LaunchedProcess& process : report->processes) {
    CHECK(process.recorded);
    CHECK(process.ended);
    CHECK(process.bytes > 0);
    CHECK(process.command.find("fork exit") != std::string::npos);
  }
  CHECK(report->wall.s() > 0);
  // A range takes two readings of the clock, and no longer than a system call or ten.
  CHECK(report->cost_per_range.us() > 0.005);
  CHECK(report->cost_per_range.us() < 5);
  CHECK(report->recording.s() == Approx(41 * report->cost_per_range.s()));
}

TEST_CASE("the program's exit code is passed on") {
  const Result<LaunchReport> report = launch(options({"exit_code", "42"}));
  REQUIRE(report);
  CHECK(report->exit_code == 42);
  CHECK(report->shell_code() == 42);
  CHECK(report->processes.empty());  // it never used NVTX
  CHECK(report->counts.ranges == 0);
}

TEST_CASE("a program ended by a signal is reported") {
  const Result<LaunchReport> report = launch(options({"end_by", "kill"}));
  REQUIRE(report);
  CHECK_FALSE(report->exit_code);
  CHECK(report->signal == SIGKILL);
  CHECK(report->shell_code() == 128 + SIGKILL);
  REQUIRE(report->processes.size() == 1);
  CHECK(report->processes[0].recorded);
  CHECK_FALSE(report->processes[0].ended);
  CHECK(report->counts.ranges >= 1000);
}

TEST_CASE("SIGTERM and SIGINT to the launcher reach the program") {
  for (const int signal : {SIGTERM, SIGINT}) {
    const LaunchOptions launched = options({"sleep", "20000"});
    std::thread sender([&] {
      // Once the program has said hello.
      std::error_code ignored;
      for (int i = 0;
           i < 1000 && (!fs::exists(launched.folder) || fs::is_empty(launched.folder, ignored));
           ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ::kill(::getpid(), signal);
    });
    const Result<LaunchReport> report = launch(launched);
    sender.join();
    REQUIRE(report);
    CHECK(report->signal == signal);
    CHECK(report->wall.s() < 15);
  }
}

TEST_CASE("nothing is run if it cannot be recorded as requested") {
  CHECK(error_of({.folder = test::scratch_folder(), .command = {}, .library = {}}) ==
        "no command to run");

  ::setenv("CUDA_INJECTION64_PATH", "/opt/other.so", 1);
  CHECK(
      error_of(options({"ranges", "1"})) ==
      "CUDA_INJECTION64_PATH is set to '/opt/other.so': another tool is attached; one profiler at "
      "a time; unset CUDA_INJECTION64_PATH");
  ::unsetenv("CUDA_INJECTION64_PATH");
  ::setenv("NVTX_INJECTION64_PATH", "/opt/other.so", 1);
  CHECK(error_of(options({"ranges", "1"})).starts_with("NVTX_INJECTION64_PATH is set to"));
  ::unsetenv("NVTX_INJECTION64_PATH");

  LaunchOptions other = options({"ranges", "1"});
  other.library = "/absent.so";
  CHECK(error_of(other).starts_with("/absent.so: cannot be loaded: "));
  CHECK_FALSE(fs::exists(other.folder));
  other.library = "libc.so.6";
  CHECK(error_of(other) ==
        "libc.so.6: is another library; the capture library (librehearse_capture.so)");

  LaunchOptions full = options({"ranges", "1"});
  full.folder = test::scratch_folder();
  std::ofstream(full.folder / "something") << "else";
  CHECK(error_of(full) ==
        full.folder.string() + ": is not empty; a new or empty folder for the recording");
  LaunchOptions unmade = options({"ranges", "1"});
  unmade.folder = "/proc/session";
  CHECK(error_of(unmade).starts_with("/proc/session: cannot be made: "));

  LaunchOptions absent = options({});
  absent.command = {"no-such-program-anywhere"};
  CHECK(error_of(absent) ==
        "no-such-program-anywhere: cannot be started: No such file or directory");
}

TEST_CASE("the program is found as by a shell, and gets the rest of the environment") {
  ::setenv("REHEARSE_TEST_VARIABLE", "seven", 1);
  LaunchOptions launched = options({});
  launched.command = {
      "sh", "-c", "test \"$REHEARSE_TEST_VARIABLE\" = seven && test -d \"$REHEARSE_CAPTURE_DIR\""};
  const Result<LaunchReport> report = launch(launched);
  ::unsetenv("REHEARSE_TEST_VARIABLE");
  REQUIRE(report);
  CHECK(report->exit_code == 0);
}

}  // namespace
}  // namespace rehearse::capture
