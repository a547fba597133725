#include <fstream>
#include <iterator>
#include <random>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "profiler/trace/store.h"
#include "sim/base/file.h"
#include "tests/support/data.h"
#include "tests/support/database.h"

namespace rehearse::trace {
namespace {

namespace fs = std::filesystem;

/// A trace of two ranks. The rows of the first have everything that a row can have, those of the
/// second nothing that may be absent.
Trace small_trace() {
  Trace trace;
  const auto name = [&](std::string_view text) { return trace.names.intern(text); };
  Rank& full = trace.ranks.emplace_back();
  full.info = {.source = "a.json",
               .format = "kineto",
               .rank = 3,
               .world_size = 8,
               .host = "node-1",
               .clock_base = Nanoseconds(1'700'000'000'000'000'000),
               .facts = {{"cupti.version", "130000"}, {"trouble", "no NVML"}}};
  full.threads.push_back({name("100"), name("101")});
  full.devices.push_back({.ordinal = 1,
                          .name = "Example \"GPU\"",
                          .memory = Bytes::gib(80),
                          .multiprocessors = 132,
                          .compute_major = 9,
                          .compute_minor = 0});
  full.inputs.push_back({name("[[2, 3]]"), name("[\"float\"]")});
  full.launch_shapes.push_back({{1, 2, 3}, {4, 5, 6}, 7, 8});
  full.collectives.push_back({.kind = CollectiveKind::kReduceScatter,
                              .bytes_in = 4096,
                              .bytes_out = 512,
                              .group_size = 8,
                              .group = name("dp"),
                              .ranks = name("[0, 1]"),
                              .dtype = name("bf16"),
                              .algorithm = name("RING"),
                              .protocol = name("LL128"),
                              .channels = 24});
  full.host_ops.push_back({.name = name("aten::mm"),
                           .thread = ThreadId(0),
                           .kind = HostKind::kOverhead,
                           .start = Nanoseconds(-5),
                           .duration = Nanoseconds(7),
                           .correlation = 4'000'000'000,
                           .sequence = 1,
                           .forward_thread = 2,
                           .record_function = 3,
                           .inputs = InputsId(0),
                           .collective = CollectiveId(0),
                           .payload = 1ULL << 62});
  full.gpu_ops.push_back({.name = name("gemm"),
                          .kind = GpuKind::kCopy,
                          .direction = CopyDirection::kHostToHost,
                          .host_memory = HostMemory::kPinned,
                          .device = 1,
                          .stream = 7,
                          .start = Nanoseconds(11),
                          .duration = Nanoseconds(13),
                          .correlation = 4'000'000'000,
                          .launch_shape = LaunchShapeId(0),
                          .collective = CollectiveId(0),
                          .bytes = 1ULL << 40,
                          .collective_number = 1ULL << 41});
  full.syncs.push_back({.kind = SyncKind::kStreamWaitEvent,
                        .start = Nanoseconds(17),
                        .duration = Nanoseconds(19),
                        .correlation = 20,
                        .stream = 21,
                        .source_stream = 22,
                        .event_correlation = 23});
  full.dependencies.push_back({{true, 0}, {false, 0}});
  full.boards.push_back({.uuid = "GPU-1",
                         .name = "Example",
                         .instance = "MIG-1",
                         .device = 1,
                         .multiprocessors = 60,
                         .all_multiprocessors = 120});
  full.power.push_back({.board = 0,
                        .time = Nanoseconds(25),
                        .power = Watts::w(123.456),
                        .energy = Joules::j(4e9 + 0.007),
                        .core_mhz = 1980,
                        .memory_mhz = 3201,
                        .celsius = 45,
                        .clock_reasons = 1ULL << 40});

  Rank& bare = trace.ranks.emplace_back();
  bare.info = {.source = "b.et", .format = "chakra", .host = "", .timed = false};
  bare.threads.push_back({name(""), name("")});
  bare.devices.push_back({.ordinal = 0, .name = ""});
  bare.collectives.push_back({.kind = CollectiveKind::kAllReduce});
  bare.boards.push_back({.uuid = ""});
  bare.power.push_back({.board = 0, .time = Nanoseconds(-1)});
  // More rows than one statement inserts.
  for (int i = 0; i < 150; ++i) {
    bare.host_ops.push_back({.name = name(fmt::format("op {}", i)),
                             .thread = ThreadId(0),
                             .kind = HostKind::kOperator,
                             .start = Nanoseconds(150 - i),
                             .duration = Nanoseconds(0)});
    bare.gpu_ops.push_back({.name = name("k"),
                            .kind = GpuKind::kKernel,
                            .start = Nanoseconds(i),
                            .duration = Nanoseconds(1)});
  }
  bare.syncs.push_back(
      {.kind = SyncKind::kDevice, .start = Nanoseconds(0), .duration = Nanoseconds(0)});
  trace.problems.add(ProblemKind::kClockSkew, "a.json:3", 12);
  trace.problems.add(ProblemKind::kDanglingDependency, "b.et");
  return trace;
}

fs::path stored(const Trace& trace) {
  const fs::path path = test::scratch_folder() / "a.rehearse";
  Result<StoreWriter> writer = StoreWriter::create(path);
  REQUIRE(writer);
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    RowSink& rows = writer->rows(r);
    for (const HostOp& op : trace.ranks[r].host_ops) rows.add(op);
    for (const GpuOp& op : trace.ranks[r].gpu_ops) rows.add(op);
    for (const Sync& sync : trace.ranks[r].syncs) rows.add(sync);
    for (const Dependency& dependency : trace.ranks[r].dependencies) rows.add(dependency);
    for (const PowerReading& reading : trace.ranks[r].power) rows.add(reading);
  }
  REQUIRE(writer->finish(trace));
  return path;
}

template <class T>
std::string shown(const std::optional<T>& value) {
  if (!value) return "-";
  if constexpr (requires { value->index(); }) {
    return fmt::format("{}", value->index());
  } else {
    return fmt::format("{}", *value);
  }
}

/// Everything that a trace holds, line by line.
std::vector<std::string> lines_of(const Trace& trace) {
  std::vector<std::string> lines;
  const auto add = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    lines.push_back(fmt::format(format, std::forward<Args>(args)...));
  };
  for (std::size_t i = 0; i < trace.names.size(); ++i) add("{}", trace.names[NameId(i)]);
  for (const Problem& p : trace.problems.list()) add("{} {}", p.count, p.first);
  for (const Rank& r : trace.ranks) {
    add("{} {} {} {} {} {} {}", r.info.source, r.info.format, shown(r.info.rank),
        shown(r.info.world_size), r.info.host, r.info.clock_base.count(), r.info.timed);
    for (const Thread& t : r.threads) add("{} {}", t.process.index(), t.thread.index());
    for (const Device& d : r.devices)
      add("{} {} {} {} {} {}", d.ordinal, d.name, d.memory ? d.memory->b() : -1,
          shown(d.multiprocessors), shown(d.compute_major), shown(d.compute_minor));
    for (const Inputs& i : r.inputs) add("{} {}", i.shapes.index(), i.types.index());
    for (const LaunchShape& s : r.launch_shapes)
      add("{} {} {} {} {} {} {} {}", s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1],
          s.block[2], s.registers, s.shared_bytes);
    for (const Collective& c : r.collectives)
      add("{} {} {} {} {} {} {} {} {} {}", to_string(c.kind), shown(c.bytes_in), shown(c.bytes_out),
          shown(c.group_size), shown(c.group), shown(c.ranks), shown(c.dtype), shown(c.algorithm),
          shown(c.protocol), shown(c.channels));
    for (const HostOp& op : r.host_ops)
      add("{} {} {} {} {} {} {} {} {} {} {} {}", op.name.index(), op.thread.index(),
          static_cast<int>(op.kind), op.start.count(), op.duration.count(), shown(op.correlation),
          shown(op.sequence), shown(op.forward_thread), shown(op.record_function), shown(op.inputs),
          shown(op.collective), shown(op.payload));
    for (const GpuOp& op : r.gpu_ops)
      add("{} {} {} {} {} {} {} {} {} {} {} {} {}", op.name.index(), static_cast<int>(op.kind),
          static_cast<int>(op.direction), static_cast<int>(op.host_memory), op.device, op.stream,
          op.start.count(), op.duration.count(), shown(op.correlation), shown(op.launch_shape),
          shown(op.collective), shown(op.bytes), shown(op.collective_number));
    for (const Sync& s : r.syncs)
      add("{} {} {} {} {} {} {}", static_cast<int>(s.kind), s.start.count(), s.duration.count(),
          shown(s.correlation), shown(s.stream), shown(s.source_stream),
          shown(s.event_correlation));
    for (const Dependency& d : r.dependencies)
      add("{} {} {} {}", d.from.on_gpu, d.from.index, d.to.on_gpu, d.to.index);
    for (const Board& b : r.boards)
      add("{} {} {} {} {} {}", b.uuid, b.name, b.instance, shown(b.device),
          shown(b.multiprocessors), shown(b.all_multiprocessors));
    for (const PowerReading& p : r.power)
      add("{} {} {:.3f} {:.3f} {} {} {} {}", p.board, p.time.count(), p.power ? p.power->w() : -1,
          p.energy ? p.energy->j() : -1, shown(p.core_mhz), shown(p.memory_mhz), shown(p.celsius),
          shown(p.clock_reasons));
  }
  return lines;
}

std::string error_of(const fs::path& path) {
  const Result<Trace> trace = read_store(path);
  return trace ? "no error" : to_string(trace.error());
}

TEST_CASE("a store holds everything, and absent values stay absent") {
  const Trace trace = small_trace();
  const fs::path path = stored(trace);
  CHECK(is_store(path));
  const Result<Trace> read = read_store(path);
  INFO(error_of(path));
  REQUIRE(read);
  CHECK(lines_of(*read) == lines_of(trace));
}

/// Changes a store in a way that its checksum does not show: as one from before checksums.
void edit(const fs::path& path, const std::string& sql) {
  fs::resize_file(path, fs::file_size(path) - 16);
  test::Database(path).run("PRAGMA user_version = 2;" + sql);
}

TEST_CASE("no flipped bit of a store gives other numbers without a word") {
  const Trace trace = small_trace();
  const fs::path path = stored(trace);
  std::ifstream file(path, std::ios::binary);
  const std::string sound{std::istreambuf_iterator<char>(file), {}};
  std::mt19937_64 random(1);
  for (int flip = 0; flip < 300; ++flip) {
    std::string bytes = sound;
    // A third of the flips are in the header and its version, and a third in the checksum.
    const std::size_t at = flip % 3 == 0   ? random() % 100
                           : flip % 3 == 1 ? bytes.size() - 1 - random() % 16
                                           : random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    std::ofstream(path, std::ios::binary) << bytes;
    INFO(at);
    CHECK_FALSE(read_store(path));
  }
  std::ofstream(path, std::ios::binary)
      << sound.substr(0, sound.size() - 16);  // its end is cut off
  CHECK(error_of(path).ends_with("is damaged: its checksum is wrong; import the recording again"));
}

TEST_CASE("a store from before checksums is read, with a note") {
  const Trace trace = small_trace();
  const fs::path path = stored(trace);
  edit(path, "");
  const Result<Trace> read = read_store(path);
  REQUIRE(read);
  CHECK_FALSE(read->problems.is_first(ProblemKind::kUnchecked));
  CHECK(read->ranks.size() == trace.ranks.size());
}

TEST_CASE("a store of another version is refused, by its version") {
  const fs::path path = stored(small_trace());
  test::Database(path).run("PRAGMA user_version = 4");
  CHECK(is_store(path));
  CHECK(error_of(path) == path.string() +
                              ": is a trace store of version 4; version 3; import the recording "
                              "again");
}

TEST_CASE("a store that another program writes is in use") {
  const fs::path path = stored(small_trace());
  test::Database other(path);
  other.run("BEGIN EXCLUSIVE");
  CHECK(error_of(path) ==
        path.string() + ": is in use by another program; a file that no program writes");
}

TEST_CASE("other files are not stores") {
  const fs::path path = test::scratch_folder() / "other";
  test::Database(path).run("CREATE TABLE a(b)");
  CHECK_FALSE(is_store(path));
  CHECK_FALSE(is_store(path.parent_path()));
  CHECK_FALSE(is_store(path.parent_path() / "missing"));
}

TEST_CASE("a reference that points nowhere refuses the whole store") {
  struct Case {
    const char* damage;
    const char* why;
  };
  for (const Case& c :
       {Case{"UPDATE host_op SET thread = 9 WHERE rowid = 1", "table host_op: a reference or time"},
        Case{"UPDATE host_op SET name = 100000", "table host_op: a reference or time"},
        Case{"UPDATE host_op SET kind = 6", "table host_op: a reference or time"},
        Case{"UPDATE host_op SET rank_id = 2", "table host_op: a reference or time"},
        Case{"UPDATE gpu_op SET duration_ns = -1", "table gpu_op: a reference or time"},
        Case{"UPDATE gpu_op SET start_ns = 9000000000000000000", "table gpu_op: a reference or"},
        Case{"UPDATE gpu_op SET direction = 6", "table gpu_op: a reference or time"},
        Case{"UPDATE collective SET kind = 8", "table collective: a reference or time"},
        Case{"UPDATE dependency SET to_row = 1", "table dependency: a reference or time"},
        Case{"UPDATE name SET id = 999 WHERE id = 0", "table name: ids are not dense"},
        Case{"UPDATE name SET text = 'gemm'", "table name: a text appears twice"},
        Case{"DELETE FROM rank WHERE id = 0", "table rank: ids are not dense"},
        Case{"UPDATE power SET board = 1 WHERE rank_id = 0", "table power: a reference or time"},
        Case{"UPDATE power SET time_ns = 9000000000000000000", "table power: a reference or time"},
        Case{"UPDATE board SET rank_id = 7 WHERE rank_id = 1", "table board: a reference or time"},
        Case{"DROP TABLE sync", "table sync: no such table: sync"}}) {
    const fs::path path = stored(small_trace());
    edit(path, c.damage);
    INFO(c.damage);
    CHECK(error_of(path).starts_with(path.string() + ": is damaged: " + c.why));
  }
}

OpTiming timing(const std::string& op, double us) {
  return {.op = op,
          .shape = "m=1 n=2 k=3 batch=1",
          .dtype = "bf16",
          .layout = "nt",
          .epilogue = "none",
          .cold = true,
          .device = "Example \"GPU\"",
          .multiprocessors = 132,
          .partition = "1g.10gb",
          .memory_clock_hz = 2619e6,
          .libraries = "driver 13.0",
          .median = Seconds::us(us),
          .mean = Seconds::us(us * 1.1),
          .min = Seconds::us(us * 0.9),
          .p10 = Seconds::us(us * 0.95),
          .p90 = Seconds::us(us * 1.2),
          .samples = 17,
          .half_width = 0.008,
          .dropped = 3,
          .capped = 0.25,
          .sm_clock_hz = 1755e6,
          .date = "2026-01-31",
          .note = "a note"};
}

TEST_CASE("a store holds times of single operations, with or without a recording") {
  for (Trace trace : {small_trace(), Trace{}}) {
    trace.timings = {timing("gemm", 12.345678), timing("conv", 0.5)};
    const fs::path path = stored(trace);
    const Result<Trace> read = read_store(path);
    INFO(error_of(path));
    REQUIRE(read);
    CHECK(lines_of(*read) == lines_of(trace));
    REQUIRE(read->timings.size() == 2);
    const OpTiming &a = trace.timings[0], &b = read->timings[0];
    CHECK(same_key(a, b));
    CHECK_FALSE(same_key(a, read->timings[1]));
    for (const auto& [was, is] : {std::pair(a.median, b.median),
                                  {a.mean, b.mean},
                                  {a.min, b.min},
                                  {a.p10, b.p10},
                                  {a.p90, b.p90}})
      CHECK(is.s() == Approx(was.s()).epsilon(1e-12));
    CHECK(b.samples == 17);
    CHECK(b.dropped == 3);
    CHECK(b.half_width == a.half_width);
    CHECK(b.capped == a.capped);
    CHECK(b.sm_clock_hz == a.sm_clock_hz);
    CHECK(b.date == a.date);
    CHECK(b.note == a.note);
  }
}

TEST_CASE("a store from before micro-benchmarks is read without them") {
  Trace trace = small_trace();
  trace.timings = {timing("gemm", 1)};
  const fs::path path = stored(trace);
  edit(path, "DROP TABLE op_cost");
  const Result<Trace> read = read_store(path);
  REQUIRE(read);
  CHECK(read->timings.empty());
  CHECK(read->ranks.size() == trace.ranks.size());
}

TEST_CASE("an invalid measured time refuses the store") {
  for (const char* damage : {"median_ns = -1", "mean_ns = 9e999", "median_ns = 0", "p90_ns = -5"}) {
    Trace trace;
    trace.timings = {timing("gemm", 1)};
    const fs::path path = stored(trace);
    edit(path, std::string("UPDATE op_cost SET ") + damage);
    INFO(damage);
    CHECK(error_of(path).starts_with(path.string() + ": is damaged: table op_cost: a number"));
  }
}

TEST_CASE("measured again, an operation has its new time, others stay") {
  std::vector<OpTiming> all = {timing("gemm", 1), timing("conv", 2)};
  OpTiming hot = timing("gemm", 3);
  hot.cold = false;
  merge(all, {timing("gemm", 5), hot});
  REQUIRE(all.size() == 3);
  CHECK(all[0].median.us() == Approx(5));
  CHECK(all[1].median.us() == Approx(2));
  CHECK(all[2].median.us() == Approx(3));
}

TEST_CASE("an unfinished store does not exist") {
  const fs::path path = test::scratch_folder() / "a.rehearse";
  std::ofstream(path) << "old";
  {
    Result<StoreWriter> writer = StoreWriter::create(path);
    REQUIRE(writer);
    writer->rows(0).add(small_trace().ranks[0].host_ops[0]);
  }
  CHECK(read_file(path) == "old");
}

}  // namespace
}  // namespace rehearse::trace
