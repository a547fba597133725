// What the reader makes of records of devices: each table, and what goes wrong in recordings.
#include <catch2/catch.hpp>

#include "profiler/replay/recording.h"
#include "tests/support/capture_builder.h"
#include "tests/support/capture_reading.h"
#include "tests/support/capture_run.h"

// Records are given by the fields that a case is about.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace rehearse::ingest {
namespace {

using namespace trace;
using namespace capture;
using test::CaptureBuilder;
using test::first_problem;
using test::kBase;
using test::problems;
using test::read;

CaptureBuilder begun() {
  CaptureBuilder builder;
  builder.process({.host = "host", .process = 10, .realtime_ns = kBase, .monotonic_ns = 500})
      .text(1, "_ZN2at6native6kernelIfEEvPT_i")
      .text(2, "cudaLaunchKernel")
      .text(3, "cuLaunchKernel")
      .text(4, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
      .text(5, "cudaGraphLaunch")
      .text(6, "cudaStreamWaitEvent")
      .text(7, "cudaMemcpyPeerAsync");
  return builder;
}

/// Times from the begin of the recording.
KernelRecord kernel(std::uint64_t start, std::uint64_t end, std::uint64_t correlation,
                    std::uint64_t name = 1) {
  return {.name = name,
          .start = kBase + start,
          .end = kBase + end,
          .device = 0,
          .context = 1,
          .stream = 7,
          .correlation = correlation,
          .grid_x = 2,
          .grid_y = 3,
          .grid_z = 4,
          .block_x = 128,
          .block_y = 1,
          .block_z = 1,
          .registers = 40,
          .static_shared = 1000,
          .dynamic_shared = 24};
}
CallRecord call(std::uint64_t start, std::uint64_t end, std::uint64_t correlation,
                std::uint64_t name = 2, bool driver = false) {
  return {.name = name,
          .start = kBase + start,
          .end = kBase + end,
          .thread = 70,
          .correlation = correlation,
          .driver = driver};
}

TEST_CASE("a kernel and its call are tied together") {
  const auto file = read(begun()
                             .records<CallRecord>(70, {call(100, 150, 9)})
                             .records<KernelRecord>(99, {kernel(200, 500, 9)})
                             .trailer(2, 0)
                             .bytes());
  REQUIRE(file->status);
  REQUIRE(file->rank().gpu_ops.size() == 1);
  const GpuOp& op = file->rank().gpu_ops[0];
  CHECK(file->name(op) == "void at::native::kernel<float>(float*, int)");
  CHECK(op.kind == GpuKind::kKernel);
  CHECK(op.start.count() == 200);
  CHECK(op.duration.count() == 300);
  CHECK(op.device == 0);
  CHECK(op.stream == 7);
  CHECK(op.correlation == 9u);
  REQUIRE(op.launch_shape);
  const LaunchShape expected{{2, 3, 4}, {128, 1, 1}, 40, 1024};
  CHECK(file->rank().launch_shapes[op.launch_shape->index()] == expected);
  REQUIRE(file->rank().host_ops.size() == 1);
  const HostOp& launch = file->rank().host_ops[0];
  CHECK(file->name(launch) == "cudaLaunchKernel");
  CHECK(launch.kind == HostKind::kRuntime);
  CHECK(file->thread(launch) == "70");
  CHECK(launch.start.count() == 100);
  CHECK(launch.duration.count() == 50);
  CHECK(launch.correlation == 9u);
  CHECK(file->trace.problems.worst() == Severity::kInfo);
}

TEST_CASE("copies and sets say direction, memory and bytes") {
  const CopyRecord copy{.start = kBase + 1,
                        .end = kBase + 9,
                        .bytes = 4096,
                        .context = 1,
                        .stream = 7,
                        .correlation = 1,
                        .direction = 1,
                        .from = 1,
                        .to = 3};
  CopyRecord back = copy, peer = copy;
  back.direction = 2;
  back.from = 3;
  back.to = 2;
  peer.direction = 10;
  peer.from = peer.to = 3;
  const SetRecord set{.start = kBase + 20,
                      .end = kBase + 21,
                      .bytes = 64,
                      .context = 1,
                      .stream = 7,
                      .correlation = 4,
                      .memory = 3};
  const auto file = read(begun()
                             .records<CopyRecord>(1, {copy, back, peer})
                             .records<SetRecord>(1, {set})
                             .trailer(4, 0)
                             .bytes());
  const auto& ops = file->rank().gpu_ops;
  REQUIRE(ops.size() == 4);
  CHECK(file->name(ops[0]) == "Memcpy HtoD (Pageable -> Device)");
  CHECK(ops[0].direction == CopyDirection::kHostToDevice);
  CHECK(ops[0].host_memory == HostMemory::kPageable);
  CHECK(ops[0].bytes == 4096);
  CHECK(file->name(ops[1]) == "Memcpy DtoH (Device -> Pinned)");
  CHECK(ops[1].host_memory == HostMemory::kPinned);
  CHECK(ops[2].direction == CopyDirection::kPeer);
  CHECK(ops[2].host_memory == HostMemory::kUnknown);
  CHECK(file->name(ops[3]) == "Memset (Device)");
  CHECK(ops[3].kind == GpuKind::kSet);
  CHECK(ops[3].bytes == 64);
}

TEST_CASE("a driver call inside a runtime call is one call, in either order of the file") {
  const CallRecord outer = call(100, 200, 9), inner = call(120, 180, 9, 3, true);
  const CallRecord alone = call(300, 350, 10, 3, true);
  for (const bool inner_first : {false, true}) {
    // The other one may come with a later flush.
    CaptureBuilder builder = begun();
    builder.records<CallRecord>(1, {inner_first ? inner : outer, alone})
        .clock(kBase + 400, 900)
        .records<CallRecord>(1, {inner_first ? outer : inner})
        .records<KernelRecord>(1, {kernel(210, 220, 9), kernel(360, 370, 10)})
        .clock(kBase + 1400, 1900)
        .trailer(4, 0);
    const auto file = read(builder.bytes());
    REQUIRE(file->rank().host_ops.size() == 2);
    CHECK(file->rank().host_ops[0].kind == HostKind::kRuntime);
    CHECK(file->rank().host_ops[1].kind == HostKind::kDriver);
    CHECK(file->rank().host_ops[1].start.count() == 300);
    CHECK(problems(file->trace, ProblemKind::kDuplicateId) == 0);
    CHECK(problems(file->trace, ProblemKind::kUnfinished) == 0);
    const replay::Recording recording(file->trace, 0);
    CHECK(recording.launcher(0) == 0u);
    CHECK(recording.launcher(1) == 1u);
  }
}

TEST_CASE("one launch may have many device ops") {
  // Nodes of a graph, and both sides of a copy between devices.
  KernelRecord first = kernel(200, 300, 9), second = kernel(310, 400, 9);
  second.stream = 8;
  const CopyRecord sent{.start = kBase + 500,
                        .end = kBase + 600,
                        .bytes = 8,
                        .device = 0,
                        .context = 1,
                        .stream = 7,
                        .correlation = 10,
                        .direction = 10,
                        .from = 3,
                        .to = 3,
                        .from_device = 1,
                        .to_device = 2};
  CopyRecord received = sent;
  received.device = 1;
  received.context = 2;
  const auto file = read(begun()
                             .records<CallRecord>(1, {call(100, 150, 9, 5), call(420, 450, 10, 7)})
                             .records<KernelRecord>(1, {first, second})
                             .records<CopyRecord>(1, {sent, received})
                             .trailer(4, 0)
                             .bytes());
  REQUIRE(file->rank().gpu_ops.size() == 4);
  const replay::Recording recording(file->trace, 0);
  CHECK(recording.launched(0).size() == 2);
  CHECK(recording.launched(1).size() == 2);
  CHECK(file->rank().gpu_ops[3].device == 1);
  CHECK(file->trace.problems.worst() == Severity::kInfo);
}

TEST_CASE("a graph recorded as a whole is one device op, and numbers of graphs come again") {
  const auto launch = [](std::uint64_t start, std::uint64_t correlation) {
    return GraphLaunchRecord{.start = kBase + start,
                             .end = kBase + start + 50,
                             .context = 1,
                             .stream = 7,
                             .correlation = correlation,
                             .graph = 3};
  };
  // The second graph has the number of the first, which is gone.
  const auto file = read(begun()
                             .records<CallRecord>(1, {call(100, 110, 9, 5), call(300, 310, 10, 5)})
                             .records<GraphLaunchRecord>(1, {launch(120, 9), launch(320, 10)})
                             .trailer(4, 0)
                             .bytes());
  REQUIRE(file->rank().gpu_ops.size() == 2);
  CHECK(file->name(file->rank().gpu_ops[0]) == "CUDA graph 3");
  CHECK(file->rank().gpu_ops[0].duration.count() == 50);
  const replay::Recording recording(file->trace, 0);
  CHECK(recording.launcher(0) == 0u);
  CHECK(recording.launcher(1) == 1u);
}

TEST_CASE("times that CUPTI lost are counted and never become a row") {
  KernelRecord zero = kernel(0, 0, 9), backwards = kernel(400, 300, 10), none = kernel(5, 5, 11);
  zero.start = zero.end = 0;
  const auto file =
      read(begun()
               .records<KernelRecord>(1, {zero, backwards, none, kernel(500, 600, 12)})
               .records<CallRecord>(1, {call(100, 110, 9), call(120, 130, 10), call(140, 150, 11),
                                        call(160, 170, 12)})
               .trailer(8, 0)
               .bytes());
  CHECK(problems(file->trace, ProblemKind::kLostTiming) == 3);
  REQUIRE(file->rank().gpu_ops.size() == 1);
  CHECK(file->rank().gpu_ops[0].duration.count() == 100);
  // They ran: their calls miss nothing, and they do not precede them.
  CHECK(problems(file->trace, ProblemKind::kUnfinished) == 0);
  CHECK(problems(file->trace, ProblemKind::kClockSkew) == 0);
}

TEST_CASE("a kernel before its call makes the clock suspect, at the edges calls may be missing") {
  const auto file = read(begun()
                             .records<CallRecord>(1, {call(100, 150, 9), call(900, 950, 11)})
                             .records<KernelRecord>(1, {kernel(90, 95, 9), kernel(20, 30, 8)})
                             .trailer(4, 0)
                             .bytes());
  CHECK(file->rank().gpu_ops.size() == 2);
  CHECK(problems(file->trace, ProblemKind::kClockSkew) == 1);
  CHECK(problems(file->trace, ProblemKind::kUnlaunched) == 1);  // 8, from before
  CHECK(problems(file->trace, ProblemKind::kUnfinished) == 1);  // 11, not yet run
}

TEST_CASE("correlations wrap around at 32 bits") {
  const std::uint64_t last = UINT32_MAX;
  const auto file = read(begun()
                             .records<CallRecord>(1, {call(100, 110, 5), call(300, 310, last),
                                                      call(500, 510, last + 6)})  // 5 again
                             .records<KernelRecord>(1, {kernel(120, 130, 5), kernel(320, 330, last),
                                                        kernel(520, 530, last + 6)})
                             .trailer(6, 0)
                             .bytes());
  REQUIRE(file->rank().gpu_ops.size() == 3);
  CHECK(file->rank().gpu_ops[2].correlation == 5u);
  const replay::Recording recording(file->trace, 0);
  CHECK(recording.launcher(0) == 0u);
  CHECK(recording.launcher(1) == 1u);
  CHECK(recording.launcher(2) == 2u);
  CHECK(problems(file->trace, ProblemKind::kDuplicateId) == 1);
}

TEST_CASE("streams of two contexts that share a number are two streams") {
  KernelRecord other = kernel(200, 300, 2), elsewhere = kernel(400, 500, 3);
  other.context = 2;
  elsewhere.context = 3;
  elsewhere.device = 1;
  const SyncRecord waits{.start = kBase + 600,
                         .end = kBase + 700,
                         .type = 3,
                         .correlation = 4,
                         .context = 2,
                         .stream = 7};
  const auto file =
      read(begun()
               .records<KernelRecord>(1, {kernel(10, 20, 1), other, elsewhere, kernel(30, 40, 5)})
               .records<SyncRecord>(1, {waits})
               .trailer(4, 0)
               .bytes());
  const auto& ops = file->rank().gpu_ops;
  REQUIRE(ops.size() == 4);
  CHECK(ops[0].stream == 7);
  CHECK(ops[1].stream == 100007);
  CHECK(ops[2].stream == 7);
  CHECK(ops[2].device == 1);
  CHECK(ops[3].stream == 7);
  REQUIRE(file->rank().syncs.size() == 1);
  CHECK(file->rank().syncs[0].stream == 100007u);
}

TEST_CASE("synchronisations name streams and the recording of the event") {
  const auto sync = [](std::uint64_t type, std::uint64_t stream, std::uint64_t instant) {
    return SyncRecord{.start = kBase + 600,
                      .end = kBase + 700,
                      .type = type,
                      .correlation = 40,
                      .context = 1,
                      .stream = stream,
                      .event = 6,
                      .event_instant = instant};
  };
  const std::vector<SyncRecord> syncs = {sync(1, 0, 2), sync(2, 8, 3), sync(3, 8, 0),
                                         sync(4, 0, 0), sync(9, 0, 0), sync(2, 8, 77)};
  // The same event was recorded twice, on two streams; a flush may bring it after its wait.
  const auto file =
      read(begun()
               .records<SyncRecord>(1, syncs)
               .clock(kBase + 800, 1300)
               .records<EventRecord>(
                   1, {{.correlation = 20, .context = 1, .stream = 7, .event = 6, .instant = 2},
                       {.correlation = 30, .context = 1, .stream = 9, .event = 6, .instant = 3}})
               .trailer(8, 0)
               .bytes());
  const auto& found = file->rank().syncs;
  REQUIRE(found.size() == 5);
  CHECK(found[0].kind == SyncKind::kEvent);
  CHECK_FALSE(found[0].stream);
  CHECK(found[0].source_stream == 7u);
  CHECK(found[0].event_correlation == 20u);
  CHECK(found[1].kind == SyncKind::kStreamWaitEvent);
  CHECK(found[1].stream == 8u);
  CHECK(found[1].source_stream == 9u);
  CHECK(found[1].event_correlation == 30u);
  CHECK(found[1].correlation == 40u);
  CHECK(found[1].duration.count() == 100);
  CHECK(found[2].kind == SyncKind::kStream);
  CHECK(found[2].stream == 8u);
  CHECK(found[3].kind == SyncKind::kDevice);
  CHECK_FALSE(found[4].source_stream);  // recorded before the recording began
  CHECK(problems(file->trace, ProblemKind::kUnknownCategory) == 1);
}

TEST_CASE("where the recording of an event has no number it is the latest before the wait") {
  const auto event = [](std::uint64_t correlation, std::uint64_t stream) {
    return EventRecord{.correlation = correlation, .context = 1, .stream = stream, .event = 6};
  };
  const auto wait = [](std::uint64_t correlation) {
    return SyncRecord{.start = kBase + 600,
                      .end = kBase + 600,
                      .type = 2,
                      .correlation = correlation,
                      .context = 1,
                      .stream = 8,
                      .event = 6};
  };
  const auto file = read(begun()
                             .records<EventRecord>(1, {event(30, 9), event(20, 7), event(50, 10)})
                             .records<SyncRecord>(1, {wait(40), wait(25), wait(10)})
                             .trailer(6, 0)
                             .bytes());
  REQUIRE(file->rank().syncs.size() == 3);
  CHECK(file->rank().syncs[0].source_stream == 9u);
  CHECK(file->rank().syncs[1].source_stream == 7u);
  CHECK_FALSE(file->rank().syncs[2].source_stream);
}

TEST_CASE("the profiler's own work is distinguished from the driver's") {
  const auto overhead = [](std::uint64_t kind, std::uint64_t thread) {
    return OverheadRecord{.start = kBase + 10, .end = kBase + 30, .kind = kind, .thread = thread};
  };
  const auto file = read(begun()
                             .records<OverheadRecord>(
                                 1, {overhead(1 << 16, 70), overhead(5 << 16, 70), overhead(12, 0)})
                             .trailer(3, 0)
                             .bytes());
  const auto& ops = file->rank().host_ops;
  REQUIRE(ops.size() == 3);
  CHECK(file->name(ops[0]) == "Buffer Flush");
  CHECK(ops[0].kind == HostKind::kOverhead);
  CHECK(ops[0].duration.count() == 20);
  CHECK(file->thread(ops[0]) == "70");
  CHECK(file->name(ops[1]) == "Lazy Function Loading");
  CHECK(ops[1].kind == HostKind::kDriver);
  CHECK(file->name(ops[2]) == "profiler overhead");
}

TEST_CASE("devices, memory, compilations and facts") {
  CaptureBuilder builder = begun();
  builder.text(20, "NVIDIA H200")
      .text(21, "MIG-1234")
      .text(22, "cupti.version")
      .text(23, "130000")
      .text(24, "cupti.dropped")
      .text(25, "12")
      .text(26, "trouble")
      .text(27, "another tool is attached");
  const DeviceRecord device{.name = 20,
                            .uuid = 21,
                            .device = 0,
                            .multiprocessors = 16,
                            .memory_bytes = 1000,
                            .compute_major = 9,
                            .compute_minor = 0,
                            .gpu_instance = 8,
                            .compute_instance = 1};
  const auto memory = [](std::uint64_t time, std::uint64_t operation, std::uint64_t address,
                         std::uint64_t bytes) {
    return MemoryRecord{.time = kBase + time,
                        .address = address,
                        .bytes = bytes,
                        .operation = operation,
                        .kind = 3};
  };
  builder.records<DeviceRecord>(1, {device, device})
      .records<MemoryRecord>(
          1, {memory(10, 1, 0xA, 600), memory(20, 1, 0xB, 300), memory(30, 2, 0xA, 600),
              memory(40, 1, 0xA, 500), memory(50, 2, 0xF, 9999)})
      .records<JitRecord>(1, {{.start = kBase + 1, .end = kBase + 1 + 2'000'000'000}})
      .records<FactRecord>(1, {{22, 23}, {24, 25}, {26, 27}, {22, 23}})
      .trailer(9, 0);
  const auto file = read(builder.bytes());
  REQUIRE(file->rank().devices.size() == 1);
  CHECK(file->rank().devices[0].name == "NVIDIA H200");
  CHECK(file->rank().devices[0].multiprocessors == 16u);
  CHECK(file->rank().devices[0].memory->b() == 1000);
  CHECK(file->rank().devices[0].compute_minor == 0u);
  const std::vector<Fact> expected = {{"device.0.uuid", "MIG-1234"},
                                      {"device.0.mig", "gpu instance 7, compute instance 0"},
                                      {"cupti.version", "130000"},
                                      {"cupti.dropped", "12"},
                                      {"trouble", "another tool is attached"},
                                      {"memory.0.peak", "900 B"},
                                      {"jit", "1 compilations, 2.000 s"}};
  CHECK(file->rank().info.facts == expected);
  CHECK(problems(file->trace, ProblemKind::kDroppedRecords) == 12);
  CHECK(problems(file->trace, ProblemKind::kNotRecorded) == 1);
  CHECK(first_problem(file->trace, ProblemKind::kNotRecorded) == "x.cap: another tool is attached");
}

TEST_CASE("damage in records is counted") {
  KernelRecord nameless = kernel(1, 2, 1), late = kernel(1, 2, 1), far = kernel(1, 2, 1);
  nameless.name = 999;
  late.start = UINT64_MAX - 5;
  late.end = UINT64_MAX;
  far.device = 1 << 20;
  CaptureBuilder builder = begun();
  builder.records<KernelRecord>(1, {nameless, late, far});
  builder.numbers(BlockType::kRecords, {200, 1, 1, 1, 0, 5});  // a table of a later version
  builder.numbers(BlockType::kRecords, {1, 1, 2});             // cut
  const auto file = read(builder.trailer(3, 0).bytes());
  CHECK(file->rank().gpu_ops.empty());
  CHECK(problems(file->trace, ProblemKind::kMissingField) == 1);
  CHECK(problems(file->trace, ProblemKind::kAbsurdNumber) == 2);
  CHECK(problems(file->trace, ProblemKind::kUnknownCategory) == 1);
  CHECK(problems(file->trace, ProblemKind::kMalformed) == 1);
}

TEST_CASE("kernels of NCCL are collectives") {
  const auto file =
      read(begun().records<KernelRecord>(1, {kernel(1, 2, 1, 4)}).trailer(1, 0).bytes());
  REQUIRE(file->rank().gpu_ops[0].collective);
  CHECK(file->rank().collectives[0].kind == CollectiveKind::kAllReduce);
}

}  // namespace
}  // namespace rehearse::ingest
