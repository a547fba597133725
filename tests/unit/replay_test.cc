// The rules of profiler/replay, each on a trace made for it: the recording is explained, and, more
// telling, an edit moves what it should and nothing else.
#include <cmath>

#include <catch2/catch.hpp>

#include "profiler/replay/attribution.h"
#include "profiler/replay/interval.h"
#include "profiler/replay/stream_waits.h"
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

/// Kernels of 100 us launched every 200 us: each finds the stream idle and starts 8 us after its
/// call.
Trace host_bound(int kernels) {
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 200.0 * kernels);
  for (int k = 0; k < kernels; ++k) {
    rank.call("cudaLaunchKernel", 200.0 * k + 10, 5, static_cast<std::uint32_t>(k + 1));
    rank.kernel("gemm", 200.0 * k + 18, 100, static_cast<std::uint32_t>(k + 1));
  }
  return trace;
}

TEST_CASE("a kernel on an idle stream starts one launch latency after its call") {
  Replayed r(host_bound(10));
  CHECK(r.of_rank().constants.launch.value == Nanoseconds(8000));
  CHECK(r.start_us(3) == Approx(618));
  CHECK(r.host_us(0) == Approx(2000));
  r.scale("host:2");  // its call now comes at 2 x 610
  CHECK(r.start_us(3) == Approx(1228));
  r.scale("gpu:1.5");  // the device keeps up, so nothing else moves
  CHECK(r.start_us(3) == Approx(618));
  CHECK(r.host_us(0) == Approx(2000));
}

TEST_CASE("the measured host cost of recording can be removed") {
  Trace trace = host_bound(10);
  trace.ranks[0].info.facts = {{"overhead.ns_per_range", "3000"}, {"overhead.ns_per_call", "2000"}};
  Replayed r(std::move(trace));
  // As recorded it is what was recorded.
  CHECK(r.host_us(0) == Approx(2000));
  const program::Occupancy parts = occupancy(r.graph, r.timeline);
  CHECK(parts.profiler > Seconds::s(0));
  const Result<RecordedProgram> without =
      remove(r.recordings, r.program, *parse_selector("profiler"));
  REQUIRE(without);
  r.run(*without);
  // Ten calls of 2 us each, and the part after the start of the one range; kernels keep theirs.
  CHECK(r.host_us(0) == Approx(2000 - 10 * 2 - 1.5));
  CHECK(r.end_us(3) - r.start_us(3) == Approx(100));
}

TEST_CASE("an invalid cost of recording is ignored") {
  for (const char* value : {"", "about 5", "-3", "nan", "1e9", "12 ns"}) {
    INFO(value);
    Trace trace = host_bound(3);
    trace.ranks[0].info.facts = {{"overhead.ns_per_call", value}};
    Replayed r(std::move(trace));
    CHECK(select(r.recordings, r.program, *parse_selector("profiler")).empty());
  }
}

TEST_CASE("ops of one stream follow each other in the order of their launches") {
  // Launched at 10, 20, 30 for 100 us each; the queue gap is 1 us.
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 400);
  for (int k = 0; k < 3; ++k) {
    rank.call("cudaLaunchKernel", 10 + 10 * k, 5, static_cast<std::uint32_t>(k + 1));
    rank.kernel("gemm", 18 + 101 * k, 100, static_cast<std::uint32_t>(k + 1));
  }
  Replayed r(std::move(trace));
  CHECK(r.of_rank().constants.queue_gap.value == Nanoseconds(1000));
  CHECK(r.start_us(2) == Approx(220));
  r.scale("gpu:2");  // 18 + 2 x (200 + 1)
  CHECK(r.start_us(2) == Approx(420));
  CHECK(r.host_us(0) == Approx(400));  // nothing waits, so the host does not notice
}

/// One kernel of 500 us and a call that waits for it, returning 6 us after.
Trace synchronised(const std::string& call) {
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 700);
  rank.call("cudaLaunchKernel", 10, 5, 1);
  rank.kernel("gemm", 18, 500, 1);
  rank.call(call, 30, 494, 2);
  rank.host("aten::item", 600, 50);
  return trace;
}

TEST_CASE("a synchronising call lasts as long as what it waits for") {
  for (const char* call :
       {"cudaDeviceSynchronize", "cudaStreamSynchronize", "hipEventSynchronize"}) {
    INFO(call);
    Replayed r(synchronised(call));
    CHECK(r.host_us(0) == Approx(700));
    r.scale("gpu:2");  // the kernel ends at 1018, the call at 1024; then 176 us of work
    CHECK(r.host_us(0) == Approx(1200));
    r.scale("gpu:0");  // nothing to wait for: the call costs its own 4 us
    CHECK(r.host_us(0) == Approx(700 - 494 + 4));
  }
}

TEST_CASE("host work is compute only where nothing was launched on a device") {
  // The kernels were not recorded; therefore the last step counts as partial.
  Trace cut;
  RankBuilder launching(cut);
  launching.step(1, 0, 600);
  launching.call("cudaLaunchKernel", 10, 5, 1);
  launching.step(2, 600, 600);
  Replayed launches(std::move(cut));
  CHECK(occupancy(launches.graph, launches.timeline).host.us() == Approx(600));
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 600);
  rank.host("aten::mm", 10, 500);
  Replayed none(std::move(trace));
  CHECK(occupancy(none.graph, none.timeline).compute.us() == Approx(600));
}

TEST_CASE("a synchronising call without a cause costs its own, and waits for the device") {
  // Nothing runs on a device while this call lasts 5 ms: the wait is recorded, its cause is not.
  Trace trace = host_bound(3);
  trace.ranks[0].host_ops.push_back({.name = trace.names.intern("cudaStreamSynchronize"),
                                     .thread = trace::ThreadId(0),
                                     .kind = HostKind::kRuntime,
                                     .start = RankBuilder::ns(600),
                                     .duration = RankBuilder::ns(5000)});
  trace.ranks[0].host_ops[0].duration = RankBuilder::ns(6000);  // the step
  Replayed r(std::move(trace));
  CHECK(r.host_us(0) == Approx(6000));
  CHECK(r.of_rank().unexplained_waits == Nanoseconds(4'996'000));
  CHECK(occupancy(r.graph, r.timeline).unexplained_wait.us() == Approx(4996));
  r.scale("host:2");  // the wait is no work of the host
  CHECK(r.host_us(0) == Approx(2 * (6000 - 4996) + 4996));
  r.scale("gpu:0");  // nothing to wait for: the call costs its own 4 us
  CHECK(r.host_us(0) == Approx(6000 - 4996));
}

TEST_CASE("a launch delayed by a full queue waits for the device") {
  // The queue is full from 30 to 520; the kernel that frees it ends at 518.
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 700);
  rank.call("cudaLaunchKernel", 10, 5, 1);
  rank.kernel("gemm", 18, 500, 1);
  rank.call("cudaLaunchKernel", 28, 495, 2);
  rank.host("Command Buffer Full", 30, 490, HostKind::kOverhead);
  rank.kernel("relu", 519, 100, 2);
  Replayed r(std::move(trace));
  CHECK(r.host_us(0) == Approx(700).margin(3));
  r.scale("kernel=gemm:2");
  CHECK(r.host_us(0) == Approx(1200).margin(3));
  r.scale("gpu:0");
  CHECK(r.host_us(0) == Approx(700 - 490).margin(20));
}

TEST_CASE("threads that only query states are not part of a replay") {
  Trace trace = host_bound(3);
  RankBuilder other(trace);
  other.call("cudaEventQuery", 5, 1, 90);
  other.call("cudaPointerGetAttributes", 300, 1, 91);
  other.call("cudaThreadExchangeStreamCaptureMode", 500, 1, 92);
  Recording recording(trace, 1);
  CHECK(recording.threads().empty());
}

TEST_CASE("work of the worker thread before and after a backward pass is not part of the wait") {
  // The autograd thread is silent from 400 to 1000. Meanwhile the main thread waits 300 us for a
  // copy, then computes forward; only then is the backward pass of the next step handed over.
  Trace trace;
  RankBuilder rank(trace);
  const auto backward = [&](double start) {
    trace::HostOp& op = rank.host("autograd::engine::evaluate_function: MmBackward", start, 100,
                                  HostKind::kOperator, 2);
    op.sequence = 1;
    op.forward_thread = 1;
  };
  rank.host("aten::zero_", 0, 100);
  backward(300);
  rank.call("cudaMemcpyAsync", 450, 300, 1);
  rank.copy(CopyDirection::kDeviceToHost, HostMemory::kPageable, 600, 140, 1 << 20, 1);
  trace::HostOp& forward = rank.host("aten::mm", 760, 100);
  forward.sequence = 2;
  forward.forward_thread = 0;
  backward(1000);
  rank.host("aten::add_", 1150, 50);
  Replayed r(std::move(trace));
  const auto end_us = [&](std::size_t host) {
    return r.timeline[r.graph.lowered.op(0, *r.of_rank().host_last[host])].end.seconds().us();
  };
  CHECK(end_us(3) == Approx(860).margin(1));
  r.scale("gpu:0");  // the copy and what held it up are gone: only its call and the launch remain
  CHECK(end_us(3) < 860 - 100);
}

TEST_CASE("without the rule for waits a slower device has no effect") {
  Replayed r(synchronised("cudaDeviceSynchronize"), {.host_waits = false});
  CHECK(r.host_us(0) == Approx(700));
  r.scale("gpu:10");
  CHECK(r.host_us(0) == Approx(700));
}

/// A copy of 1000 us after a kernel of 300 us, whose call returns at `returns`.
Trace copying(CopyDirection direction, HostMemory memory, std::uint64_t bytes, double returns) {
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 2000);
  rank.call("cudaLaunchKernel", 10, 5, 1);
  rank.kernel("gemm", 18, 300, 1);
  rank.call("cudaMemcpyAsync", 20, returns - 20, 2);
  rank.copy(direction, memory, 319, 1000, bytes, 2);
  return trace;
}

TEST_CASE("whether a copying call waits depends on direction, memory and size") {
  SECTION("to pageable host memory: to the end") {
    Replayed r(copying(CopyDirection::kDeviceToHost, HostMemory::kPageable, 1 << 20, 1326));
    CHECK(r.host_us(0) == Approx(2000));
    r.scale("gpu:2");  // +300 +1000
    CHECK(r.host_us(0) == Approx(3300));
  }
  SECTION("from pageable host memory, large: to shortly before the end") {
    Replayed r(copying(CopyDirection::kHostToDevice, HostMemory::kPageable, 1 << 20, 1269));
    CHECK(r.of_rank().constants.copy_lead.value == Nanoseconds(50000));
    CHECK(r.host_us(0) == Approx(2000));
    r.scale("kernel:2");  // the backlog of the stream holds the copy, and so the call
    CHECK(r.host_us(0) == Approx(2300));
  }
  SECTION("from pageable host memory, small: not at all") {
    Replayed r(copying(CopyDirection::kHostToDevice, HostMemory::kPageable, 4096, 30));
    r.scale("gpu:3");
    CHECK(r.host_us(0) == Approx(2000));
  }
  SECTION("pinned host memory: not at all") {
    Replayed r(copying(CopyDirection::kDeviceToHost, HostMemory::kPinned, 1 << 20, 30));
    r.scale("gpu:3");
    CHECK(r.host_us(0) == Approx(2000));
  }
}

/// Stream 7 works until 518; stream 8 was told to wait for it, and starts 4 us later.
Trace two_streams(bool with_call) {
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 1000);
  for (std::uint32_t k = 0; k < 6; ++k) {  // shows the launch latency of idle streams: 8 us
    rank.call("cudaLaunchKernel", 700 + 40.0 * k, 5, 10 + k);
    rank.kernel("small", 708 + 40.0 * k, 10, 10 + k);
  }
  rank.call("cudaLaunchKernel", 10, 5, 1);
  rank.kernel("gemm", 18, 500, 1, 7);
  if (with_call) rank.call("cudaStreamWaitEvent", 20, 2, 2);
  rank.call("cudaLaunchKernel", 30, 5, 3);
  rank.kernel("all_reduce", 522, 100, 3, 8);
  return trace;
}

TEST_CASE("a stream waits for another: by a call, or by its start time") {
  for (const bool with_call : {true, false}) {
    INFO("with a call: " << with_call);
    Replayed r(two_streams(with_call));
    const auto evidence = with_call ? Evidence::kCall : Evidence::kTiming;
    CHECK(r.of_rank().stream_waits[static_cast<int>(evidence)] == 1);
    CHECK(r.start_us(7) == Approx(518));
    r.scale("kernel=gemm:1.2");
    CHECK(r.start_us(7) == Approx(618));
  }
  Replayed neither(two_streams(true), {.stream_waits_calls = false, .stream_waits_timing = false});
  CHECK(neither.start_us(7) == Approx(38));  // its launch is all that holds it
}

TEST_CASE("a recorded synchronisation names both streams") {
  Trace trace = two_streams(true);
  trace.ranks[0].syncs.push_back({.kind = trace::SyncKind::kStreamWaitEvent,
                                  .start = Nanoseconds(20000),
                                  .duration = Nanoseconds(0),
                                  .correlation = 2,
                                  .stream = 8,
                                  .source_stream = 7});
  Replayed r(std::move(trace), {.stream_waits_calls = false, .stream_waits_timing = false});
  CHECK(r.of_rank().stream_waits[static_cast<int>(Evidence::kRecorded)] == 1);
  r.scale("kernel=gemm:1.2");
  CHECK(r.start_us(7) == Approx(618));
}

/// The main thread works 100 us, hands a backward pass of 400 us to another thread 20 us later, and
/// goes on 30 us after it: 100 + 20 + 400 + 30 + 50 = 600.
Trace with_backward(int steps) {
  Trace trace;
  RankBuilder rank(trace);
  for (int s = 0; s < steps; ++s) {
    const double t = 600.0 * s;
    rank.step(s + 1, t, 600);
    rank.host("forward", t, 100);
    trace::HostOp& backward = rank.host("autograd::engine::evaluate_function: MmBackward", t + 120,
                                        400, HostKind::kOperator, 2);
    backward.sequence = 1;
    backward.forward_thread = 1;
    rank.host("optimizer", t + 550, 50);
  }
  return trace;
}

TEST_CASE("the main thread waits for the thread that runs its backward pass") {
  Replayed r(with_backward(3));
  CHECK(r.of_rank().hand_offs == 3);
  CHECK(r.host_us(1) == Approx(600));
  r.scale("host=forward:2");  // the backward pass starts later, and all that follows
  CHECK(r.host_us(1) == Approx(700));
  r.scale("host=*MmBackward:0.5");
  CHECK(r.host_us(1) == Approx(400));
}

TEST_CASE("without hand-offs the main thread's silence is work") {
  Replayed r(with_backward(3), {.hand_offs = false});
  CHECK(r.host_us(1) == Approx(600));
  r.scale("host=*MmBackward:0.5");
  CHECK(r.host_us(1) == Approx(600));
}

TEST_CASE("a backward operator waits for the forward one of its number") {
  // Of an operator that is forward itself, recorders write 0 or nothing.
  const std::optional<std::uint32_t> none =
      GENERATE(as<std::optional<std::uint32_t>>(), std::nullopt, std::optional<std::uint32_t>(0));
  const auto pass = [&] {
    Trace trace;
    RankBuilder rank(trace);
    rank.step(0, 0, 1000);
    const auto forward = [&](std::string_view name, double start, double duration) {
      trace::HostOp& op = rank.host(std::string(name), start, duration);
      op.sequence = 5;
      op.forward_thread = none;
    };
    forward("aten::linear", 100, 200);
    forward("aten::addmm", 150, 100);   // within it, of the same number
    rank.host("aten::relu", 320, 130);  // meanwhile the main thread goes on
    rank.host("aten::add", 450, 200);
    trace::HostOp& backward = rank.host("AddmmBackward0", 400, 100, HostKind::kOperator, 2);
    backward.sequence = 5;
    backward.forward_thread = 1;
    return trace;
  };
  Replayed linked(pass());
  CHECK(linked.of_rank().backward_links == 1);
  CHECK(linked.comparison.worst_error == Approx(0).margin(1e-9));
  // The linear at three times its time ends at 700: 300 later than the backward operator began.
  linked.scale("host=aten::linear:3");
  const auto end_us = [](const Replayed& r) {
    return r.timeline[r.graph.lowered.op(0, *r.of_rank().host_last[5])].end.seconds().us();
  };
  CHECK(end_us(linked) == Approx(800));
  Replayed free(pass(), {.backward_links = false});
  free.scale("host=aten::linear:3");
  CHECK(end_us(free) == Approx(500));
}

TEST_CASE("a silent thread does not wait for a thread that only polls") {
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 1000);
  rank.host("forward", 0, 100);
  rank.host("watch", 300, 2, HostKind::kOperator, 2);  // 2 us of 800 us of silence
  rank.host("optimizer", 900, 100);
  Replayed r(std::move(trace));
  CHECK(r.of_rank().hand_offs == 0);
}

TEST_CASE("work launched before the recording keeps its start and its distances") {
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 1000);
  rank.kernel("old", 40, 100, std::nullopt);
  rank.kernel("old", 145, 100, std::nullopt);
  rank.call("cudaLaunchKernel", 10, 5, 1);
  rank.kernel("new", 246, 100, 1);
  Replayed r(std::move(trace));
  CHECK(r.start_us(0) == Approx(40));
  CHECK(r.start_us(1) == Approx(145));
  r.scale("kernel:2");  // 40 + 200 + 5 + 200 + a queue gap
  CHECK(r.start_us(1) == Approx(245));
  CHECK(r.start_us(2) == Approx(445 + 1.3).margin(0.4));
}

TEST_CASE("a first op that waits long for nothing inherits a backlog and makes its step partial") {
  Trace trace;
  RankBuilder rank(trace);
  for (int s = 0; s < 3; ++s) rank.step(s + 1, 5000.0 * s, 5000);
  rank.call("cudaLaunchKernel", 10, 5, 1);
  rank.kernel("gemm", 3000, 100, 1);
  rank.call("cudaLaunchKernel", 6000, 5, 2);
  rank.kernel("gemm", 6008, 100, 2);
  Replayed r(std::move(trace));
  CHECK(r.start_us(0) == Approx(3000));
  CHECK(r.comparison.steps[0].partial);
  CHECK_FALSE(r.comparison.steps[1].partial);
}

TEST_CASE("ops of one graph launch keep their recorded distances") {
  Trace trace;
  RankBuilder rank(trace);
  rank.step(1, 0, 1000);
  rank.call("cudaGraphLaunch", 10, 20, 1);
  rank.kernel("a", 18, 100, 1);
  rank.kernel("b", 130, 100, 1);  // 12 us after a
  rank.kernel("c", 232, 100, 1);
  Replayed r(std::move(trace));
  CHECK(r.start_us(1) == Approx(130));
  r.scale("kernel=a:2");
  CHECK(r.start_us(1) == Approx(230));
}

TEST_CASE("steps: the host's period and the device's differ where the host runs ahead") {
  // Three steps of 100 us on the host, each launching 150 us of device work.
  Trace trace;
  RankBuilder rank(trace);
  for (int s = 0; s < 3; ++s) {
    rank.step(s + 1, 100.0 * s, 100);
    rank.call("cudaLaunchKernel", 100.0 * s + 10, 5, static_cast<std::uint32_t>(s + 1));
    rank.kernel("gemm", 18 + 151.0 * s, 150, static_cast<std::uint32_t>(s + 1));
  }
  Replayed r(std::move(trace));
  REQUIRE(r.comparison.steps.size() == 3);
  CHECK(r.comparison.steps[1].host->measured.us() == Approx(100));
  CHECK(r.comparison.steps[1].device->measured.us() == Approx(151));
  CHECK(r.comparison.steps[1].device->simulated.us() == Approx(151));
  CHECK(r.comparison.step_time.measured.us() == Approx((168 + 151 + 151) / 3.0));
}

TEST_CASE("residuals restore the delays that no rule explains") {
  Trace trace = host_bound(10);
  trace.ranks[0].gpu_ops[5].start += Nanoseconds(40000);  // 40 us late, for no visible reason
  Replayed without(trace);
  CHECK(without.start_us(5) == Approx(1018));
  CHECK(without.comparison.residual_share == Approx(40.0 / 2000));
  Replayed with(trace, {.residuals = Residuals::kAll});
  CHECK(with.start_us(5) == Approx(1058));
}

/// Steps of 1 ms whose third kernel starts `late` after its launch; `last` in the last step.
Trace late_in_each_step(double late, double last) {
  Trace trace;
  RankBuilder rank(trace);
  std::uint32_t id = 0;
  for (int s = 0; s < 5; ++s) {
    rank.step(s, 1000.0 * s, 1000);
    for (int k = 0; k < 4; ++k) {
      const double at = 1000.0 * s + 200 * k;
      rank.call("cudaLaunchKernel", at + 10, 5, ++id);
      rank.kernel("gemm", at + 18 + (k == 2 ? (s == 4 ? last : late) : 0), 20, id);
    }
    rank.host("cudaDeviceSynchronize", 1000.0 * s + 750, 10, HostKind::kRuntime);
  }
  return trace;
}

TEST_CASE("a delay that recurs in most steps is kept by its median") {
  Replayed r(late_in_each_step(64, 90));
  REQUIRE(r.of_rank().delayed.size() == 1);
  const DelayedOp& op = r.of_rank().delayed.front();
  CHECK(op.recurring == Nanoseconds(64000));
  CHECK(op.times == 5);
  CHECK(op.ops.front() == 2);
  // 4 x 64 + 90 us of the 5 ms.
  CHECK(r.comparison.residual_share == Approx(0.346 / 5));
  CHECK(r.start_us(2) == Approx(418 + 64));
  CHECK(r.start_us(18) == Approx(4418 + 64));  // in the last step, too
  // The kernel's time does not change it; without device work it is gone.
  r.scale("kernel:0.5");
  CHECK(r.start_us(2) == Approx(418 + 64));
  r.scale("gpu:0");
  CHECK(r.start_us(2) == Approx(418));
  const Result<RecordedProgram> without =
      remove(r.recordings, r.program, *parse_selector("kernel"));
  REQUIRE(without);
  r.run(*without);
  CHECK(r.end_us(2) < 418);  // the time of its launch is gone as well
}

TEST_CASE("a delay of few steps is not kept") {
  Trace trace = late_in_each_step(0, 90);
  Replayed r(trace);
  CHECK(r.of_rank().delayed.front().recurring == Nanoseconds(0));
  CHECK(r.start_us(18) == Approx(4418));
  CHECK(r.comparison.residual_share == Approx(0.09 / 5));
}

TEST_CASE("the interval is at least as wide as the share of unexplained delays or waits") {
  Comparison recorded;
  recorded.step_time = {Seconds::s(1), Seconds::s(1)};
  CHECK(estimate_step(recorded).high.s() == Approx(std::exp(0.01)));
  recorded.residual_share = 0.12;
  CHECK(estimate_step(recorded).high.s() == Approx(std::exp(0.12)));
  recorded.unexplained_wait_share = 0.4;
  CHECK(estimate_step(recorded).high.s() == Approx(std::exp(0.4)));
}

TEST_CASE("work of the profiler belongs to the only call that contains it") {
  const auto steps = [](bool second_thread_calls) {
    Trace trace;
    RankBuilder rank(trace);
    rank.step(0, 0, 1000);
    rank.call("cudaLaunchKernel", 100, 300, 1);
    rank.kernel("k", 420, 50, 1);
    rank.host("Activity Buffer Request", 150, 200, HostKind::kOverhead, 0);
    if (second_thread_calls) rank.call("cudaLaunchKernel", 90, 400, 2, 2);
    return trace;
  };
  const auto profiler = *parse_selector("profiler");
  const Replayed alone(steps(false));
  REQUIRE(select(alone.recordings, alone.program, profiler).size() == 1);
  const Result<RecordedProgram> without = remove(alone.recordings, alone.program, profiler);
  REQUIRE(without);
  Replayed edited(steps(false));
  edited.run(*without);
  CHECK(edited.host_us(0) == Approx(800));
  // With two threads in calls nobody knows whose it was.
  const Replayed two(steps(true));
  CHECK(select(two.recordings, two.program, profiler).empty());
}

TEST_CASE("an execution trace alone cannot be replayed") {
  Trace trace;
  RankBuilder rank(trace);
  rank.host("aten::mm", 0, 0);
  rank.rank().info.timed = false;
  std::vector<Recording> recordings;
  recordings.emplace_back(trace, 0);
  const Result<RecordedProgram> lowered = lower(recordings, {});
  REQUIRE_FALSE(lowered);
  CHECK(to_string(lowered.error()).find("has no times") != std::string::npos);
}

}  // namespace
}  // namespace rehearse::replay
