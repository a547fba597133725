#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <zlib.h>

#include "profiler/ingest/input.h"
#include "profiler/ingest/numbers.h"
#include "profiler/trace/store.h"
#include "sim/base/file.h"
#include "tests/support/data.h"
#include "tests/support/database.h"

namespace rehearse::ingest {
namespace {

using namespace trace;

namespace fs = std::filesystem;

constexpr std::string_view kAccepted =
    "a trace store (.rehearse), a capture folder, Kineto JSON, a PyTorch execution trace, Chakra "
    "(.et), an Nsight Systems export (SQLite), rocprofv3's JSON or table of kernels (CSV), a "
    "trace of JAX's profiler, or an op table (CSV)";

fs::path write(const fs::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
  return file;
}

fs::path write_gzip(const fs::path& file, std::string_view bytes) {
  gzFile out = gzopen(file.c_str(), "wb");
  REQUIRE(gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size())) ==
          static_cast<int>(bytes.size()));
  gzclose(out);
  return file;
}

InputKind kind_of(const fs::path& path) {
  const Result<InputKind> kind = detect_input(path);
  INFO((kind ? "" : to_string(kind.error())));
  REQUIRE(kind);
  return *kind;
}

std::string refusal_of(const fs::path& path) {
  const Result<InputKind> kind = detect_input(path);
  REQUIRE_FALSE(kind);
  return to_string(kind.error());
}

/// A recording of `ops` operators with a kernel each; `rank` as distributedInfo says it.
std::string kineto(int ops, std::optional<int> rank = {},
                   std::int64_t start_us = 1700000000000000) {
  std::string json = "{";
  if (rank) json += fmt::format(R"("distributedInfo": {{"rank": {}, "world_size": 4}}, )", *rank);
  json += R"("deviceProperties": [{"id": 0, "name": "NVIDIA H100", "numSms": 132}],)"
          R"("traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1",)" +
          fmt::format(R"( "pid": 1, "tid": 2, "ts": {}, "dur": 900}})", start_us);
  for (int i = 0; i < ops; ++i)
    json += fmt::format(R"(,
{{"ph": "X", "cat": "cpu_op", "name": "op{0}", "pid": 1, "tid": 2, "ts": {1}, "dur": 8,
  "args": {{"Input Dims": "[[{0}]]", "Input type": "[float]"}}}},
{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": {2},
  "dur": 2, "args": {{"correlation": {3}}}}},
{{"ph": "X", "cat": "kernel", "name": "kernel{0}", "pid": 0, "tid": 7, "ts": {4}, "dur": 5,
  "args": {{"device": 0, "stream": 7, "correlation": {3}, "grid": [{3}, 1, 1], "block": [64, 1, 1]}}}},
{{"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": {4}, "dur": 5,
  "args": {{"stream": 7, "correlation": {3}}}}})",
                        i, start_us + 10 * i, start_us + 10 * i + 1, i + 1, start_us + 10 * i + 4);
  return json + "]}";
}

std::string execution_trace(int ops) {
  std::string json = R"({"schema": "1.0.1", "pid": 1, "nodes": [)";
  for (int i = 0; i < ops; ++i) {
    if (i > 0) json += ",";
    json += fmt::format(R"json({{"name": "op{}", "rf_id": {}, "tid": 1, "seq_id": -1, "fw_tid": 0,
 "input_shapes": [[7]], "input_types": ["Tensor(float)"]}})json",
                        i, i + 1);
  }
  return json + "]}";
}

// One op: id 3, name "x", type 4 (compute), duration 5 us.
const std::string kChakra("\x00\x09\x08\x03\x12\x01x\x18\x04\x38\x05", 11);

void make_nsys(const fs::path& file, std::int64_t pid) {
  test::Database db(file);
  db.run(
      "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT,"
      "globalTid INTEGER);");
  db.run(fmt::format("INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, 'a', {0}), (3, 4, 59, 'b', {0})",
                     pid << 24 | 1));
}

TEST_CASE("the kind of an input is found from its content, whatever its name") {
  const fs::path folder = test::scratch_folder();
  CHECK(kind_of(write(folder / "a.et", kineto(1))) == InputKind::kKineto);
  CHECK(kind_of(write(folder / "b", " \n [\n{\"ph\": \"X\"}, {\"ph\": \"X\"}]")) ==
        InputKind::kKineto);
  CHECK(kind_of(write_gzip(folder / "c.bin", kineto(1))) == InputKind::kKineto);
  CHECK(kind_of(write(folder / "d.sqlite", execution_trace(1))) == InputKind::kExecutionTrace);
  CHECK(kind_of(write_gzip(folder / "e", execution_trace(1))) == InputKind::kExecutionTrace);
  CHECK(kind_of(write(folder / "f.json", kChakra)) == InputKind::kChakra);
  CHECK(kind_of(write_gzip(folder / "g", kChakra)) == InputKind::kChakra);
  make_nsys(folder / "h.json", 5);
  CHECK(kind_of(folder / "h.json") == InputKind::kNsys);
  make_nsys(folder / "h", 5);
  const Result<std::string> database = read_file(folder / "h");
  REQUIRE(database);
  const fs::path packed = write_gzip(folder / "h.sqlite.gz", *database);
  CHECK(kind_of(packed) == InputKind::kNsys);
  const Result<trace::Trace> unpacked = read_inputs(std::vector{packed}, {});
  REQUIRE(unpacked);
  CHECK(unpacked->ranks.size() == 1);
  CHECK(unpacked->ranks[0].info.source == packed.string());
  const fs::path store = folder / "i.json";
  REQUIRE(import_inputs(std::vector{folder / "a.et"}, store, {}));
  CHECK(kind_of(store) == InputKind::kStore);
  // Larger than what is looked at.
  CHECK(kind_of(write(folder / "j", kineto(5000))) == InputKind::kKineto);
  CHECK(kind_of(write(folder / "k", execution_trace(9000))) == InputKind::kExecutionTrace);

  const fs::path capture = test::scratch_folder();
  write(capture / "host.1.cap", "x");
  CHECK(kind_of(capture) == InputKind::kCapture);
  CHECK(kind_of(folder) == InputKind::kKineto);  // a.et is the first in it
}

TEST_CASE("a file that is not a recording is refused in one line that names the accepted kinds") {
  const fs::path folder = test::scratch_folder();
  const auto refused = [&](const fs::path& file, const std::string& why) {
    const std::string line = refusal_of(file);
    CHECK(line == fmt::format("{}: {}; {}", file.string(), why, kAccepted));
    CHECK(line.find('\n') == std::string::npos);
    const Result<Trace> trace = read_inputs(std::vector{file}, {});
    REQUIRE_FALSE(trace);
    CHECK(to_string(trace.error()) == line);
  };
  refused(write(folder / "empty.json", ""), "is empty");
  refused(write(folder / "image.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"),
          "is not a readable recording");
  refused(write(folder / "notes.txt", "the run of yesterday\n"), "is not a readable recording");
  refused(write(folder / "other.json", R"({"model": "gpt", "layers": [{"n": 1}]})"),
          "is JSON, but no recording");
  refused(write(folder / "numbers.json", "[1, 2, 3]"), "is JSON, but no recording");
  refused(write(folder / "broken.json", R"({"traceEv)"), "is JSON, but no recording");
  test::Database(folder / "wares.db").run("CREATE TABLE wares(id INTEGER)");
  refused(folder / "wares.db",
          "is an SQLite database, but neither a trace store nor an Nsight Systems export");
  write_gzip(folder / "cut.json.gz", kineto(100));
  fs::resize_file(folder / "cut.json.gz", 12);  // the header and nothing more
  refused(folder / "cut.json.gz", "the gzip data are truncated");
  const fs::path nothing = test::scratch_folder();
  refused(nothing, "is a folder without a recording");
  write(nothing / "README.md", "# Recordings\n");
  refused(nothing, "is a folder without a recording");

  CHECK(refusal_of(write(folder / "report.nsys-rep", "NSYS"))
            .ends_with("; export it with nsys export --type sqlite"));
  CHECK(refusal_of(folder / "absent.json").find("cannot be read: No such file") !=
        std::string::npos);
  const std::vector<fs::path> two = {folder / "empty.json", folder / "notes.txt"};
  const Result<Trace> both = read_inputs(two, {});
  REQUIRE_FALSE(both);
  CHECK(both.error().diagnostics.size() == 2);
  CHECK_FALSE(read_inputs({}, {}));
}

TEST_CASE("JSON that only looks like a recording is refused by its reader") {
  const fs::path folder = test::scratch_folder();
  const fs::path file = write(folder / "list.json", R"([{"name": "x"}, {"name": "y"}])");
  const Result<Trace> trace = read_inputs(std::vector{file}, {});
  REQUIRE_FALSE(trace);
  CHECK(to_string(trace.error()) ==
        file.string() +
            ": contains no operator, no call and no device work; a trace with events of "
            "phase 'X' and a known category");
}

TEST_CASE("a truncated gzip file gives its readable part, with a message") {
  const fs::path folder = test::scratch_folder();
  const fs::path file = write_gzip(folder / "r.json.gz", kineto(20000));
  fs::resize_file(file, fs::file_size(file) / 2);
  const Result<Trace> trace = read_inputs(std::vector{file}, {});
  REQUIRE(trace);
  CHECK(trace->ranks[0].gpu_ops.size() > 1000);
  CHECK(trace->problems.list().at(0).kind == ProblemKind::kTruncated);

  const Result<Trace> strict = read_inputs(std::vector{file}, {.strict = true});
  REQUIRE_FALSE(strict);
  const std::string line = to_string(strict.error());
  CHECK(line.starts_with("the recording has problems: truncated (1; "));
  CHECK(line.ends_with("; none of severity warning or error"));
  CHECK(line.find("unfinished") == std::string::npos);  // mere information
}

TEST_CASE("strict reading accepts problems of severity info") {
  const fs::path folder = test::scratch_folder();
  const fs::path file = write(folder / "r.json", kineto(3));
  CHECK(read_inputs(std::vector{file}, {.strict = true}));
}

TEST_CASE("ranks come in order of their number, those without one get the lowest free") {
  const fs::path folder = test::scratch_folder();
  const std::vector<fs::path> files = {
      write(folder / "a.json", kineto(1, 2)), write(folder / "b.json", kineto(2)),
      write(folder / "c.json", kineto(3, 0)), write(folder / "d.json", kineto(4))};
  const Result<Trace> trace = read_inputs(files, {});
  REQUIRE(trace);
  REQUIRE(trace->ranks.size() == 4);
  for (std::uint32_t r = 0; r < 4; ++r) CHECK(trace->ranks[r].info.rank == r);
  CHECK(trace->ranks[0].gpu_ops.size() == 3);
  CHECK(trace->ranks[1].gpu_ops.size() == 2);
  CHECK(trace->ranks[2].gpu_ops.size() == 1);
  CHECK(trace->ranks[3].gpu_ops.size() == 4);
  CHECK(trace->ranks[0].info.world_size == 4u);
}

TEST_CASE("two recordings of one rank are refused") {
  const fs::path folder = test::scratch_folder();
  const std::vector<fs::path> files = {write(folder / "a.json", kineto(1, 1)),
                                       write(folder / "b.json", kineto(1, 1))};
  const std::string line = fmt::format("{}: is of rank 1, like {}; one recording per rank",
                                       files[1].string(), files[0].string());
  const Result<Trace> trace = read_inputs(files, {});
  REQUIRE_FALSE(trace);
  CHECK(to_string(trace.error()) == line);
  const fs::path store = folder / "out.rehearse";
  const Result<ImportSummary> summary = import_inputs(files, store, {});
  REQUIRE_FALSE(summary);
  CHECK(to_string(summary.error()) == line);
  CHECK_FALSE(fs::exists(store));
}

TEST_CASE("a folder gives each recording in it, rank 2 before rank 10") {
  const fs::path folder = test::scratch_folder();
  for (const int n : {10, 2, 1}) write(folder / fmt::format("rank{}.json", n), kineto(n));
  write(folder / "README.md", "Recordings.\n");
  fs::create_directory(folder / "rank0");
  write(folder / "rank0" / "inner.json", kineto(1));
  const Result<Trace> trace = read_inputs(std::vector{folder}, {});
  REQUIRE(trace);
  REQUIRE(trace->ranks.size() == 3);
  CHECK(trace->ranks[0].gpu_ops.size() == 1);
  CHECK(trace->ranks[1].gpu_ops.size() == 2);
  CHECK(trace->ranks[2].gpu_ops.size() == 10);
}

TEST_CASE("all ranks have one clock") {
  const fs::path folder = test::scratch_folder();
  const std::vector<fs::path> files = {write(folder / "a.json", kineto(1, 0, 1700000000000500)),
                                       write(folder / "b.json", kineto(1, 1, 1700000000000000))};
  const Result<Trace> trace = read_inputs(files, {});
  REQUIRE(trace);
  CHECK(trace->ranks[1].host_ops[0].start == Nanoseconds(0));
  CHECK(trace->ranks[0].host_ops[0].start == Nanoseconds(500'000));
  CHECK(trace->ranks[0].info.clock_base == Nanoseconds(1700000000000000000));
}

TEST_CASE("Chakra files carry their rank in their name") {
  const fs::path folder = test::scratch_folder();
  write(folder / "job.1.et", kChakra);
  write_gzip(folder / "job.7.et.gz", kChakra);
  write(folder / "trace_20240101.et", kChakra);
  const Result<Trace> trace = read_inputs(std::vector{folder}, {});
  REQUIRE(trace);
  REQUIRE(trace->ranks.size() == 3);
  CHECK(trace->ranks[0].info.source.ends_with("trace_20240101.et"));
  CHECK(trace->ranks[0].info.rank == 0u);
  CHECK(trace->ranks[1].info.rank == 1u);
  CHECK(trace->ranks[2].info.rank == 7u);
}

TEST_CASE("numbers are found in names") {
  CHECK(number_in_file_name("dir9/rank3_worker0_step_12.169.pt.trace.json.gz") == 3u);
  CHECK(number_in_file_name("dlrm_eg_12.json.gz") == 12u);
  CHECK(number_in_file_name("4_graph.json") == 4u);
  CHECK(number_in_file_name("17.json") == 17u);
  CHECK(number_in_file_name("rank-34.Jul_15.json") == 34u);
  CHECK_FALSE(number_in_file_name("resnet_et.json.gz"));
  CHECK_FALSE(number_in_file_name("run_99999999999999.json"));
  CHECK(number_behind_rank("vLLM worker (Rank 5)") == 5u);
  CHECK_FALSE(number_behind_rank("python3"));
  CHECK_FALSE(number_behind_rank("franklin"));
}

// --- import

void check_same(const Trace& a, const Trace& b) {
  REQUIRE(a.ranks.size() == b.ranks.size());
  const auto name = [&](NameId id) { return std::pair(a.names[id], b.names[id]); };
  REQUIRE(a.names.size() == b.names.size());
  for (std::size_t i = 0; i < a.names.size(); ++i) {
    const auto [x, y] = name(NameId(i));
    REQUIRE(x == y);
  }
  for (std::size_t r = 0; r < a.ranks.size(); ++r) {
    const Rank &x = a.ranks[r], &y = b.ranks[r];
    CHECK(x.info.source == y.info.source);
    CHECK(x.info.format == y.info.format);
    CHECK(x.info.rank == y.info.rank);
    CHECK(x.info.world_size == y.info.world_size);
    CHECK(x.info.host == y.info.host);
    CHECK(x.info.clock_base == y.info.clock_base);
    CHECK(x.info.timed == y.info.timed);
    CHECK(x.threads == y.threads);
    CHECK(x.inputs == y.inputs);
    CHECK(x.launch_shapes == y.launch_shapes);
    CHECK(x.collectives == y.collectives);
    REQUIRE(x.devices.size() == y.devices.size());
    for (std::size_t i = 0; i < x.devices.size(); ++i)
      CHECK(x.devices[i].name == y.devices[i].name);
    REQUIRE(x.host_ops.size() == y.host_ops.size());
    for (std::size_t i = 0; i < x.host_ops.size(); ++i) {
      const HostOp &p = x.host_ops[i], &q = y.host_ops[i];
      const bool same =
          p.name == q.name && p.thread == q.thread && p.kind == q.kind && p.start == q.start &&
          p.duration == q.duration && p.correlation == q.correlation && p.sequence == q.sequence &&
          p.forward_thread == q.forward_thread && p.record_function == q.record_function &&
          p.inputs == q.inputs && p.collective == q.collective && p.payload == q.payload;
      if (!same) FAIL("host op " << i << " of rank " << r);
    }
    REQUIRE(x.gpu_ops.size() == y.gpu_ops.size());
    for (std::size_t i = 0; i < x.gpu_ops.size(); ++i) {
      const GpuOp &p = x.gpu_ops[i], &q = y.gpu_ops[i];
      const bool same = p.name == q.name && p.kind == q.kind && p.direction == q.direction &&
                        p.host_memory == q.host_memory && p.device == q.device &&
                        p.stream == q.stream && p.start == q.start && p.duration == q.duration &&
                        p.correlation == q.correlation && p.launch_shape == q.launch_shape &&
                        p.collective == q.collective && p.bytes == q.bytes;
      if (!same) FAIL("device op " << i << " of rank " << r);
    }
    REQUIRE(x.syncs.size() == y.syncs.size());
    for (std::size_t i = 0; i < x.syncs.size(); ++i) {
      CHECK(x.syncs[i].start == y.syncs[i].start);
      CHECK(x.syncs[i].stream == y.syncs[i].stream);
      CHECK(x.syncs[i].correlation == y.syncs[i].correlation);
    }
    REQUIRE(x.dependencies.size() == y.dependencies.size());
    for (std::size_t i = 0; i < x.dependencies.size(); ++i) {
      const Dependency &p = x.dependencies[i], &q = y.dependencies[i];
      const bool same = p.from.on_gpu == q.from.on_gpu && p.from.index == q.from.index &&
                        p.to.on_gpu == q.to.on_gpu && p.to.index == q.to.index;
      if (!same) FAIL("dependency " << i << " of rank " << r);
    }
  }
  const std::vector<Problem> p = a.problems.list(), q = b.problems.list();
  REQUIRE(p.size() == q.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    CHECK(p[i].kind == q[i].kind);
    CHECK(p[i].count == q[i].count);
    CHECK(p[i].first == q[i].first);
  }
}

void check_round_trip(const std::vector<fs::path>& inputs, bool in_memory) {
  const fs::path store = test::scratch_folder() / "job.rehearse";
  const Result<ImportSummary> summary = import_inputs(inputs, store, {});
  INFO((summary ? "" : to_string(summary.error())));
  REQUIRE(summary);
  CHECK(summary->in_memory == in_memory);
  const Result<Trace> direct = read_inputs(inputs, {});
  REQUIRE(direct);
  const Result<Trace> stored = read_inputs(std::vector{store}, {});
  REQUIRE(stored);
  check_same(*direct, *stored);
  std::uint64_t host = 0, gpu = 0;
  for (const Rank& rank : direct->ranks) {
    host += rank.host_ops.size();
    gpu += rank.gpu_ops.size();
  }
  CHECK(summary->ranks == direct->ranks.size());
  CHECK(summary->host_ops == host);
  CHECK(summary->gpu_ops == gpu);
  // A store imported again is the same store.
  const fs::path again = test::scratch_folder() / "again.rehearse";
  REQUIRE(import_inputs(std::vector{store}, again, {}));
  const Result<Trace> second = read_inputs(std::vector{again}, {});
  REQUIRE(second);
  check_same(*direct, *second);
}

TEST_CASE("a store has every imported row") {
  const fs::path folder = test::scratch_folder();
  write(folder / "a.json", kineto(300, 1));
  write(folder / "b.json", kineto(200, 0, 1700000000000500));
  SECTION("streamed, ranks out of order") {
    check_round_trip({folder / "a.json", folder / "b.json"}, false);
  }
  SECTION("with an execution trace") {
    write(folder / "et_1.json", execution_trace(250));
    check_round_trip({folder}, true);
    const Result<Trace> joined = read_inputs(std::vector{folder}, {});
    REQUIRE(joined);
    CHECK(joined->ranks[1].host_ops[1].record_function == 1u);
  }
  SECTION("Chakra") {
    write(folder / "c.0.et", kChakra);
    check_round_trip({folder / "c.0.et"}, false);
  }
  SECTION("Nsight Systems, two processes") {
    make_nsys(folder / "n.sqlite", 5);
    test::Database(folder / "n.sqlite")
        .run(fmt::format("INSERT INTO NVTX_EVENTS VALUES (9, 12, 59, 'c', {})", 4 << 24 | 1));
    check_round_trip({folder / "n.sqlite"}, false);
  }
  SECTION("recorded at two moments") {
    write(folder / "late.json", kineto(5, 2, 1800000000000000));
    check_round_trip({folder}, false);
  }
}

TEST_CASE("recorded jobs are unchanged by a store") {
  const char* job = GENERATE("param-dlrm-8rank-v100/kineto", "param-dlrm-8rank-v100/et",
                             "chakra-et/chakra.0.et.gz", "triosim-h100");
  const auto path = test::shared_data(job);
  SKIP_WITHOUT_DATA(path);
  INFO(job);
  check_round_trip({*path}, std::string(job).ends_with("et") || std::string(job) == "triosim-h100");
}

TEST_CASE("an import counts the rows that it read") {
  const fs::path folder = test::scratch_folder();
  const std::vector<fs::path> files = {write(folder / "a.json", kineto(30, 0)),
                                       write(folder / "b.json", kineto(20, 1))};
  double last = 0;
  const auto progress = [&](double share) {
    CHECK(share >= last);
    CHECK(share <= 1);
    last = share;
    return true;
  };
  const Result<ImportSummary> summary =
      import_inputs(files, folder / "job.rehearse", {.progress = progress});
  REQUIRE(summary);
  CHECK(summary->ranks == 2);
  CHECK(summary->devices == 2);  // one device of each
  CHECK(summary->host_ops == 2 + 2 * 50);
  CHECK(summary->gpu_ops == 50);
  CHECK(summary->steps == 1);
  CHECK_FALSE(summary->in_memory);
  CHECK(last == 1);
}

TEST_CASE("a failed import keeps the old store") {
  const fs::path folder = test::scratch_folder();
  const fs::path good = write(folder / "a.json", kineto(3)), store = folder / "job.rehearse";
  REQUIRE(import_inputs(std::vector{good}, store, {}));
  const fs::path cut = write(folder / "cut.json", kineto(3).substr(0, 600));
  const Result<ImportSummary> strict = import_inputs(std::vector{cut}, store, {.strict = true});
  REQUIRE_FALSE(strict);
  CHECK(to_string(strict.error()).find("truncated (1; ") != std::string::npos);
  const auto stop = [](double) { return false; };
  CHECK_FALSE(import_inputs(std::vector{good}, store, {.progress = stop}));
  const Result<Trace> trace = read_inputs(std::vector{store}, {});
  REQUIRE(trace);
  CHECK(trace->ranks[0].gpu_ops.size() == 3);
  CHECK(std::distance(fs::directory_iterator(folder), {}) == 3);  // nothing half-written
}

}  // namespace
}  // namespace rehearse::ingest
