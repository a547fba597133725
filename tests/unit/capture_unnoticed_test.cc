// Whatever happens to a recording, the recorded program does what it does without us: the same
// output, the same exit code, and hardly more processor time.
#include <cstring>
#include <functional>
#include <map>

#include <catch2/catch.hpp>
#include <sys/resource.h>
#include <sys/wait.h>

#include "profiler/trace/trace.h"
#include "sim/base/file.h"
#include "tests/support/capture_run.h"
#include "tests/support/data.h"
#include "tests/support/small_disk.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using namespace trace;
using test::named;
using test::problems;

struct Outcome {
  int status;  // as waitpid gives it
  std::string output;
  std::string errors;
  double processor;  // s, of all its processes
};

double children_s() {
  rusage used;
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

Outcome run(const std::string& target, std::vector<std::string> arguments,
            std::map<std::string, std::string> variables) {
  const fs::path scratch = test::scratch_folder();
  arguments.insert(arguments.begin(), test::capture_program(target));
  const double before = children_s();
  test::Running running(std::move(arguments), std::move(variables), scratch);
  const int status = running.wait();
  return {status, read_file(scratch / "stdout.txt").value_or(""), running.errors(),
          children_s() - before};
}

/// Runs a target without a recorder, and then with one that writes to `folder`. Checks that its
/// output and end are the same. Returns the processor time that recording added, s.
double added_s(const std::string& target, const std::vector<std::string>& arguments,
               const fs::path& folder, const std::string& errors = "") {
  const fs::path removed = test::scratch_folder();
  const Outcome alone = run(target, arguments, {{"REMOVED_FOLDER", removed}});
  auto variables = test::recording_to(folder);
  variables["REMOVED_FOLDER"] = folder;
  const Outcome recorded = run(target, arguments, variables);
  INFO(recorded.errors);
  CHECK(alone.errors.empty());
  CHECK(recorded.errors == errors);
  CHECK(recorded.status == alone.status);
  CHECK(recorded.output == alone.output);
  return recorded.processor - alone.processor;
}

/// Whether `holds` in one of three measurements. Other work on the machine lengthens processor time,
/// by half and more, and shortens none.
bool measured(const std::function<bool()>& holds) { return holds() || holds() || holds(); }

TEST_CASE("a thousand processes run as without a recorder, and each has its ranges") {
  fs::path folder;
  CHECK(measured([&] {
    folder = test::scratch_folder();
    return added_s("capture_target", {"processes", "1000"}, folder) < 1000 * 10e-3;
  }));
  const Trace trace = test::read_captures(folder);
  CHECK(trace.ranks.size() == 1000);  // not the parent, which records nothing
  for (const Rank& rank : trace.ranks) CHECK(rank.host_ops.size() == 10);
  CHECK(problems(trace, ProblemKind::kTruncated) == 0);
}

TEST_CASE("the cost of a range does not depend on their number, and none goes uncounted") {
  const auto per_range = [](int n) {
    const fs::path folder = test::scratch_folder();
    const double each = added_s("capture_target", {"ranges", std::to_string(n)}, folder) / n;
    const Trace trace = test::read_captures(folder);
    CHECK(trace.ranks[0].host_ops.size() + problems(trace, ProblemKind::kDroppedRecords) ==
          static_cast<std::size_t>(n));
    return each;
  };
  CHECK(measured([&] {
    const double few = per_range(1'000'000), many = per_range(4'000'000);
    UNSCOPED_INFO(few << " and " << many << " s");
    return many < 1e-6 && many < 2 * few;
  }));
}

// Half a minute: tests/soak asks for it by its tag.
TEST_CASE("a hundred million ranges cost no more each than a million", "[.soak]") {
  constexpr int kRanges = 100'000'000;
  CHECK(measured([] {
    const fs::path folder = test::scratch_folder();
    const double added = added_s("capture_target", {"ranges", std::to_string(kRanges)}, folder);
    UNSCOPED_INFO(added << " s");
    return added < kRanges * 1e-6;
  }));
}

TEST_CASE("a wall clock that steps back changes nothing, and the reader takes it back") {
  const fs::path folder = test::scratch_folder();
  CHECK(added_s("capture_clock_target", {}, folder) < 0.5);
  const Trace trace = test::read_captures(folder);
  const auto earlier = named(trace, trace.ranks[0], "earlier"),
             later = named(trace, trace.ranks[0], "later");
  REQUIRE(earlier.size() == 100);
  REQUIRE(later.size() == 100);
  for (const auto* ranges : {&earlier, &later})
    for (const HostOp& op : *ranges) CHECK(op.duration >= Nanoseconds(0));
  CHECK(later.front().start > earlier.back().start);
}

TEST_CASE("a folder that is removed ends the recording alone") {
  const fs::path folder = test::scratch_folder() / "removed";
  fs::create_directory(folder);
  CHECK(added_s("capture_target", {"remove_folder"}, folder) < 0.5);
  CHECK_FALSE(fs::exists(folder));
}

TEST_CASE("a statically linked program runs unrecorded, after one line") {
  const fs::path folder = test::scratch_folder();
  const std::string says = "rehearse: a statically linked program cannot be recorded\n";
  CHECK(added_s("capture_static_target", {"processes", "0"}, folder) < 0.5);
  CHECK(added_s("capture_static_target", {"processes", "1"}, folder, says) < 0.5);
  CHECK(fs::is_empty(folder));
}

TEST_CASE("on a full disk the program runs as without a recorder, and the loss is known") {
  const fs::path folder = test::scratch_folder();
  const test::SmallDisk disk(folder);
  if (!disk.mounted()) {
    WARN("skipped: mounting a small file system needs privileges");
    return;
  }
  CHECK(added_s("capture_target", {"many_texts", "200000"}, folder) < 1);
  const Trace trace = test::read_captures(folder);
  const std::uint64_t lost = problems(trace, ProblemKind::kDroppedRecords);
  CHECK(lost > 100000);
  CHECK(trace.ranks[0].host_ops.size() > 1000);
  CHECK(trace.ranks[0].host_ops.size() + lost == 200000);
  CHECK(problems(trace, ProblemKind::kTruncated) == 0);
}

TEST_CASE("a killed program loses the ranges of its last 100 ms at most") {
  // Killed at other moments between two writes. A kill on a machine that wakes threads late, as the
  // program itself noticed, says nothing about the recorder.
  std::size_t in_time = 0;
  for (int kill = 0; kill < 60 && in_time < 5; ++kill) {
    INFO("kill " << kill);
    const fs::path folder = test::scratch_folder(), ends = test::scratch_folder() / "ends";
    const int ms = 400 + 7 * kill;
    const Outcome killed = run("capture_target", {"killed_after", std::to_string(ms), ends},
                               test::recording_to(folder));
    REQUIRE(WIFSIGNALED(killed.status));
    CHECK(WTERMSIG(killed.status) == SIGKILL);
    const std::string bytes = read_file(ends).value();
    std::vector<std::int64_t> kept(bytes.size() / sizeof(std::int64_t));
    std::memcpy(kept.data(), bytes.data(), bytes.size());
    if (kept[0] > 20'000'000) continue;
    ++in_time;
    const std::int64_t safe = kept.back() - 100'000'000;
    const auto expected =
        std::count_if(kept.begin() + 1, kept.end(), [&](std::int64_t end) { return end <= safe; });
    const Trace trace = test::read_captures(folder);
    CHECK(expected > 200);
    CHECK(named(trace, trace.ranks[0], "range").size() >= static_cast<std::size_t>(expected));
  }
  if (in_time == 0) WARN("skipped: this machine wakes threads more than 20 ms late");
}

}  // namespace
}  // namespace rehearse
