// What a capture tells of NCCL becomes what the kernels of the trace do.
#include <fstream>

#include <catch2/catch.hpp>

#include "profiler/ingest/byte_source.h"
#include "profiler/ingest/capture.h"
#include "profiler/ingest/capture_collectives.h"
#include "tests/support/capture_builder.h"
#include "tests/support/capture_run.h"
#include "tests/support/data.h"

namespace rehearse {
namespace {

using namespace trace;
using capture::CollectiveRecord;
using capture::CommunicatorRecord;
using test::CaptureBuilder;

constexpr std::uint64_t kWorld = 0x1000, kPair = 0x2000;
constexpr std::uint64_t kStart = 1'700'000'000'000'000'000;

/// The texts that the records of these tests name.
enum Word : std::uint64_t {
  kNone,
  kAllReduce,
  kAllGather,
  kSend,
  kRecv,
  kBfloat16,
  kRing,
  kSimple,
  kNonsense
};
constexpr const char* kWords[] = {"",         "AllReduce", "AllGather", "Send",    "Recv",
                                  "Bfloat16", "RING",      "SIMPLE",    "Nonsense"};

/// A rank with CaptureCollectives between the records and the rows. Times are microseconds.
struct Setup {
  Trace trace;
  Rank& rank = trace.ranks.emplace_back();
  RankRows rows{rank};
  Recorder recorder{trace.names, trace.problems, rank, rows};
  ingest::CaptureCollectives collectives{
      recorder,
      {.name = [this](std::uint64_t text) -> std::optional<NameId> {
         if (text >= std::size(kWords)) return std::nullopt;
         return recorder.name(kWords[text]);
       },
       .time = [](std::uint64_t time) { return Nanoseconds(static_cast<std::int64_t>(time)); },
       .thread =
           [this](std::uint32_t number) { return recorder.thread("1", std::to_string(number)); }}};

  Setup() {
    communicator(kWorld, 8, 3);
    communicator(kPair, 2, 1);
  }

  template <class Record>
  void add(const Record& record) {
    const auto* fields = reinterpret_cast<const std::uint64_t*>(&record);
    capture::RecordsBlock block{.table = Record::kTable,
                                .count = 1,
                                .fields = capture::kFieldsOf<Record>,
                                .values = {fields, fields + capture::kFieldsOf<Record>}};
    CHECK(collectives.read(block));
  }
  void communicator(std::uint64_t hash, std::uint64_t ranks, std::uint64_t number) {
    add(CommunicatorRecord{
        .name = 0, .communicator = hash, .ranks = ranks, .rank = number, .nodes = 1});
  }
  CollectiveRecord collective(Word function, std::uint64_t bytes, std::uint64_t start,
                              std::uint64_t launch_start, std::uint64_t launch_end,
                              std::uint64_t hash = kWorld) {
    CollectiveRecord record = {};
    record.function = function;
    record.datatype = kBfloat16;
    record.algorithm = kRing;
    record.protocol = kSimple;
    record.start = start * 1000;
    record.end = (start + 2) * 1000;
    record.thread = 7;
    record.communicator = hash;
    record.sequence = 12;
    record.bytes = bytes;
    record.channels = 24;
    record.launch_start = launch_start * 1000;
    record.launch_end = launch_end * 1000;
    return record;
  }
  void call(std::uint32_t correlation, double start) {
    recorder.add(HostOp{.name = recorder.name("cuLaunchKernelEx"),
                        .thread = recorder.thread("1", "7"),
                        .kind = HostKind::kDriver,
                        .start = Nanoseconds(static_cast<std::int64_t>(start * 1000)),
                        .duration = Nanoseconds(1000),
                        .correlation = correlation},
                 true);
  }
  /// Whether it was held back.
  bool kernel(const char* name, std::uint32_t correlation, std::uint64_t start) {
    const GpuOp op{.name = recorder.name(name),
                   .kind = GpuKind::kKernel,
                   .start = Nanoseconds(static_cast<std::int64_t>(start * 1000)),
                   .duration = Nanoseconds(5000),
                   .correlation = correlation};
    if (collectives.hold(op)) return true;
    recorder.add(op);
    return false;
  }
  const Collective* of(std::uint32_t correlation) const {
    for (const GpuOp& op : rank.gpu_ops)
      if (op.correlation == correlation)
        return op.collective ? &rank.collectives[op.collective->index()] : nullptr;
    FAIL("no kernel with correlation " << correlation);
    return nullptr;
  }
  std::string_view word(std::optional<NameId> id) const {
    return id ? trace.names[*id] : std::string_view("-");
  }
};

TEST_CASE("a kernel has the collective that NCCL launched it for") {
  Setup s;
  s.add(s.collective(kAllReduce, 4096, 120, 100, 110));
  s.call(1, 50);
  s.call(2, 105);
  CHECK_FALSE(s.kernel("gemm", 1, 60));
  CHECK(s.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 2,
                 140));
  CHECK(s.rank.gpu_ops.size() == 1);  // the other waits
  s.collectives.finish();
  s.recorder.finish();
  REQUIRE(s.rank.gpu_ops.size() == 2);
  CHECK(s.of(1) == nullptr);
  const Collective* reduce = s.of(2);
  REQUIRE(reduce);
  CHECK(reduce->kind == CollectiveKind::kAllReduce);
  CHECK(reduce->bytes_in == 4096u);
  CHECK(reduce->bytes_out == 4096u);
  CHECK(reduce->group_size == 8u);
  CHECK(s.word(reduce->group) == "0x0000000000001000");
  CHECK(s.word(reduce->dtype) == "Bfloat16");
  CHECK(s.word(reduce->algorithm) == "RING");
  CHECK(s.word(reduce->protocol) == "SIMPLE");
  CHECK(reduce->channels == 24u);
  CHECK(s.rank.gpu_ops[1].collective_number == 11u);
  CHECK(test::problems(s.trace, ProblemKind::kUnlaunched) == 0);
  CHECK(test::problems(s.trace, ProblemKind::kUnfinished) == 0);
  CHECK(s.rank.info.rank == 3u);
  CHECK(s.rank.info.world_size == 8u);
}

TEST_CASE("collectives of one kernel are added up") {
  Setup s;
  // Two gathers in one kernel, whose records come after the kernel's.
  s.call(1, 105);
  CHECK(s.kernel("ncclDevKernel_AllGather_RING_LL", 1, 140));
  s.add(s.collective(kAllGather, 100, 120, 100, 110));
  s.add(s.collective(kAllGather, 28, 122, 100, 110));
  // A send and a receive in the next.
  s.call(2, 205);
  CHECK(s.kernel("ncclDevKernel_SendRecv", 2, 240));
  s.add(s.collective(kSend, 1000, 220, 200, 210, kPair));
  s.add(s.collective(kRecv, 500, 222, 200, 210, kPair));
  // Two kinds in a kernel whose name tells none: the larger counts for both.
  s.call(3, 305);
  CHECK(s.kernel("ncclDevKernel_Generic_4", 3, 340));
  s.add(s.collective(kAllReduce, 10, 320, 300, 310));
  s.add(s.collective(kAllGather, 70, 322, 300, 310));
  s.collectives.finish();
  REQUIRE(s.of(1));
  CHECK(s.of(1)->bytes_in == 128u);
  CHECK(s.of(1)->bytes_out == 1024u);
  REQUIRE(s.of(2));
  CHECK(s.of(2)->kind == CollectiveKind::kSendRecv);
  CHECK(s.of(2)->bytes_in == 1000u);
  CHECK(s.of(2)->bytes_out == 500u);
  CHECK(s.of(2)->group_size == 2u);
  REQUIRE(s.of(3));
  CHECK(s.of(3)->kind == CollectiveKind::kAllGather);
  CHECK(s.of(3)->bytes_in == 70u);
  CHECK(s.rank.host_ops.size() == 3);  // none was left over
}

TEST_CASE("without launch times from NCCL, a kernel has the collectives that follow its call") {
  Setup s;
  s.call(1, 105);
  s.call(2, 305);
  s.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 1, 140);
  s.kernel("ncclDevKernel_AllGather_RING_LL", 2, 340);
  s.add(s.collective(kAllReduce, 64, 120, 0, 0));
  s.add(s.collective(kAllGather, 32, 320, 0, 0));
  s.add(s.collective(kAllReduce, 16, 330, 0, 0));   // the kernel before it is a gather
  s.add(s.collective(kAllGather, 8, 60000, 0, 0));  // long after
  s.add(s.collective(kAllReduce, 4, 50, 0, 0));     // before any
  s.collectives.finish();
  REQUIRE(s.of(1));
  CHECK(s.of(1)->bytes_in == 64u);
  REQUIRE(s.of(2));
  CHECK(s.of(2)->bytes_in == 32u);
  // What found no kernel is not lost: it is a range of the host.
  std::vector<std::uint64_t> left;
  for (const HostOp& op : s.rank.host_ops)
    if (op.collective) left.push_back(*op.payload);
  CHECK(left == std::vector<std::uint64_t>{16, 8, 4});
}

TEST_CASE("ambiguous records are not guessed") {
  Setup s;
  // Two threads launch at one moment.
  s.call(1, 104);
  s.call(2, 106);
  s.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 1, 140);
  s.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 2, 140);
  s.add(s.collective(kAllReduce, 64, 120, 100, 110));
  // Of a graph: its kernel was launched with the whole graph.
  CollectiveRecord captured = s.collective(kAllGather, 32, 108, 0, 0);
  captured.captured = 1;
  s.add(captured);
  // A kernel whose call is not in the recording, and one without a correlation.
  s.kernel("ncclDevKernel_AllGather_RING_LL", 3, 500);
  s.collectives.finish();
  CHECK(s.rank.gpu_ops.size() == 3);
  for (const std::uint32_t correlation : {1u, 2u, 3u}) CHECK(s.of(correlation) == nullptr);
  CHECK(s.rank.host_ops.size() == 4);
}

TEST_CASE("damaged records of collectives are counted") {
  Setup s;
  s.add(s.collective(kNonsense, 1, 10, 0, 0));
  CollectiveRecord unnamed = s.collective(kAllReduce, 1, 10, 0, 0);
  unnamed.function = 99;
  s.add(unnamed);
  CollectiveRecord huge = s.collective(kSend, UINT64_MAX, 10, 0, 0);
  s.add(huge);
  CollectiveRecord again = s.collective(kSend, UINT64_MAX, 10, 5, 7);
  s.call(1, 6);
  s.kernel("ncclDevKernel_SendRecv", 1, 20);
  s.add(again);
  s.add(again);
  s.communicator(kWorld, 4, 9);  // a rank that is none: no word on the group
  s.collectives.finish();
  CHECK(test::problems(s.trace, ProblemKind::kMissingField) == 2);
  REQUIRE(s.of(1));
  CHECK(s.of(1)->bytes_in == UINT64_MAX);
  CHECK(s.rank.info.world_size == 8u);
}

TEST_CASE("a process with several devices has no single rank") {
  Setup s;
  s.communicator(kWorld, 8, 4);
  s.collectives.finish();
  CHECK_FALSE(s.rank.info.rank);
  Setup known;
  known.rank.info.rank = 5;
  known.collectives.finish();
  CHECK(known.rank.info.rank == 5u);
}

Trace read(const CaptureBuilder& builder) {
  const auto folder = test::scratch_folder();
  std::ofstream(folder / "h-7.cap", std::ios::binary) << builder.bytes();
  return test::read_captures(folder);
}

TEST_CASE("a capture without a rank in the environment has that of its largest communicator") {
  CaptureBuilder builder;
  builder.process({.host = "h", .process = 7, .realtime_ns = kStart});
  builder.text(1, "world").text(2, "AllReduce").text(3, "Float32");
  builder.records<CommunicatorRecord>(
      7, {{.name = 1, .communicator = kPair, .ranks = 2, .rank = 0, .nodes = 1},
          {.name = 1, .communicator = kWorld, .ranks = 16, .rank = 11, .nodes = 2}});
  CollectiveRecord reduce = {};
  reduce.function = 2;
  reduce.datatype = 3;
  reduce.start = kStart + 1000;
  reduce.end = kStart + 3000;
  reduce.thread = 7;
  reduce.communicator = kWorld;
  reduce.bytes = 400;
  builder.records<CollectiveRecord>(7, {reduce});
  builder.trailer(3, 0);
  const Trace trace = read(builder);
  REQUIRE(trace.ranks.size() == 1);
  CHECK(trace.ranks[0].info.rank == 11u);
  CHECK(trace.ranks[0].info.world_size == 16u);
  const auto ranges = test::named(trace, trace.ranks[0], "nccl AllReduce");
  REQUIRE(ranges.size() == 1);
  CHECK(ranges[0].start.count() == 1000);
  CHECK(ranges[0].duration.count() == 2000);
  const Collective& what = trace.ranks[0].collectives[ranges[0].collective->index()];
  CHECK(what.group_size == 16u);
  CHECK(what.bytes_out == 400u);
}

TEST_CASE("boards and readings of their power become rows") {
  CaptureBuilder builder;
  builder.process({.host = "h", .process = 7, .realtime_ns = kStart});
  builder.text(1, "GPU-a").text(2, "H200").text(3, "MIG-b").text(4, "GPU-lost");
  builder.records<capture::BoardRecord>(7, {{.uuid = 1,
                                             .name = 2,
                                             .instance = 3,
                                             .index = 0,
                                             .multiprocessors = 60,
                                             .all_multiprocessors = 132,
                                             .gpu_instance = 1,
                                             .compute_instance = 1,
                                             .power_limit = 700000}});
  capture::DeviceRecord device = {};
  device.name = 2;
  device.uuid = 3;
  device.device = 1;
  device.multiprocessors = 60;
  builder.records<capture::DeviceRecord>(7, {device});
  const auto reading = [](std::uint64_t uuid, std::uint64_t after, std::uint64_t power) {
    capture::PowerRecord record = {};
    record.uuid = uuid;
    record.time = kStart + after;
    record.power = power;
    return record;
  };
  capture::PowerRecord full = reading(1, 5000, 350500);
  full.energy = 123456;
  full.core_clock = 1980000000;
  full.memory_clock = 3201000000;
  full.temperature = 41;
  full.clock_reasons = 4;
  builder.records<capture::PowerRecord>(
      7, {full, reading(4, 6000, 1000), reading(1, 0, 1ull << 60), reading(9, 0, 5)});
  builder.trailer(6, 0);
  const Trace trace = read(builder);
  const Rank& rank = trace.ranks[0];
  REQUIRE(rank.boards.size() == 2);
  CHECK(rank.boards[0].uuid == "GPU-a");
  CHECK(rank.boards[0].instance == "MIG-b");
  CHECK(rank.boards[0].device == 1u);
  CHECK(rank.boards[0].multiprocessors == 60u);
  CHECK(rank.boards[0].all_multiprocessors == 132u);
  CHECK(rank.boards[1].uuid == "GPU-lost");
  CHECK_FALSE(rank.boards[1].device);
  REQUIRE(rank.power.size() == 2);
  CHECK(rank.power[0].time.count() == 5000);
  CHECK(rank.power[0].power->w() == Approx(350.5));
  CHECK(rank.power[0].energy->j() == Approx(123.456));
  CHECK(rank.power[0].core_mhz == 1980u);
  CHECK(rank.power[0].celsius == 41u);
  CHECK(rank.power[1].board == 1);
  CHECK_FALSE(rank.power[1].energy);
  CHECK(test::problems(trace, ProblemKind::kAbsurdNumber) == 1);
  CHECK(test::problems(trace, ProblemKind::kMissingField) == 1);
}

TEST_CASE("the plugin's capture, read into a trace") {
  const auto folder = test::scratch_folder();
  test::Running running(
      {test::capture_program("capture_nccl_plugin_client"), test::capture_library(), "basics", "5"},
      test::recording_to(folder), folder);
  REQUIRE(running.wait() == 0);
  const Trace trace = test::read_captures(folder);
  CHECK(trace.ranks[0].info.rank == 3u);
  CHECK(trace.ranks[0].info.world_size == 8u);
  const auto gathers = test::named(trace, trace.ranks[0], "nccl AllGather");
  REQUIRE(gathers.size() == 1);
  const Collective& gather = trace.ranks[0].collectives[gathers[0].collective->index()];
  CHECK(gather.bytes_in == 2000u);
  CHECK(gather.bytes_out == 16000u);
  CHECK(trace.names[*gather.algorithm] == "NVLS");
  CHECK(trace.names[*gather.dtype] == "Float32");
  CHECK(test::problems(trace, ProblemKind::kMissingField) == 0);
}

}  // namespace
}  // namespace rehearse
