// Recordings without a device: what works on threads is work, and edits treat it like a device's.
#include <algorithm>
#include <numeric>
#include <tuple>

#include <catch2/catch.hpp>

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

}  // namespace
}  // namespace rehearse::replay
