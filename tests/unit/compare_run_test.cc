// What a recording measured, step by step and op by op.
#include <catch2/catch.hpp>

#include "profiler/compare/compare_runs.h"
#include "profiler/compare/run.h"
#include "profiler/ingest/input.h"
#include "profiler/replay/attribution.h"
#include "tests/support/compare_random.h"
#include "tests/support/data.h"
#include "tests/support/power_recording.h"
#include "tests/support/trace_builder.h"

namespace rehearse::compare {
namespace {

using test::RankBuilder;

Result<Run> measure(const trace::Trace& trace) {
  std::vector<replay::Recording> recordings;
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) recordings.emplace_back(trace, r);
  return measure_run(recordings, "made up");
}

Result<Run> measure_file(const std::string& path) {
  const auto trace = ingest::read_inputs(std::vector{test::source_file(path)}, {});
  REQUIRE(trace);
  return measure(*trace);
}

const OpSlot* find(const Run& run, const std::string& name) {
  for (const OpSlot& slot : run.slots)
    if (slot.name == name) return &slot;
  return nullptr;
}

TEST_CASE("the example: three steps of a millisecond, two kernels") {
  const Result<Run> run = measure_file("examples/recordings/three_steps.json");
  REQUIRE(run);
  CHECK(run->steps() == 3);
  CHECK(run->ranks == 1);
  CHECK(run->devices == std::vector<std::string>{"Example GPU"});
  for (std::size_t s = 0; s < 3; ++s) {
    CHECK(run->step_time[s] == Approx(1e-3));
    CHECK(run->compute[s] == Approx(600e-6));
    CHECK(run->launch_gaps[s] == Approx(400e-6));
    CHECK(run->exposed_communication[s] == 0);
  }
  CHECK(run->energy.empty());
  CHECK_FALSE(run->memory);
  const OpSlot* gemm = find(*run, "gemm_128x128");
  REQUIRE(gemm);
  CHECK(gemm->kind == OpKind::kKernel);
  CHECK(gemm->from == "aten::mm");
  CHECK(gemm->shapes == "[[1024, 1024], [1024, 1024]]");
  CHECK(gemm->grid == "8x8x1 of 256x1x1");
  CHECK(gemm->calls == Approx(1));
  CHECK(gemm->place == 0);
  REQUIRE(gemm->times.size() == 3);
  for (const double time : gemm->times) CHECK(time == Approx(500e-6));
  CHECK(find(*run, "relu")->place == Approx(0.5));
  // The marks of steps are one op; waiting for the device is no work of the host.
  CHECK(find(*run, "ProfilerStep#"));
  CHECK_FALSE(find(*run, "cudaDeviceSynchronize"));
  const OpSlot* loader = find(*run, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
  REQUIRE(loader);
  CHECK(loader->kind == OpKind::kHost);
  CHECK(loader->from == "ProfilerStep#");
  CHECK(loader->times[1] == Approx(280e-6));
}

TEST_CASE("ranks are averaged, energy is summed, the largest memory counts") {
  trace::Trace trace;
  for (int r = 0; r < 2; ++r) {
    RankBuilder rank(trace);
    const double scale = r + 1;
    for (int s = 0; s < 4; ++s) {
      rank.step(s + 1, s * 1000.0, 1000);
      const auto id = static_cast<std::uint32_t>(s + 1);
      rank.call("cudaLaunchKernel", s * 1000.0 + 10, 5, id);
      rank.kernel("k", s * 1000.0 + 20, 100 * scale, id);
    }
    rank.rank().info.facts.push_back({"memory.0.peak", r == 0 ? "1000 B" : "3000 B"});
  }
  const Result<Run> run = measure(trace);
  REQUIRE(run);
  CHECK(run->ranks == 2);
  CHECK(find(*run, "k")->times[0] == Approx(150e-6));
  CHECK(find(*run, "k")->calls == Approx(1));
  CHECK(run->compute[0] == Approx(150e-6));
  REQUIRE(run->memory);
  CHECK(*run->memory == Bytes::b(3000));
}

TEST_CASE("collectives are a separate kind, and their exposed part is reported") {
  trace::Trace trace;
  RankBuilder rank(trace);
  std::uint32_t id = 0;
  for (int s = 0; s < 4; ++s) {
    const double at = s * 1000.0;
    rank.step(s + 1, at, 1000);
    rank.call("cudaLaunchKernel", at + 10, 5, ++id);
    rank.kernel("gemm", at + 20, 400, id);
    rank.call("cudaLaunchKernel", at + 20, 5, ++id);
    rank.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 320, 300, id, 20);
  }
  const Result<Run> run = measure(trace);
  REQUIRE(run);
  for (std::size_t s = 0; s < 4; ++s) {
    CHECK(run->compute[s] == Approx(400e-6));
    CHECK(run->exposed_communication[s] == Approx(200e-6));  // from 420 to 620
    CHECK(run->launch_gaps[s] == Approx(400e-6));
  }
  const OpSlot* collective = find(*run, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  REQUIRE(collective);
  CHECK(collective->kind == OpKind::kCollective);
  CHECK(collective->times[2] == Approx(300e-6));
}

/// Twenty steps with noise of 1 %, of a job that takes so much longer.
trace::Trace noisy_job(Random& random, double slower) {
  trace::Trace trace;
  RankBuilder rank(trace);
  double at = 0;
  std::uint32_t id = 0;
  for (int s = 0; s < 20; ++s) {
    const double step = 10000 * (1 + slower) * (1 + 0.01 * random.normal());
    rank.step(s + 1, at, step);
    rank.call("cudaLaunchKernel", at + 10, 5, ++id);
    rank.kernel("gemm", at + 20, 0.6 * step, id);
    rank.call("cudaLaunchKernel", at + 20, 5, ++id);
    rank.kernel("softmax", at + 30 + 0.6 * step, 0.3 * step, id);
    at += step;
  }
  return trace;
}

TEST_CASE("in recordings, 1.5 times the limit is detected, and an unchanged job passes") {
  Random random(77);
  std::size_t false_alarms = 0, found = 0, explained = 0;
  constexpr std::size_t kPairs = 100;
  for (std::size_t k = 0; k < kPairs; ++k) {
    const Result<Run> before = measure(noisy_job(random, 0)), same = measure(noisy_job(random, 0)),
                      slower = measure(noisy_job(random, 0.045));
    REQUIRE((before && same && slower));
    const auto unchanged = compare_runs(*before, *same, {.seed = k});
    const auto changed = compare_runs(*before, *slower, {.seed = k});
    REQUIRE((unchanged && changed));
    false_alarms += judge(unchanged->quantities.front().effect, 0.03) == Verdict::kFail;
    found += judge(changed->quantities.front().effect, 0.03) == Verdict::kFail;
    for (const OpChange& op : changed->ops) explained += op.name == "gemm" && op.significant;
  }
  CHECK(false_alarms == 0);
  CHECK(found >= 97);
  CHECK(explained >= 97);
}

TEST_CASE("parts of single steps add up to the parts of all") {
  const auto trace = ingest::read_inputs(
      std::vector{test::source_file("examples/recordings/gate_before.json")}, {});
  REQUIRE(trace);
  std::vector<replay::Recording> recordings;
  recordings.emplace_back(*trace, 0);
  const auto graph = replay::to_graph(recordings);
  REQUIRE(graph);
  const graph::Timeline recorded = replay::recorded_timeline(recordings, *graph);
  const program::Occupancy all = replay::occupancy(*graph, recorded);
  const auto steps = replay::occupancy_of_steps(*graph, recorded);
  REQUIRE(steps.size() == 1);
  REQUIRE(steps[0].size() == 20);
  Seconds total = Seconds::s(0), compute = Seconds::s(0), idle = Seconds::s(0);
  for (const program::Occupancy& step : steps[0]) {
    total += step.total;
    compute += step.compute;
    idle += step.idle;
  }
  CHECK(total.s() == Approx(20 * all.total.s()));
  CHECK(compute.s() == Approx(20 * all.compute.s()));
  CHECK(idle.s() == Approx(20 * all.idle.s()));
}

TEST_CASE("recorded energy is that of the steps") {
  // The page on energy: the first step is partial there; one whole step is too few.
  const Result<Run> few = measure(test::power_trace());
  REQUIRE_FALSE(few);
  CHECK(to_string(few.error()).find("has 1 whole step (from step marks)") != std::string::npos);
  trace::Trace trace;
  RankBuilder rank(trace);
  rank.rank().boards.push_back({.uuid = "GPU-a", .device = 0, .multiprocessors = 100});
  for (const double us : {0.0, 4000.0})
    rank.rank().power.push_back({.board = 0, .time = RankBuilder::ns(us), .power = Watts::w(100)});
  for (int s = 0; s < 4; ++s) {
    rank.step(s + 1, s * 1000.0, 1000);
    rank.call("cudaLaunchKernel", s * 1000.0 + 10, 5, static_cast<std::uint32_t>(s + 1));
    rank.kernel("k", s * 1000.0 + 20, 500, static_cast<std::uint32_t>(s + 1));
  }
  const Result<Run> run = measure(trace);
  REQUIRE(run);
  REQUIRE(run->energy.size() == 4);
  for (const double joules : run->energy) CHECK(joules == Approx(0.1));  // 100 W for 1 ms
}

TEST_CASE("marks that overlap by a rounded nanosecond are steps, and nested marks are not") {
  trace::Trace trace;
  RankBuilder rank(trace);
  for (int s = 0; s < 5; ++s) {
    rank.step(s + 1, s * 1000.0, 1000.001);
    rank.step(100 + s, s * 1000.0 + 100, 300);
  }
  const Result<Run> run = measure(trace);
  REQUIRE(run);
  REQUIRE(run->steps() == 5);
  for (std::size_t s = 0; s < 4; ++s) CHECK(run->step_time[s] == Approx(1e-3));
}

TEST_CASE("a recording without ops, or without times, is refused in a line") {
  trace::Trace empty;
  RankBuilder nothing(empty);
  const Result<Run> none = measure(empty);
  REQUIRE_FALSE(none);
  CHECK(to_string(none.error()) ==
        "made up: is empty: not one op was recorded; a recording of some steps");
  trace::Trace untimed;
  RankBuilder rank(untimed);
  rank.host("op", 0, 1);
  rank.rank().info.timed = false;
  const Result<Run> order = measure(untimed);
  REQUIRE_FALSE(order);
  CHECK(to_string(order.error()).find("has no times") != std::string::npos);
}

TEST_CASE("a recording of one step is refused with the number of steps needed") {
  trace::Trace trace;
  RankBuilder rank(trace);
  rank.host("op", 0, 1000);
  const Result<Run> run = measure(trace);
  REQUIRE_FALSE(run);
  CHECK(to_string(run.error()).find("the variation between steps needs at least two") !=
        std::string::npos);
}

}  // namespace
}  // namespace rehearse::compare
