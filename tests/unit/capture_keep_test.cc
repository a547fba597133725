// Recordings of chosen steps: a window of them, and those that a trigger keeps from a ring.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <sys/wait.h>

#include "profiler/capture/announce.h"
#include "profiler/capture/step_keeper.h"
#include "profiler/launch/launch.h"
#include "profiler/trace/trace.h"
#include "sim/base/file.h"
#include "tests/support/capture_run.h"
#include "tests/support/data.h"

namespace rehearse::capture {
namespace {

namespace fs = std::filesystem;
using namespace trace;
using test::named;
using test::problems;

LaunchOptions steps_program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), test::capture_program("capture_steps"));
  return {.folder = test::scratch_folder() / "session",
          .command = std::move(arguments),
          .library = test::capture_library()};
}

void set_trigger(LaunchOptions& options, const std::string& text) {
  REQUIRE(text.copy(options.record.trigger, sizeof options.record.trigger - 1) == text.size());
}

LaunchReport launched(const LaunchOptions& options) {
  const Result<LaunchReport> report = launch(options);
  INFO((report ? "" : to_string(report.error())));
  REQUIRE(report);
  REQUIRE(report->exit_code == 0);
  return *report;
}

/// The numbers of the steps with `ranges` ranges in the trace.
std::set<long> whole_steps(const Trace& trace, const Rank& rank, std::size_t ranges, long last) {
  std::set<long> steps;
  for (long step = 0; step <= last; ++step)
    if (named(trace, rank, fmt::format("inside {}", step)).size() == ranges) steps.insert(step);
  return steps;
}

std::size_t insides(const Trace& trace, const Rank& rank) {
  std::size_t n = 0;
  for (const HostOp& op : rank.host_ops) n += trace.names[op.name].starts_with("inside");
  return n;
}

TEST_CASE("the file has only the window of steps") {
  struct Style {
    const char* style;
    const char* mark;  // what a step is called
    bool each_its_own;
  };
  for (const Style& style : {Style{"name", "step", true}, Style{"payload", "step", false},
                             Style{"domain", "batch", true}, Style{"started", "step", true},
                             Style{"counted", "train_step", false}}) {
    INFO(style.style);
    LaunchOptions options = steps_program({style.style, "0", "20", "5", "100", "0"});
    options.record.first_step = 10;
    options.record.end_step = 13;
    const LaunchReport report = launched(options);
    REQUIRE(report.steps);
    CHECK(report.steps->seen == 20);
    CHECK(report.steps->kept == 3);
    const Trace trace = test::read_captures(options.folder);
    REQUIRE(trace.ranks.size() == 1);
    CHECK(whole_steps(trace, trace.ranks[0], 5, 20) == std::set<long>{10, 11, 12});
    CHECK(insides(trace, trace.ranks[0]) == 15);
    CHECK(named(trace, trace.ranks[0], "between").size() == 2);
    CHECK(named(trace, trace.ranks[0], "whole run").size() == 1);  // the window is within it
    std::size_t marks = 0;
    for (long step = 10; step < 13; ++step)
      marks += named(trace, trace.ranks[0],
                     style.each_its_own ? fmt::format("{} {}", style.mark, step) : style.mark)
                   .size();
    CHECK(marks == (style.each_its_own ? 3 : 9));
    CHECK(trace.ranks[0].host_ops.size() == 15 + 2 + 1 + 3);
    CHECK(problems(trace, ProblemKind::kUnbalancedRange) == 0);
    CHECK(problems(trace, ProblemKind::kDroppedRecords) == 0);
    CHECK(problems(trace, ProblemKind::kMissingField) == 0);
  }
}

TEST_CASE("without a step mark nothing is kept, and a message says so") {
  for (const char* words : {"steps=0:5", "ring=4194304 trigger=every1"}) {
    INFO(words);
    const fs::path folder = test::scratch_folder();
    auto variables = test::recording_to(folder);
    variables["REHEARSE_CAPTURE_OPTIONS"] = words;
    test::Running running(
        {test::capture_program("capture_steps"), "none", "0", "20", "5", "100", "0"}, variables,
        folder);
    CHECK(running.wait() == 0);
    CHECK(running.errors() == fmt::format("rehearse: process {} marked no step, so nothing was "
                                          "recorded; a step is a range named like 'step 7'\n",
                                          running.process()));
    const Trace trace = test::read_captures(folder);
    REQUIRE(trace.ranks.size() == 1);
    CHECK(trace.ranks[0].host_ops.empty());
    CHECK(problems(trace, ProblemKind::kTruncated) == 0);
  }
}

TEST_CASE("unknown options are reported and have no effect") {
  const fs::path folder = test::scratch_folder();
  auto variables = test::recording_to(folder);
  variables["REHEARSE_CAPTURE_OPTIONS"] = "trigger=p99 steps=5:5";
  test::Running running({test::capture_program("capture_steps"), "name", "0", "3", "1", "1", "0"},
                        variables, folder);
  CHECK(running.wait() == 0);
  CHECK(running.errors() ==
        "rehearse: REHEARSE_CAPTURE_OPTIONS: 'trigger=p99' is not an option; it has no effect\n"
        "rehearse: REHEARSE_CAPTURE_OPTIONS: 'steps=5:5' is not an option; it has no effect\n");
  CHECK(
      named(test::read_captures(folder), test::read_captures(folder).ranks[0], "between").size() ==
      3);
}

std::set<std::uint64_t> kept_of(const LaunchedProcess& process) {
  std::set<std::uint64_t> steps;
  for (const KeptStep& step : process.steps.kept)
    if (!step.neighbour) steps.insert(step.number);
  return steps;
}

/// Four processes, as a launcher starts them. One is slow, at steps 20 and 50, and nothing waits
/// for it; the others go on until it has been able to tell them.
LaunchOptions four_ranks(const char* trigger, int others_us) {
  LaunchOptions options = steps_program({});
  const std::string program = options.command[0];
  const std::string other = fmt::format("{} name 0 100 20 {} 0", program, others_us);
  options.command = {"sh", "-c",
                     fmt::format("RANK=1 {0} & RANK=2 {0} & RANK=3 {0} & "
                                 "RANK=0 {1} name 0 100 20 1000 300000 20 50; wait",
                                 other, program)};
  options.record.ring = 4 << 20;
  set_trigger(options, trigger);
  return options;
}

TEST_CASE("steps that are slow on one rank are kept on all of them") {
  const LaunchOptions options = four_ranks("step_time>250ms", 18000);
  const LaunchReport report = launched(options);
  REQUIRE(report.processes.size() == 4);
  CHECK(report.steps->seen == 400);
  std::size_t announced = 0;
  for (const LaunchedProcess& process : report.processes) {
    INFO(process.name);
    const std::set<std::uint64_t> kept = kept_of(process);
    CHECK(kept.count(20) == 1);
    CHECK(kept.count(50) == 1);
    CHECK(process.steps.counts->kept == kept.size());
    CHECK(process.steps.counts->in_part + process.steps.counts->gone == 0);
    for (const KeptStep& step : process.steps.kept) {
      CHECK(step.share == 1);
      announced += step.reason == "another rank keeps it";
    }
  }
  CHECK(announced >= 3 * 2);
  CHECK(fs::exists(options.folder / "triggers/step-20.trigger"));
  const auto why = read_file(options.folder / "triggers/step-50.trigger");
  REQUIRE(why);
  CHECK(why->find(": step_time 3") != std::string::npos);
  CHECK(why->find("ms > 250 ms\n") != std::string::npos);

  // Each file is a capture like any other, of those steps and their neighbours.
  const Trace trace = test::read_captures(options.folder);
  REQUIRE(trace.ranks.size() == 4);
  for (const Rank& rank : trace.ranks) {
    const auto process = std::find_if(report.processes.begin(), report.processes.end(),
                                      [&](const LaunchedProcess& p) {
                                        return rank.info.source.find(p.name) != std::string::npos;
                                      });
    REQUIRE(process != report.processes.end());
    std::set<long> expected;
    for (const std::uint64_t step : kept_of(*process))
      for (long offset = -1; offset <= 1; ++offset)
        expected.insert(static_cast<long>(step) + offset);
    CHECK(whole_steps(trace, rank, 20, 100) == expected);
    CHECK(insides(trace, rank) == expected.size() * 20);
    CHECK(named(trace, rank, "step 20").size() == 1);
  }
  for (const ProblemKind kind : {ProblemKind::kMalformed, ProblemKind::kMissingField,
                                 ProblemKind::kTruncated, ProblemKind::kDroppedRecords})
    CHECK(problems(trace, kind) == 0);

  // Head sampling of such a run meets neither.
  const LaunchOptions sampling = four_ranks("every40", 1000);
  const LaunchReport sampled = launched(sampling);
  for (const LaunchedProcess& process : sampled.processes)
    CHECK(kept_of(process) == std::set<std::uint64_t>{0, 40, 80});
  CHECK_FALSE(fs::exists(sampling.folder / "triggers"));
}

TEST_CASE("the missing part of a step in the ring is reported") {
  // A step is about 3 MB in a ring of 1 MiB.
  LaunchOptions options = steps_program({"name", "0", "1", "1000000", "0", "0"});
  options.record.ring = 1 << 20;
  set_trigger(options, "every1");
  const LaunchReport report = launched(options);
  REQUIRE(report.processes.size() == 1);
  REQUIRE(report.processes[0].steps.kept.size() == 1);
  const KeptStep& step = report.processes[0].steps.kept[0];
  CHECK(step.share > 0);
  CHECK(step.share < 0.9);
  CHECK(step.reason == "every 1");
  CHECK(report.steps->in_part == 1);
  CHECK(report.steps->kept == 0);
  CHECK(report.processes[0].bytes < 1200000);
  // All that was recorded has cost time, not just what was kept.
  CHECK(report.counts.ranges < 900000);
  CHECK(report.steps->rows >= 1000000);
  CHECK(report.recording.s() >= 1000000 * report.cost_per_range.s());
  const Trace trace = test::read_captures(options.folder);
  CHECK(named(trace, trace.ranks[0], "step 0").size() == 1);
  CHECK(problems(trace, ProblemKind::kMalformed) == 0);
}

TEST_CASE("restarted step numbers are other steps") {
  LaunchOptions options = steps_program({"twice:name", "0", "30", "2", "500", "150000", "7"});
  options.record.ring = 2 << 20;
  set_trigger(options, "step_time>100ms");
  const LaunchReport report = launched(options);
  std::size_t sevens = 0;
  for (const KeptStep& step : report.processes[0].steps.kept)
    sevens += step.number == 7 && !step.neighbour;
  CHECK(sevens == 2);
  CHECK(fs::exists(options.folder / "triggers/step-7.trigger"));
  CHECK(fs::exists(options.folder / "triggers/step-7-2.trigger"));
  const Trace trace = test::read_captures(options.folder);
  CHECK(named(trace, trace.ranks[0], "inside 7").size() == 4);
}

TEST_CASE("the last step is kept too, and an open one is none") {
  LaunchOptions options = steps_program({"inside:name", "0", "5", "2", "100", "150000", "4"});
  options.record.ring = 2 << 20;
  set_trigger(options, "step_time>100ms");
  const LaunchReport report = launched(options);
  CHECK(kept_of(report.processes[0]).count(4) == 1);
  CHECK(report.steps->seen == 5);
  CHECK(report.steps->kept == kept_of(report.processes[0]).size());
}

TEST_CASE("the ring of a killed process is lost, and written steps remain") {
  for (const char* end : {"kill", "term"}) {
    INFO(end);
    LaunchOptions options =
        steps_program({std::string(end) + ":name", "0", "200", "2", "3000", "150000", "10", "199"});
    options.record.ring = 2 << 20;
    set_trigger(options, "step_time>100ms");
    const Result<LaunchReport> report = launch(options);
    REQUIRE(report);
    CHECK(report->signal == (std::string(end) == "kill" ? SIGKILL : SIGTERM));
    const Trace trace = test::read_captures(options.folder);
    CHECK(named(trace, trace.ranks[0], "inside 10").size() == 2);
    CHECK(named(trace, trace.ranks[0], "inside 199").empty());
    CHECK(problems(trace, ProblemKind::kTruncated) == 1);
    CHECK(problems(trace, ProblemKind::kMalformed) == 0);
    CHECK(kept_of(report->processes[0]).count(10) == 1);
  }
}

TEST_CASE("a forked child has a ring of its own, and counts its own steps") {
  LaunchOptions options = steps_program({"fork:name", "0", "30", "2", "100", "0"});
  options.record.ring = 2 << 20;
  set_trigger(options, "every10");
  const LaunchReport report = launched(options);
  REQUIRE(report.processes.size() == 2);
  for (const LaunchedProcess& process : report.processes)
    CHECK(kept_of(process) == std::set<std::uint64_t>{0, 10, 20});
  CHECK(report.steps->seen == 30 + 1 + 30);  // "step 999" is open in the parent while it forks
  const Trace trace = test::read_captures(options.folder);
  for (const Rank& rank : trace.ranks)
    CHECK(whole_steps(trace, rank, 2, 30) == std::set<long>{0, 1, 9, 10, 11, 19, 20, 21});

  LaunchOptions window = steps_program({"fork:name", "0", "30", "2", "100", "0"});
  window.record.first_step = 5;
  window.record.end_step = 7;
  const LaunchReport both = launched(window);
  for (const LaunchedProcess& process : both.processes) CHECK(process.steps.counts->kept == 2);
}

TEST_CASE("on a full disk the program runs to its end and the loss of kept steps is known") {
  LaunchOptions options = steps_program({});
  const std::string program = options.command[0];
  options.command = {"bash", "-c",
                     fmt::format("ulimit -f 60; exec {} name 0 20 2000 100 0", program)};
  options.record.ring = 4 << 20;
  set_trigger(options, "every1");
  const LaunchReport report = launched(options);
  CHECK(report.counts.lost > 1000);
  CHECK(report.processes[0].ended);
  CHECK(report.processes[0].bytes <= 60 * 1024);
  const Trace trace = test::read_captures(options.folder);
  CHECK(insides(trace, trace.ranks[0]) > 1000);
  CHECK(problems(trace, ProblemKind::kDroppedRecords) == report.counts.lost);
  CHECK(problems(trace, ProblemKind::kMalformed) == 0);
}

TEST_CASE("names that are not kept precede the rows that need them") {
  // 20 steps of 2000 names would fit; 40 000 do not (32 768 are kept).
  LaunchOptions options = steps_program({});
  options.command = {test::capture_program("capture_target"), "many_steps", "20", "2500"};
  options.record.ring = 16 << 20;
  set_trigger(options, "every7");
  const LaunchReport report = launched(options);
  CHECK(kept_of(report.processes[0]) == std::set<std::uint64_t>{0, 7, 14});
  const Trace trace = test::read_captures(options.folder);
  CHECK(problems(trace, ProblemKind::kMissingField) == 0);
  CHECK(named(trace, trace.ranks[0], "op 37000").size() == 1);  // of step 14
}

TEST_CASE("the launcher passes on which steps are asked for") {
  LaunchOptions options = steps_program({});
  options.record.first_step = 5;
  options.record.ring = 64 << 20;
  set_trigger(options, "step_time>1.5xmedian");
  options.command = {"sh", "-c",
                     "test \"$REHEARSE_CAPTURE_OPTIONS\" = "
                     "'graph=node power=10 steps=5: ring=67108864 trigger=step_time>1.5xmedian'"};
  launched(options);
}

TEST_CASE("announcements are found by their names alone, from any process") {
  const fs::path folder = test::scratch_folder();
  const std::string capture = (folder / "host-1.cap").string();
  Announcements ours(capture.c_str());
  std::map<std::uint64_t, std::uint32_t> found;
  const auto look = [&] {
    found.clear();
    ours.each([&](std::uint64_t number, std::uint32_t round) { found[number] = round; });
  };
  look();
  CHECK(found.empty());  // there is no folder yet
  ours.make(1234, 0, "slow");
  ours.make(7, 1, "slow again");
  Announcements theirs((folder / "other-2.cap").c_str());
  theirs.make(1234, 0, "slow there too");
  CHECK(read_file(folder / "triggers/step-1234.trigger") == "host-1: slow\n");
  for (const char* other : {"step-.trigger", "step-5", "step-5.triggers", "step-5-.trigger",
                            "step-5-0.trigger", "step-x.trigger", "step-5-2-3.trigger",
                            "step-99999999999999999999999.trigger", "notes.txt"})
    std::ofstream(folder / "triggers" / other) << "";
  look();
  CHECK(found == std::map<std::uint64_t, std::uint32_t>{{1234, 0}, {7, 1}});
  ours.remove(1234, 0);
  look();
  CHECK(found == std::map<std::uint64_t, std::uint32_t>{{7, 1}});
}

/// A keeper without a process around it.
struct Keeping {
  explicit Keeping(Trigger trigger, std::uint64_t ring = 1 << 20) {
    REQUIRE(keeper.open(trigger, ring));
  }
  ~Keeping() { keeper.close(); }

  void add(std::uint64_t step, std::uint32_t bytes = 100, bool texts = false) {
    const std::vector<unsigned char> content(bytes);
    RingBlock block = {};
    block.step = step;
    block.bytes = bytes;
    block.last_text = static_cast<std::uint32_t>(step);
    block.texts = texts;
    keeper.add(block, content.data());
  }
  void end(std::uint64_t number, std::uint64_t at) {
    keeper.end({.number = number, .begin = at - 5, .end = at});
  }
  /// The steps of the blocks that are written now.
  std::vector<std::uint64_t> write(bool works = true) {
    std::vector<std::uint64_t> written;
    keeper.write_kept([&](std::uint32_t last_text) { text = last_text; },
                      [&](const RingBlock& block, const unsigned char*) {
                        if (works) written.push_back(block.step);
                        return works;
                      });
    return written;
  }

  StepKeeper keeper;
  std::uint32_t text = 0;
};

TEST_CASE("late records of a kept step are written with it") {
  Keeping k({Trigger::Kind::kEvery, 10});
  for (std::uint64_t step = 7; step < 11; ++step) {
    k.add(step - 7);
    k.end(step, step * 10);
  }
  // Steps 9, 10 and 11 are kept, by their ordinals 2, 3 and 4.
  CHECK(k.write() == std::vector<std::uint64_t>{2, 3});
  CHECK(k.text == 3);
  CHECK(k.write().empty());
  CHECK(k.keeper.step_at(95) == 3);  // a kernel of step 10 that comes late
  CHECK(k.keeper.step_at(100) == 3);
  CHECK(k.keeper.step_at(101) == 4);
  CHECK(k.keeper.step_at(0) == 4);
  CHECK(k.keeper.step_at(1) == 0);
  k.add(3);
  k.add(4);
  k.add(1);
  CHECK(k.write() == std::vector<std::uint64_t>{3, 4});
  k.end(11, 110);
  k.end(12, 120);
  std::vector<std::uint64_t> noted;
  const auto note = [&](const KnownStep& step) { noted.push_back(step.step.number); };
  k.keeper.each_note(false, note);
  CHECK(noted == std::vector<std::uint64_t>{9, 10, 11});
  k.keeper.each_note(true, note);
  CHECK(noted.size() == 3);
  CHECK(k.keeper.counts().kept == 1);
  CHECK(k.keeper.counts().seen == 6);
}

TEST_CASE("texts that blocks may need precede them, and later texts do not") {
  Keeping k({Trigger::Kind::kEvery, 5});
  k.add(0, 100, true);
  k.add(0);
  for (std::uint64_t step = 1; step < 6; ++step) k.end(step, step * 10);
  k.add(4);
  k.add(5, 100, true);
  k.add(6, 100, true);
  CHECK(k.write() == std::vector<std::uint64_t>{0, 4, 5});
}

TEST_CASE("an announced step is kept if it is known, once") {
  Keeping k({});
  for (std::uint64_t step = 100; step < 110; ++step) {
    k.add(step - 100);
    k.end(step, step * 10);
  }
  CHECK_FALSE(k.keeper.announced(110, 0));  // yet to come
  CHECK_FALSE(k.keeper.announced(99, 0));
  CHECK_FALSE(k.keeper.announced(105, 1));
  CHECK(k.keeper.announced(105, 0));
  CHECK_FALSE(k.keeper.announced(105, 0));
  CHECK(k.write() == std::vector<std::uint64_t>{4, 5, 6});
  k.end(110, 1100);
  CHECK(k.keeper.announced(110, 0));
  k.end(3, 1110);  // numbers begin anew
  k.end(105, 1120);
  CHECK(k.keeper.announced(105, 1));
}

TEST_CASE("a step that was overwritten or could not be written is counted") {
  Keeping k({}, 4096);
  for (std::uint64_t step = 0; step < 10; ++step) {
    k.add(step, 1000);
    k.end(step, step * 10 + 10);
  }
  CHECK(k.keeper.announced(2, 0));  // the ring holds the last four
  CHECK(k.write().empty());
  k.keeper.each_note(true, [](const KnownStep&) {});
  CHECK(k.keeper.counts().gone == 1);
  CHECK(k.keeper.announced(9, 0));
  k.write(false);
  k.keeper.each_note(true, [](const KnownStep&) {});
  CHECK(k.keeper.counts().gone == 2);
  CHECK(k.keeper.counts().kept == 0);
}

TEST_CASE("more steps than can be distinguished do no harm") {
  Keeping k({Trigger::Kind::kEvery, 1000});
  std::size_t written = 0;
  for (std::uint64_t step = 0; step < 3 * StepKeeper::kKnown; ++step) {
    k.add(k.keeper.step_at(step * 10 + 5), 50);
    if (step % 5000 == 0) k.add(0, 50);  // of a step long forgotten
    CHECK((k.keeper.leaving() != nullptr) == (step + 1 >= StepKeeper::kKnown));
    k.end(step, step * 10 + 10);
    written += k.write().size();
    k.keeper.each_note(false, [](const KnownStep&) {});
  }
  CHECK(k.keeper.counts().kept == (3 * StepKeeper::kKnown + 999) / 1000);
  CHECK(written >= 3 * k.keeper.counts().kept - 2);
}

}  // namespace
}  // namespace rehearse::capture
