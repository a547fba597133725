// Recordings without a device: what works on threads is work, and edits treat it like a device's.
#include <algorithm>
#include <numeric>
#include <tuple>

#include <catch2/catch.hpp>

#include "models/workload/host_work.h"
#include "models/workload/lift_units.h"
#include "profiler/ingest/input.h"
#include "profiler/replay/advice.h"
#include "profiler/replay/attribution.h"
#include "tests/support/rehearse.h"
#include "tests/support/replayed.h"
#include "tests/support/trace_builder.h"

namespace rehearse::replay {
namespace {

using test::RankBuilder;
using test::Replayed;
using trace::HostKind;
using trace::Trace;

/// Six steps of 1 ms: 600 us of loading in three pieces, then aten::mm for 300 us.
Trace loading_steps(bool gpu = false) {
  Trace trace;
  RankBuilder rank(trace);
  if (gpu) rank.kernel("k", 700, 100, {});
  for (int s = 0; s < 6; ++s) {
    const double t = 1000.0 * s;
    rank.step(s, t, 1000);
    rank.host("enumerate(DataLoader)#next", t, 600, HostKind::kAnnotation);
    rank.host("aten::stack", t + 200, 200);
    rank.host("forward", t + 600, 400, HostKind::kAnnotation);
    rank.host("aten::mm", t + 600, 300);
  }
  return trace;
}

std::vector<double> steps_after(Replayed& r, const Result<RecordedProgram>& edited) {
  REQUIRE(edited);
  r.run(*edited);
  std::vector<double> steps;
  for (std::size_t s = 0; s < 6; ++s) steps.push_back(r.host_us(s));
  return steps;
}

TEST_CASE("time is inserted once after each range, not after each of its pieces") {
  Replayed r(loading_steps());
  for (const char* edit : {"host=enumerate(DataLoader)*:100 us", "host=*mm:100us"})
    for (const double step : steps_after(r, insert(r.recordings, r.program, *parse_timed(edit))))
      CHECK(step == Approx(1100));
}

TEST_CASE("loading that is too slow for its workers has no head start from a full queue") {
  Replayed r(loading_steps());
  const auto steps = [&](const char* edit) {
    return steps_after(r, overlap_input(r.recordings, r.program, *parse_input_pipeline(edit)));
  };
  // One worker loads for 600 us, the other work takes 400: 600 from the first step on.
  for (const double step : steps("workers=1,receive=0us")) CHECK(step == Approx(600));
  // Two workers deliver every 300 us.
  for (const double step : steps("workers=2,receive=0us")) CHECK(step == Approx(400));
}

TEST_CASE("a thread receives the batches of worker processes") {
  Replayed r(loading_steps());
  const auto steps = [&](const char* edit) {
    return steps_after(r, overlap_input(r.recordings, r.program, *parse_input_pipeline(edit)));
  };
  // 400 us of other work, and 640 us by default where no GPU suggests pinned memory.
  for (const double step : steps("workers=2")) CHECK(step == Approx(1040));
  for (const double step : steps("workers=2,receive=100 us")) CHECK(step == Approx(500));
  // A worker that needs 600 us per batch does not keep up with 500 us of other work.
  for (const double step : steps("workers=1,receive=100 us")) CHECK(step == Approx(600));
  const auto receive = [](bool gpu, const InputPipeline& edit) {
    const Replayed on(loading_steps(gpu));
    return receive_of(on.recordings[0], edit);
  };
  CHECK(receive(true, {.workers = 1}) == Seconds::us(80));
  CHECK(receive(false, {.workers = 1}) == Seconds::us(640));
  CHECK(receive(false, {.workers = 1, .load = "load*"}) == Seconds::s(0));
}

TEST_CASE("workers and the training thread divide the CPUs of their process") {
  // 600 us of loading and 400 of other work are 1000 on one CPU, whatever overlaps. Two workers and
  // the thread need 500 of each of two CPUs.
  Trace trace = loading_steps();
  for (const auto& [stated, edit, step] : {std::tuple("", "workers=1,cpus=1,receive=0us", 1000.0),
                                           {"1", "workers=1,receive=0us", 1000.0},
                                           {"1", "workers=1,cpus=9,receive=0us", 1000.0},
                                           {"2", "workers=1,receive=0us", 600.0},
                                           {"2", "workers=2,receive=0us", 500.0},
                                           {"3", "workers=2,receive=0us", 400.0}}) {
    INFO(edit << " on " << stated);
    trace.ranks[0].info.facts = {{"cpus", stated}};
    Replayed r(trace);
    const std::vector<double> steps =
        steps_after(r, overlap_input(r.recordings, r.program, *parse_input_pipeline(edit)));
    CHECK(std::accumulate(steps.begin(), steps.end(), 0.0) / 6 == Approx(step).epsilon(0.1));
  }
}

TEST_CASE("loaders fill the CPUs if they and the training thread are as many") {
  const Replayed r(loading_steps());
  for (const auto& [edit, full] : {std::pair("workers=1", false),
                                   {"workers=1,cpus=3", false},
                                   {"workers=1,cpus=2", true},
                                   {"workers=4,cpus=2", true}}) {
    INFO(edit);
    CHECK(fills_cpus(r.recordings, *parse_input_pipeline(edit)) == full);
  }
}

TEST_CASE("advice names the largest host operator") {
  Replayed r(loading_steps());
  const std::vector<Advice> found = find_advice(
      r.recordings, r.graph, r.timeline, [](const graph::Graph& g) { return engine::run(g); }, 9,
      1);
  const auto of_mm = std::find_if(found.begin(), found.end(), [](const Advice& advice) {
    return advice.edit == "--scale 'host=aten::mm:0.5'";
  });
  REQUIRE(of_mm != found.end());
  CHECK(of_mm->change == Approx(-0.15));
}

TEST_CASE("a collective on a thread is communication, and can be removed") {
  Trace trace;
  RankBuilder rank(trace);
  for (int s = 0; s < 3; ++s) {
    const double t = 1000.0 * s;
    rank.step(s, t, 1000);
    rank.host("aten::mm", t, 700);
    rank.host("gloo:all_reduce", t + 700, 300).collective = trace::CollectiveId(0);
  }
  rank.rank().collectives.push_back({.kind = CollectiveKind::kAllReduce});
  Replayed r(std::move(trace));
  CHECK(occupancy(r.graph, r.timeline).exposed_communication.us() == Approx(300));
  CHECK(occupancy(r.graph, r.timeline).compute.us() == Approx(700));
  for (const char* which : {"collective", "collective=all_reduce", "collective=gloo*"}) {
    const auto edited = remove(r.recordings, r.program, *parse_selector(which));
    REQUIRE(edited);
    r.run(*edited);
    CHECK(r.host_us(1) == Approx(700));
  }
}

TEST_CASE("events without categories are operators, or ranges by their names") {
  std::string text = "[";
  for (int s = 0; s < 3; ++s)
    for (const auto& [name, from, length] :
         {std::tuple("ProfilerStep#" + std::to_string(s), 0, 1000),
          {"enumerate(DataLoader)#next", 0, 100},
          {"aten::mm", 100, 800},
          {"gloo:all_reduce", 900, 90}})
      text += fmt::format(
          R"({}{{"name": "{}", "ph": "X", "ts": {}, "dur": {}, "tid": 1, "pid": "CPU functions", "args": {{}}}})",
          text.size() > 1 ? ", " : "", name, s * 1000 + from, length);
  const std::filesystem::path file = test::write_scratch("legacy.json", text + "]");
  const Result<Trace> trace = ingest::read_inputs(std::span(&file, 1), {});
  REQUIRE(trace);
  const Recording r(*trace, 0);
  CHECK(find_steps(r).source == StepSource::kMarks);
  CHECK(r.rank().host_ops.size() == 12);
  CHECK(r.rank().collectives.size() == 1);
  for (const trace::HostOp& op : r.rank().host_ops)
    CHECK((op.kind == HostKind::kOperator) == (r.name(op) == "aten::mm"));
}

/// Steps of 1 ms. Rank r computes for 100 + 300 r us and sums until 450 us, then both compute. The
/// clocks of the ranks start `apart` from each other.
Trace summing_ranks(int steps, double apart) {
  Trace trace;
  for (int number = 0; number < 2; ++number) {
    RankBuilder rank(trace);
    rank.rank().info.source = std::to_string(number);
    rank.rank().collectives.push_back({.kind = CollectiveKind::kAllReduce, .bytes_in = 4096});
    const double late = 300.0 * number;
    for (int s = 0; s < steps; ++s) {
      const double t = 1000.0 * s + apart * number;
      rank.step(s, t, 1000);
      rank.host("aten::mm", t, 100 + late);
      rank.host("mpi:all_reduce", t + 100 + late, 350 - late, HostKind::kAnnotation).collective =
          trace::CollectiveId(0);
      rank.host("aten::add", t + 450, 550);
    }
  }
  return trace;
}

TEST_CASE("a collective of host threads waits for the last rank and moves its data from then on") {
  Replayed r(summing_ranks(3, 0));
  CHECK(r.program.collectives.matched.size() == 3);
  const auto steps = [&](const char* edit) {
    r.scale(edit);
    CHECK(r.host_us(1) == Approx(r.host_us(4)));  // of both ranks
    return r.host_us(1);
  };
  CHECK(steps("collective:1") == Approx(1000));
  CHECK(steps("collective:2") == Approx(1050));
  CHECK(steps("host=aten::mm:0") == Approx(600));
  CHECK(steps("host:0") == Approx(50));
  // Rank 0 computes for 650 us and rank 1 for 950.
  r.run(r.program);
  const program::Occupancy occupied = occupancy(r.graph, r.timeline);
  CHECK(occupied.compute.us() == Approx(800));
  CHECK(occupied.exposed_communication.us() == Approx(50));
  CHECK(occupied.bubble.us() == Approx(150));
}

TEST_CASE("collectives that state no ranks are among the given ranks that run them together") {
  const auto on_cores = workload::with_host_work_on_cores(summing_ranks(3, 0));
  REQUIRE(on_cores);
  for (const trace::Rank& rank : on_cores->ranks) {
    CHECK(rank.collectives[0].group_size == 2U);
    REQUIRE(rank.collectives[0].ranks);
    CHECK(on_cores->names[*rank.collectives[0].ranks] == "[0, 1]");
  }
}

TEST_CASE("a thread that only communicates while gradients are computed sums gradients") {
  Trace trace;
  RankBuilder rank(trace);
  rank.rank().collectives.push_back({.kind = CollectiveKind::kAllReduce, .bytes_in = 8192});
  rank.step(1, 0, 1000);
  rank.host("aten::mm", 0, 300).sequence = 1;
  trace::HostOp& backward = rank.host("MmBackward0", 300, 400);
  backward.sequence = 1;
  backward.forward_thread = 1;
  rank.host("aten::mm", 310, 380);
  rank.host("gloo:all_reduce", 400, 500, HostKind::kAnnotation, 2).collective =
      trace::CollectiveId(0);
  rank.host("aten::add_", 950, 50);
  const auto on_cores = workload::with_host_work_on_cores(trace);
  REQUIRE(on_cores);
  const Recording r(*on_cores, 0);
  const auto units = workload::lifting::find_units(r, find_steps(r).steps.front());
  REQUIRE(units.messages.size() == 1);
  CHECK(units.messages[0].phase == workload::lifting::Phase::kBackward);
}

TEST_CASE("clocks that start with their recordings are aligned by the ends of sums") {
  const Replayed r(summing_ranks(6, 7000));
  CHECK(r.program.collectives.matched.size() == 6);
  CHECK(r.trace->ranks[1].info.clock_fit.has_value());
}

TEST_CASE("a thread waits for a collective that runs on another one while it works") {
  Trace trace;
  RankBuilder rank(trace);
  rank.rank().collectives.push_back({.kind = CollectiveKind::kAllReduce});
  for (int s = 0; s < 3; ++s) {
    const double t = 1000.0 * s;
    rank.step(s, t, 1000);
    rank.host("aten::mm", t, 100);
    rank.host("c10d::allreduce_", t + 100, 5);
    rank.host("gloo:all_reduce", t + 120, 380, HostKind::kAnnotation, 2).collective =
        trace::CollectiveId(0);
    rank.host("aten::bmm", t + 105, 195);
    rank.host("aten::copy_", t + 510, 490);
  }
  Replayed r(std::move(trace));
  const auto step = [&](const char* edit) {
    r.scale(edit);
    return r.host_us(1);
  };
  CHECK(step("collective:1") == Approx(1000));
  CHECK(step("collective:2") == Approx(1380));  // 120 + 2 * 380, the wake-up of 10, 490
  CHECK(step("collective:0") == Approx(790));   // bmm ends at 300
  CHECK(step("host=aten::bmm:0") == Approx(1000));
  CHECK(step("host=aten::mm:0") == Approx(900));
}

TEST_CASE("a step of gradient accumulation lasts from one update to the next") {
  Trace trace;
  RankBuilder rank(trace);
  for (int s = 0; s < 4; ++s) {
    const double t = 1000.0 * s;
    for (int batch = 0; batch < 3; ++batch) {
      rank.host("enumerate(DataLoader)#next", t + 300 * batch, 20, HostKind::kAnnotation);
      rank.host("aten::mm", t + 300 * batch + 20, 270);
    }
    rank.host("Optimizer.step#SGD.step", t + 910, 80, HostKind::kAnnotation);
  }
  const Steps steps = find_steps(Recording(trace, 0));
  CHECK(steps.source == StepSource::kRanges);
  REQUIRE(steps.steps.size() == 4);
  CHECK(steps.steps[1].start.seconds().us() == Approx(1000));
}

}  // namespace
}  // namespace rehearse::replay
