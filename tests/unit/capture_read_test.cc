// What the reader makes of captures, sound and damaged. capture_nvtx_test.cc has real ones.
#include <fstream>
#include <memory>
#include <random>

#include <catch2/catch.hpp>

#include "profiler/ingest/capture.h"
#include "sim/base/file.h"
#include "tests/support/capture_builder.h"
#include "tests/support/capture_reading.h"
#include "tests/support/capture_run.h"
#include "tests/support/data.h"

namespace rehearse::ingest {
namespace {

namespace fs = std::filesystem;
using namespace trace;
using capture::PayloadKind;
using capture::ProcessFacts;
using capture::Row;
using capture::RowKind;
using test::CaptureBuilder;
using test::first_problem;
using test::kBase;
using test::problems;
using test::read;

ProcessFacts facts(std::uint32_t process = 10) {
  return {
      .host = "host", .process = process, .parent = 1, .realtime_ns = kBase, .monotonic_ns = 500};
}

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST_CASE("rows become annotations on their threads, from the start of the recording") {
  CaptureBuilder builder;
  builder.process(facts())
      .text(1, "forward")
      .text(2, "loss")
      .rows(70, {{.time = kBase + 900,
                  .span = 400,
                  .payload = 32,
                  .text = 1,
                  .payload_kind = PayloadKind::kUint32},
                 {.time = kBase + 950, .text = 2, .kind = RowKind::kMark}})
      .trailer(2, 0);
  const auto file = read(builder.bytes());
  REQUIRE(file->status);
  const RankInfo& info = file->rank().info;
  CHECK(info.format == "capture");
  CHECK(info.host == "host");
  CHECK(info.clock_base.count() == static_cast<std::int64_t>(kBase));
  CHECK_FALSE(info.rank);
  REQUIRE(file->rank().host_ops.size() == 2);
  const HostOp& range = file->rank().host_ops[0];
  CHECK(file->trace.names[range.name] == "forward");
  CHECK(range.kind == HostKind::kAnnotation);
  CHECK(range.start.count() == 500);
  CHECK(range.duration.count() == 400);
  CHECK(range.payload == 32);
  CHECK(file->trace.names[file->rank().threads[range.thread.index()].process] == "10");
  CHECK(file->trace.names[file->rank().threads[range.thread.index()].thread] == "70");
  const HostOp& mark = file->rank().host_ops[1];
  CHECK(mark.start.count() == 950);
  CHECK(mark.duration.count() == 0);
  CHECK_FALSE(mark.payload);
  CHECK(file->trace.problems.worst() == Severity::kInfo);
}

TEST_CASE("ranges of MPI with bytes are collectives among all ranks") {
  ProcessFacts of_rank = facts();
  of_rank.rank = 1;
  of_rank.world_size = 2;
  CaptureBuilder builder;
  builder.process(of_rank).text(1, "mpi:all_gather").text(2, "mpi:setup");
  const auto row = [](std::uint32_t text) {
    return Row{.time = kBase + 900,
               .span = 400,
               .payload = 32,
               .text = text,
               .payload_kind = PayloadKind::kUint64};
  };
  builder.rows(70, {row(1), row(2)}).trailer(2, 0);
  const auto file = read(builder.bytes());
  REQUIRE(file->status);
  CHECK_FALSE(file->rank().host_ops[1].collective);
  REQUIRE(file->rank().host_ops[0].collective);
  const Collective& c = file->rank().collectives[file->rank().host_ops[0].collective->index()];
  CHECK(c.kind == CollectiveKind::kAllGather);
  CHECK(c.bytes_in == 32);
  CHECK(c.bytes_out == 64);
  CHECK(c.group_size == 2);
  CHECK(file->trace.names[*c.ranks] == "[0, 1]");
}

TEST_CASE("an end that comes to the file before its start still ends it") {
  CaptureBuilder builder;
  builder.process(facts())
      .text(1, "copy")
      .rows(71, {{.time = kBase + 700, .span = 5, .kind = RowKind::kEnd}})
      .rows(70, {{.time = kBase + 200, .span = 5, .text = 1, .kind = RowKind::kStart}})
      .trailer(2, 0);
  const auto file = read(builder.bytes());
  REQUIRE(file->rank().host_ops.size() == 1);
  const HostOp& op = file->rank().host_ops[0];
  CHECK(op.start.count() == 200);
  CHECK(op.duration.count() == 500);
  CHECK(file->trace.names[file->rank().threads[op.thread.index()].thread] == "70");
  CHECK(problems(file->trace, ProblemKind::kUnbalancedRange) == 0);
}

TEST_CASE("lost, truncated and open ranges are counted and reported") {
  CaptureBuilder builder;
  builder.process(facts())
      .text(1, "epoch")
      .rows(70, {{.time = kBase + 1, .text = 1, .kind = RowKind::kOpen},
                 {.time = kBase + 2, .kind = RowKind::kStrayPop},
                 {.time = kBase + 3, .span = 8, .text = 1, .kind = RowKind::kStart},
                 {.time = kBase + 4, .span = 9, .kind = RowKind::kEnd},
                 {.time = kBase + 5, .text = 99, .kind = RowKind::kMark}})
      .loss(3)
      .loss(7);
  const auto file = read(builder.bytes());
  REQUIRE(file->status);
  CHECK(file->rank().host_ops.empty());
  CHECK(problems(file->trace, ProblemKind::kUnbalancedRange) == 4);
  CHECK(first_problem(file->trace, ProblemKind::kUnbalancedRange) ==
        "x.cap: 'epoch' was never closed");
  CHECK(problems(file->trace, ProblemKind::kMissingField) == 1);
  CHECK(problems(file->trace, ProblemKind::kDroppedRecords) == 7);
  CHECK(problems(file->trace, ProblemKind::kTruncated) == 1);
  CHECK(first_problem(file->trace, ProblemKind::kTruncated).find("ended without a flush") !=
        std::string::npos);
}

TEST_CASE("a call of NCCL has its bytes on the side that NCCL counts") {
  const auto call = [](std::string_view name, std::uint64_t group) {
    CaptureBuilder builder;
    builder.process(facts())
        .text(1, name)
        .rows(70, {{.time = kBase,
                    .span = 3,
                    .payload = 4,
                    .group = 0xAB,
                    .kind = RowKind::kCommunicator},
                   {.time = kBase + 9,
                    .span = 5,
                    .payload = 1000,
                    .group = group,
                    .text = 1,
                    .payload_kind = PayloadKind::kMessageBytes}})
        .trailer(2, 0);
    const auto file = read(builder.bytes());
    REQUIRE(file->rank().host_ops.size() == 1);
    CHECK(file->rank().host_ops[0].payload == 1000);
    REQUIRE(file->rank().host_ops[0].collective);
    const Collective collective = file->rank().collectives[0];
    if (group == 0xAB)
      CHECK(file->trace.names[*collective.group] == "0x00000000000000ab");
    else
      CHECK_FALSE(collective.group);
    return collective;
  };
  CHECK(call("ncclAllReduce", 0xAB).kind == CollectiveKind::kAllReduce);
  CHECK(call("ncclAllReduce", 0xAB).bytes_in == 1000);
  CHECK(call("ncclAllReduce", 0xAB).group_size == 4);
  CHECK(call("ncclAllGather", 0xAB).bytes_in == 1000);
  CHECK(call("ncclAllGather", 0xAB).bytes_out == 4000);
  CHECK(call("ncclReduceScatter", 0xAB).bytes_in == 4000);
  CHECK(call("ncclReduceScatter", 0xAB).bytes_out == 1000);
  CHECK_FALSE(call("ncclReduceScatter", 0).bytes_in);
  CHECK(call("ncclReduceScatter", 0).bytes_out == 1000);
  CHECK_FALSE(call("ncclReduceScatter", 0).group_size);
  CHECK(call("ncclAlltoAll", 0xAB).bytes_in == 4000);
  CHECK(call("ncclSend", 0xAB).bytes_in == 1000);
  CHECK_FALSE(call("ncclSend", 0xAB).bytes_out);
  CHECK(call("ncclRecv", 0xAB).bytes_out == 1000);
  CHECK_FALSE(call("ncclRecv", 0xAB).bytes_in);
}

TEST_CASE("a wall clock that was set is a problem, and one that drifts is not") {
  CaptureBuilder sound;
  // 100 ppm apart over 100 s: 10 ms.
  sound.process(facts()).clock(kBase + 100'010'000'000, 500 + 100'000'000'000).trailer(0, 0);
  CHECK(problems(read(sound.bytes())->trace, ProblemKind::kClockSkew) == 0);
  CaptureBuilder set;
  set.process(facts()).clock(kBase + 3'000'000'000, 500 + 1'000'000'000).trailer(0, 0);
  const auto file = read(set.bytes());
  CHECK(problems(file->trace, ProblemKind::kClockSkew) == 1);
  CHECK(first_problem(file->trace, ProblemKind::kClockSkew) ==
        "x.cap: the wall clock was set by +2.000 s meanwhile");
}

TEST_CASE("absurd times and texts that are not UTF-8 are counted") {
  CaptureBuilder builder;
  builder.process(facts())
      .text(1, "bad \xff")
      .rows(70, {{.time = UINT64_MAX, .text = 1, .kind = RowKind::kMark},
                 {.time = kBase, .span = UINT64_MAX / 2 + 1, .text = 1},
                 {.time = kBase, .span = static_cast<std::uint64_t>(-5), .text = 1},
                 {.time = kBase, .text = 1, .kind = RowKind::kMark}})
      .trailer(4, 0);
  const auto file = read(builder.bytes());
  CHECK(problems(file->trace, ProblemKind::kInvalidText) == 1);
  CHECK(problems(file->trace, ProblemKind::kAbsurdNumber) == 2);
  CHECK(problems(file->trace, ProblemKind::kNegativeDuration) == 1);
  REQUIRE(file->rank().host_ops.size() == 1);
  CHECK(file->trace.names[file->rank().host_ops[0].name] == "bad ?");
}

TEST_CASE("blocks of a later release are stepped over, wrong ones counted") {
  CaptureBuilder builder;
  builder.process(facts())
      .numbers(static_cast<capture::BlockType>(40), {1, 2, 3})
      .numbers(capture::BlockType::kRows, {1, 1, 1})
      .text(1, "mark")
      .rows(1, {{.time = kBase, .text = 1, .kind = RowKind::kMark}})
      .trailer(1, 0);
  const auto file = read(builder.bytes());
  CHECK(problems(file->trace, ProblemKind::kUnknownCategory) == 1);
  CHECK(problems(file->trace, ProblemKind::kMalformed) == 1);
  CHECK(file->rank().host_ops.size() == 1);
}

TEST_CASE("another version is an error, another file a malformed part") {
  std::string newer = CaptureBuilder().bytes();
  newer[offsetof(capture::FileHeader, version)] = 9;
  const auto file = read(newer);
  REQUIRE_FALSE(file->status);
  CHECK(to_string(file->status.error()) ==
        "x.cap: is a capture of another format version; version 1");
  const auto other = read("this is text, and longer than a header");
  CHECK(other->status);
  CHECK(problems(other->trace, ProblemKind::kMalformed) == 1);
}

TEST_CASE("one process has the number of each rank") {
  const fs::path folder = test::scratch_folder();
  const auto add = [&](const std::string& name, const ProcessFacts& process) {
    CaptureBuilder builder;
    builder.process(process).trailer(0, 0);
    write_bytes(folder / name, builder.bytes());
  };
  ProcessFacts process = facts(100);
  process.rank = 1;
  process.world_size = 2;
  add("host-100.cap", process);
  process.process = 101;  // started by 100: a loader, say
  process.parent = 100;
  add("host-101.cap", process);
  process.process = 102;  // forked by 100
  process.forked_from = 100;
  add("host-102.cap", process);
  process = facts(200);
  process.rank = 0;
  process.world_size = 2;
  add("host-200.cap", process);
  process.realtime_ns += 5;  // the same process, after exec
  add("host-200-2.cap", process);
  add("host-300.cap", facts(300));

  const Trace trace = test::read_captures(folder);
  REQUIRE(trace.ranks.size() == 6);
  CHECK(trace.ranks[0].info.rank == 0u);
  CHECK(fs::path(trace.ranks[0].info.source).filename() == "host-200-2.cap");
  CHECK(trace.ranks[1].info.rank == 1u);
  CHECK(trace.ranks[1].info.world_size == 2u);
  CHECK(fs::path(trace.ranks[1].info.source).filename() == "host-100.cap");
  for (std::size_t i = 2; i < 6; ++i) {
    CHECK_FALSE(trace.ranks[i].info.rank);
    CHECK_FALSE(trace.ranks[i].info.world_size);
  }
}

TEST_CASE("a capture folder is known by its files") {
  const fs::path folder = test::scratch_folder();
  CHECK_FALSE(is_capture_folder(folder));
  CHECK_FALSE(is_capture_folder(folder / "absent"));
  write_bytes(folder / "host-1.cap", "something else entirely");
  CHECK(is_capture_folder(folder));
  CHECK_THROWS_WITH(test::read_captures(folder), Catch::Matchers::Contains("contains no capture"));
  write_bytes(folder / "host-2.cap", "");  // killed before the first byte
  const Trace trace = test::read_captures(folder);
  CHECK(trace.ranks.size() == 2);
  CHECK(problems(trace, ProblemKind::kTruncated) == 1);
  CHECK(problems(trace, ProblemKind::kMalformed) == 1);
}

TEST_CASE("reading stops when asked to") {
  CaptureBuilder builder;
  builder.process(facts()).loss(1).trailer(0, 1);
  Trace trace;
  Rank& rank = trace.ranks.emplace_back();
  rank.info.source = "x.cap";
  RankRows rows(rank);
  Recorder recorder(trace.names, trace.problems, rank, rows);
  const auto source = bytes_in_memory(builder.bytes());
  double share = 0;
  const Status status = read_capture(*source, recorder, [&](double part) {
    share = part;
    return false;
  });
  REQUIRE_FALSE(status);
  CHECK(to_string(status.error()) == "x.cap: stopped");
  CHECK(share > 0);
}

/// A capture that a real program left.
std::string recorded() {
  const fs::path folder = test::scratch_folder();
  REQUIRE(test::run_target("capture_target", {"domains"}, folder) == 0);
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".cap") return *read_file(entry.path());
  FAIL("no capture");
  return "";
}

TEST_CASE("a truncated capture is read up to its end") {
  const std::string whole = recorded();
  const std::size_t all = read(whole)->rank().host_ops.size();
  REQUIRE(all == 7);
  std::size_t before = 0;
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    const auto file = read(whole.substr(0, n));
    REQUIRE(file->status);
    const std::size_t ops = file->rank().host_ops.size();
    REQUIRE(ops >= before);
    REQUIRE((n == whole.size()) == (problems(file->trace, ProblemKind::kTruncated) == 0));
    before = ops;
  }
  CHECK(before == all);
}

TEST_CASE("any flipped bit is noticed and survived") {
  const std::string whole = recorded();
  const std::size_t all = read(whole)->rank().host_ops.size();
  std::mt19937 random(20240601);
  for (int i = 0; i < 4000; ++i) {
    std::string flipped = whole;
    const std::size_t bit = random() % (whole.size() * 8);
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const auto file = read(flipped);
    INFO("bit " << bit << " of " << whole.size() * 8);
    const std::size_t in_reserved = bit / 8 - offsetof(capture::FileHeader, reserved);
    if (in_reserved < 4) {
      REQUIRE(file->rank().host_ops.size() == all);
    } else if (file->status) {
      REQUIRE(file->trace.problems.worst() == Severity::kError);
      REQUIRE(file->rank().host_ops.size() <= all);
    } else {
      REQUIRE(bit / 8 < sizeof(capture::FileHeader));  // the version
    }
  }
}

TEST_CASE("the outcome of chosen steps is a message, not a problem") {
  CaptureBuilder sound, wrong;
  sound.process(facts()).numbers(capture::BlockType::kSteps, {100, 2, 1, 0, 5000}).trailer(0, 0);
  CHECK(read(sound.bytes())->trace.problems.list().empty());
  wrong.process(facts()).numbers(capture::BlockType::kSteps, {100, 2, 1, 0}).trailer(0, 0);
  CHECK(problems(read(wrong.bytes())->trace, ProblemKind::kMalformed) == 1);
}

}  // namespace
}  // namespace rehearse::ingest
