// However a process ends, and whatever happens to its disk: it runs as it would without us, and
// what it left can be read.
#include <csignal>
#include <map>
#include <memory>

#include <catch2/catch.hpp>
#include <sys/wait.h>

#include "profiler/trace/trace.h"
#include "sim/base/file.h"
#include "tests/support/capture_run.h"
#include "tests/support/data.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using namespace trace;
using test::named;
using test::problems;

std::size_t files_in(const fs::path& folder, std::string_view suffix) {
  std::size_t n = 0;
  for (const auto& entry : fs::directory_iterator(folder)) n += entry.path().extension() == suffix;
  return n;
}

TEST_CASE("a process that is ended keeps what it recorded long before") {
  struct Ending {
    const char* how;
    int status;  // as waitpid gives it
  };
  const Ending endings[] = {{"_exit", 3 << 8},
                            {"term", SIGTERM},
                            {"abort", SIGABRT},
                            {"kill", SIGKILL},
                            {"segv", SIGSEGV}};
  std::map<std::string, std::pair<fs::path, std::unique_ptr<test::Running>>> running;
  for (const Ending& ending : endings) {  // all at once: each sleeps
    const fs::path folder = test::scratch_folder();
    running[ending.how] = {
        folder,
        std::make_unique<test::Running>(
            std::vector<std::string>{test::capture_program("capture_target"), "end_by", ending.how},
            test::recording_to(folder), folder)};
  }
  for (const Ending& ending : endings) {
    INFO(ending.how);
    auto& [folder, process] = running[ending.how];
    CHECK((process->wait() & ~0x80) == ending.status);  // with or without a core
    CHECK(process->errors().empty());
    const Trace trace = test::read_captures(folder);
    REQUIRE(trace.ranks.size() == 1);
    CHECK(named(trace, trace.ranks[0], "early").size() == 1000);
    CHECK(named(trace, trace.ranks[0], "late").size() <= 1000);
    CHECK(problems(trace, ProblemKind::kTruncated) == 1);
    CHECK(problems(trace, ProblemKind::kMalformed) == 0);
    CHECK(test::first_problem(trace, ProblemKind::kTruncated).find("without a flush") !=
          std::string::npos);
  }
}

TEST_CASE("kill -9 in the middle of writing leaves what was written before") {
  const fs::path folder = test::scratch_folder();
  test::Running running({test::capture_program("capture_target"), "many_texts", "100000000"},
                        test::recording_to(folder), folder);
  // Until it has written twice: then it is at it without pause.
  fs::path capture;
  for (int i = 0; i < 1000 && capture.empty(); ++i) {
    ::usleep(5000);
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".cap" && entry.file_size() > 2'000'000)
        capture = entry.path();
  }
  REQUIRE_FALSE(capture.empty());
  ::kill(running.process(), SIGKILL);
  CHECK(running.wait() == SIGKILL);
  const Trace trace = test::read_captures(folder);
  CHECK(trace.ranks[0].host_ops.size() > 10000);
  CHECK(problems(trace, ProblemKind::kTruncated) == 1);
  CHECK(problems(trace, ProblemKind::kMalformed) == 0);
  CHECK(problems(trace, ProblemKind::kMissingField) == 0);
}

TEST_CASE("an exit inside ranges ends in order and reports the open ranges") {
  const fs::path folder = test::scratch_folder();
  CHECK(test::run_target("capture_target", {"exit_inside"}, folder) == 5);
  const Trace trace = test::read_captures(folder);
  CHECK(named(trace, trace.ranks[0], "range").size() == 3);
  CHECK(trace.ranks[0].host_ops.size() == 3);
  CHECK(problems(trace, ProblemKind::kTruncated) == 0);
  CHECK(problems(trace, ProblemKind::kUnbalancedRange) == 2);
  CHECK(test::first_problem(trace, ProblemKind::kUnbalancedRange).find("'never closed'") !=
        std::string::npos);
}

TEST_CASE("a forked child has a file of its own") {
  struct Child {
    const char* how;
    bool whole;
    std::size_t ranges;
  };
  for (const Child& child : {Child{"exit", true, 20}, Child{"_exit", false, 20}}) {
    INFO(child.how);
    const fs::path folder = test::scratch_folder();
    CHECK(test::run_target("capture_target", {"fork", child.how}, folder) == 0);
    const Trace trace = test::read_captures(folder);
    REQUIRE(trace.ranks.size() == 2);
    const bool first = !named(trace, trace.ranks[0], "child").empty();
    const Rank& forked = trace.ranks[first ? 0 : 1];
    const Rank& parent = trace.ranks[first ? 1 : 0];
    CHECK(named(trace, forked, "child").size() == child.ranges);
    CHECK(forked.host_ops.size() == child.ranges);
    CHECK(named(trace, parent, "parent").size() == 20);
    CHECK(named(trace, parent, "around the fork").size() == 1);
    CHECK(parent.host_ops.size() == 21);
    CHECK(problems(trace, ProblemKind::kUnbalancedRange) == 1);  // the child popped the parent's
    CHECK(problems(trace, ProblemKind::kTruncated) == (child.whole ? 0 : 1));
  }
}

TEST_CASE("a forked child that records nothing leaves nothing") {
  const fs::path folder = test::scratch_folder();
  CHECK(test::run_target("capture_target", {"fork", "silent"}, folder) == 0);
  CHECK(files_in(folder, ".hello") == 1);
  CHECK(files_in(folder, ".cap") == 1);
}

TEST_CASE("a program that replaces another by exec has its own file") {
  const fs::path folder = test::scratch_folder();
  CHECK(test::run_target("capture_target", {"fork", "exec"}, folder) == 0);
  CHECK(files_in(folder, ".hello") == 3);
  const Trace trace = test::read_captures(folder);
  REQUIRE(trace.ranks.size() == 3);
  std::size_t ranges = 0;
  for (const Rank& rank : trace.ranks) ranges += named(trace, rank, "range").size();
  CHECK(ranges == 30);
}

TEST_CASE("forks while other threads record never hang or damage") {
  const fs::path folder = test::scratch_folder();
  CHECK(test::run_target("capture_target", {"fork_storm", "12"}, folder) == 0);
  const Trace trace = test::read_captures(folder);
  REQUIRE(trace.ranks.size() == 13);
  std::size_t stormed = 0;
  for (const Rank& rank : trace.ranks) stormed += named(trace, rank, "stormed").size();
  CHECK(stormed == 12 * 50);
  CHECK(problems(trace, ProblemKind::kMalformed) == 0);
  CHECK(problems(trace, ProblemKind::kMissingField) == 0);
  CHECK(problems(trace, ProblemKind::kTruncated) == 0);
}

TEST_CASE("without a folder to record to, the program runs after one line") {
  const auto run = [](const std::string& folder, std::string& errors) {
    const fs::path scratch = test::scratch_folder();
    auto variables = test::recording_to(folder);
    if (folder.empty()) variables["REHEARSE_CAPTURE_DIR"] = "";
    test::Running running({test::capture_program("capture_target"), "threads", "2", "10"},
                          variables, scratch);
    const int status = running.wait();
    errors = running.errors();
    return status;
  };
  std::string errors;
  CHECK(run("/absent/folder", errors) == 0);
  CHECK(errors ==
        "rehearse: cannot use '/absent/folder': No such file or directory; this process is not "
        "recorded\n");
  CHECK(run("/proc", errors) == 0);
  CHECK(errors.starts_with("rehearse: cannot write to '/proc': "));
  CHECK(std::count(errors.begin(), errors.end(), '\n') == 1);
  CHECK(run("", errors) == 0);
  CHECK(errors == "rehearse: REHEARSE_CAPTURE_DIR is not a folder; this process is not recorded\n");
}

TEST_CASE("data that the disk does not accept is counted") {
  // many_texts writes 6 x 2000 ranges whose 12 000 names need more room than this.
  const fs::path folder = test::scratch_folder();
  CHECK(test::run_target("capture_target", {"limited", "60000"}, folder) == 0);
  const Trace trace = test::read_captures(folder);
  REQUIRE(trace.ranks.size() == 1);
  const std::uint64_t lost = problems(trace, ProblemKind::kDroppedRecords);
  CHECK(lost > 0);
  CHECK(trace.ranks[0].host_ops.size() + lost == 12000);
  CHECK(problems(trace, ProblemKind::kTruncated) == 0);
  CHECK(problems(trace, ProblemKind::kMalformed) == 0);
}

TEST_CASE("a program that closes every descriptor keeps its own files separate") {
  const fs::path folder = test::scratch_folder();
  const fs::path own = folder / "own.txt";
  CHECK(test::run_target("capture_target", {"close_descriptors", own}, folder) == 0);
  CHECK(read_file(own) == "mine\n");
  const Trace trace = test::read_captures(folder);
  CHECK(named(trace, trace.ranks[0], "range").size() == 40100);
}

TEST_CASE("a program that may open no more files is recorded to its end") {
  const fs::path folder = test::scratch_folder();
  CHECK(test::run_target("capture_target", {"no_descriptors"}, folder) == 0);
  const Trace trace = test::read_captures(folder);
  REQUIRE(trace.ranks.size() == 1);
  CHECK(trace.ranks[0].host_ops.size() == 400);
  CHECK(trace.problems.worst() == Severity::kInfo);
}

}  // namespace
}  // namespace rehearse
