// What edits change, each on a trace made for it. How they are written is in
// replay_edit_text_test.cc.
#include <catch2/catch.hpp>

#include "profiler/replay/fewer_launches.h"
#include "profiler/replay/overlap.h"
#include "tests/support/replayed.h"
#include "tests/support/trace_builder.h"

namespace rehearse::replay {
namespace {

using test::RankBuilder;
using test::Replayed;
using trace::CopyDirection;
using trace::HostKind;
using trace::HostMemory;
using trace::Trace;

void run(Replayed& r, const Result<RecordedProgram>& edited) {
  INFO((edited ? "" : to_string(edited.error())));
  REQUIRE(edited);
  r.run(*edited);
}

std::string error_of(const Result<RecordedProgram>& edited) {
  return edited ? "no error" : to_string(edited.error());
}

/// Operators of 20 us, one every 50 us, that launch kernels of 30 us: the host is the bottleneck.
/// The range "block" holds the first `inside` of five.
Trace five_kernels(int inside, bool synchronise_inside = false) {
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 300);
  rank.host("block", 5, 50 * inside - 10, HostKind::kAnnotation);
  for (int k = 0; k < 5; ++k) {
    const auto id = static_cast<std::uint32_t>(k + 1);
    rank.host("aten::op", 50 * k + 10, 20);
    rank.call("cudaLaunchKernel", 50 * k + 15, 5, id);
    rank.kernel("kernel", 50 * k + 23, 30, id);
  }
  if (synchronise_inside) rank.call("cudaStreamSynchronize", 38, 4, 9);
  rank.call("cudaDeviceSynchronize", 260, 4, 10);
  return trace;
}

TEST_CASE("a range is its host work, its kernels and the backward operators of its forward ones") {
  Trace trace = five_kernels(2);
  trace.ranks[0].host_ops[2].sequence = 7;  // the first operator, in "block"
  RankBuilder rank(trace);
  trace::HostOp& backward = rank.host("MmBackward", 400, 20, HostKind::kOperator, 2);
  backward.sequence = 7;
  backward.forward_thread = 1;
  rank.call("cudaLaunchKernel", 405, 5, 11, 2);
  rank.kernel("kernel", 413, 40, 11);
  trace.ranks[0].host_ops.insert(trace.ranks[0].host_ops.end(), trace.ranks[1].host_ops.begin(),
                                 trace.ranks[1].host_ops.end());
  for (std::size_t i = trace.ranks[0].host_ops.size() - 2; i < trace.ranks[0].host_ops.size(); ++i)
    trace.ranks[0].host_ops[i].thread = trace::ThreadId(1);
  trace.ranks[0].gpu_ops.push_back(trace.ranks[1].gpu_ops[0]);
  trace.ranks[0].threads.push_back(trace.ranks[1].threads[0]);
  trace.ranks.pop_back();
  Replayed r(std::move(trace));
  double kernels = 0, host = 0;
  for (const RankOp& at : select(r.recordings, r.program, *parse_selector("range=block"))) {
    const double us = r.program.programs[0].ops[at.op].duration->seconds().us();
    (r.program.programs[0].recorded[at.op].kind == Recorded::Kind::kDevice ? kernels : host) += us;
    CHECK(at.range.has_value());
  }
  CHECK(kernels == Approx(2 * 30 + 40));
  CHECK(host == Approx(90 + 20));  // the range from 5 to 95, and the backward operator
  // Twice the layer: 90 us more of host work before the third kernel. The first two take 60 us each.
  run(r, scale(r.recordings, r.program, *parse_scale("range=block:2")));
  CHECK(r.start_us(2) == Approx(123 + 90));
  CHECK(r.end_us(1) - r.start_us(1) == Approx(60));
}

TEST_CASE("time inserted after a range comes once per instance") {
  Replayed r(five_kernels(2));
  run(r, insert(r.recordings, r.program, *parse_timed("host=aten::op:7us")));
  CHECK(r.host_us(0) == Approx(300 + 5 * 7));
}

TEST_CASE("fused kernels are launched once, by one operator") {
  Replayed r(five_kernels(3));
  const auto runs = find_runs(r.recordings, r.program, *parse_selector("range=block"));
  REQUIRE(runs);
  REQUIRE(runs->size() == 1);
  CHECK(runs->front().kernels == std::vector<GpuIndex>{0, 1, 2});
  r.run(fuse(r.recordings, r.program, *runs, {Picoseconds::from(Nanoseconds(75000))}));
  // Two operators of 20 us fall away before the fourth, which would have started at 173.
  CHECK(r.start_us(0) == Approx(23));
  CHECK(r.end_us(2) == Approx(98));
  CHECK(r.start_us(3) == Approx(173 - 40));
  CHECK(r.host_us(0) == Approx(260));
}

TEST_CASE("a synchronization between kernels keeps them apart") {
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 200);
  rank.call("cudaLaunchKernel", 10, 5, 1);
  rank.kernel("kernel", 18, 50, 1);
  rank.call("cudaStreamSynchronize", 20, 54, 2);
  rank.call("cudaLaunchKernel", 80, 5, 3);
  rank.kernel("kernel", 88, 50, 3);
  Replayed r(std::move(trace));
  const auto runs = find_runs(r.recordings, r.program, *parse_selector("kernel"));
  REQUIRE_FALSE(runs);
  CHECK(to_string(runs.error())
            .starts_with("'kernel' matches no two consecutive kernels; kernels of one stream"));
}

TEST_CASE("a graph launches a range at once") {
  const auto cost = [](std::size_t kernels) {
    return Seconds::us(4 + 2 * static_cast<double>(kernels));
  };
  Replayed r(five_kernels(3));
  run(r, launch_as_graph(r.recordings, r.program, *parse_selector("range=block"), cost));
  // The range begins at 5, and its first kernel 8 us later; the others follow it at the queue gap.
  const double gap = r.of_rank().constants.queue_gap.value.seconds().us();
  CHECK(r.start_us(0) == Approx(13));
  CHECK(r.start_us(2) == Approx(13 + 2 * (30 + gap)));
  // The host is no longer the bottleneck: it waits for five kernels, wakes, and works for 36 us.
  CHECK(r.host_us(0) == Approx(13 + 5 * 30 + 4 * gap + 10 + 36));
  CHECK(error_of(launch_as_graph(r.recordings, r.program, *parse_selector("range=aten::op"), cost))
            .starts_with("'aten::op' never launches two kernels"));
  Replayed waits(five_kernels(2, true));
  CHECK(error_of(
            launch_as_graph(waits.recordings, waits.program, *parse_selector("range=block"), cost))
            .starts_with("cudaStreamSynchronize in 'block' waits for the device; "));
}

TEST_CASE("an asynchronous copy is not waited for") {
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 600);
  rank.call("cudaLaunchKernel", 10, 5, 1);
  rank.kernel("kernel", 18, 200, 1);
  rank.call("cudaMemcpyAsync", 20, 290, 2);
  rank.copy(CopyDirection::kDeviceToHost, HostMemory::kPageable, 219, 85, 1 << 20, 2);
  Replayed r(std::move(trace));
  CHECK(r.host_us(0) == Approx(600));
  run(r, make_asynchronous(r.recordings, r.program, *parse_selector("copy")));
  // The call costs its own 8 us in place of 290.
  CHECK(r.host_us(0) == Approx(600 - 290 + 8));
  CHECK(r.start_us(1) == Approx(219));
  CHECK(error_of(make_asynchronous(r.recordings, r.program, *parse_selector("kernel")))
            .starts_with("no call of 'kernel' waits for the device; "));
}

TEST_CASE("ops on a stream of their own run until their results are needed") {
  // Four kernels of 100 us launched at once: 18-118, 119-219, 220-320, 321-421; the host waits.
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 500);
  const char* names[] = {"first", "moved", "second", "third"};
  for (std::uint32_t k = 0; k < 4; ++k) {
    rank.call("cudaLaunchKernel", 10 + 6 * k, 5, k + 1);
    rank.kernel(names[k], 18 + 101 * k, 100, k + 1);
  }
  rank.call("cudaDeviceSynchronize", 40, 387, 9);
  Replayed r(std::move(trace));
  const auto moved = [&](const char* text, Needed needed = Needed::kAtEndOfStep) {
    run(r, move_to_streams(r.recordings, r.program, {*parse_own_stream(text)}, needed));
    return r.host_us(0);
  };
  CHECK(moved("kernel=moved") == Approx(500 - 101));
  CHECK(r.start_us(1) == Approx(118).margin(2));
  CHECK(r.start_us(2) == Approx(119));
  CHECK(moved("kernel=moved:kernel=third") == Approx(500 - 101).margin(2));
  CHECK(moved("kernel=moved:kernel=second") == Approx(500).margin(3));
  CHECK(moved("kernel=moved", Needed::kAtOnce) == Approx(500).margin(3));
  // The host waits for all of the device: also for what has moved.
  CHECK(moved("kernel=third") == Approx(500).margin(2));
  CHECK(error_of(move_to_streams(r.recordings, r.program, {*parse_own_stream("launch")},
                                 Needed::kAtOnce))
            .starts_with("'launch' does not select work of a device; "));
}

TEST_CASE("kernels are replaced by measured ones") {
  Replayed r(five_kernels(2));
  run(r, replace(r.recordings, r.program, *parse_timed("kernel:12us")));
  CHECK(r.end_us(4) - r.start_us(4) == Approx(12));
  CHECK(replace(r.recordings, r.program, *parse_timed("host=aten::op:12us")).has_value());
  CHECK(error_of(replace(r.recordings, r.program, *parse_timed("host:12us"))) ==
        "'host' has more than one kind of op to replace; kernel=PATTERN, copy=PATTERN, "
        "collective=PATTERN or host=PATTERN");
}

TEST_CASE("a straggler is added, or takes the times of the other ranks") {
  Trace trace;
  for (int number = 0; number < 3; ++number) {
    RankBuilder rank(trace);
    rank.step(1, 0, 200);
    rank.call("cudaLaunchKernel", 10, 5, 1);
    rank.kernel("kernel", 18, number == 2 ? 90 : 40 + 10 * number, 1);
  }
  Replayed r(std::move(trace));
  run(r, straggle(r.recordings, r.program, {*parse_straggler("0:3")}));
  CHECK(r.end_us(0, 0) - r.start_us(0, 0) == Approx(120));
  CHECK(r.end_us(0, 1) - r.start_us(0, 1) == Approx(50));
  run(r, straggle(r.recordings, r.program, {*parse_straggler("2:none")}));
  CHECK(r.end_us(0, 2) - r.start_us(0, 2) == Approx(45));  // the mean of 40 and 50
  CHECK(error_of(straggle(r.recordings, r.program, {*parse_straggler("7:2")})) ==
        "the recording has no rank 7; the number of a recorded rank");
  Replayed alone(five_kernels(2));
  CHECK(error_of(straggle(alone.recordings, alone.program, {*parse_straggler("0:none")}))
            .starts_with("no work of this rank corresponds"));
}

}  // namespace
}  // namespace rehearse::replay
