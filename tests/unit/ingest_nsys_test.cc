#include <fstream>
#include <utility>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "profiler/ingest/nsys.h"
#include "tests/support/data.h"
#include "tests/support/database.h"
#include "tests/support/ranks.h"

namespace rehearse::ingest {
namespace {

using namespace trace;
using test::Database;
using test::Ranks;

namespace fs = std::filesystem;

fs::path new_file() { return test::scratch_folder() / "report.sqlite"; }

std::string error_of(const fs::path& file) {
  Ranks ranks;
  const Status status =
      read_nsys(file, [&](std::string s) -> Recorder& { return ranks.next(std::move(s)); }, {});
  return status ? "no error" : to_string(status.error());
}

Ranks read(const fs::path& file) {
  Ranks ranks;
  const Status status =
      read_nsys(file, [&](std::string s) -> Recorder& { return ranks.next(std::move(s)); }, {});
  INFO((status ? "" : to_string(status.error())));
  REQUIRE(status);
  return ranks;
}

/// Global ids hold the process in bits 24 to 47 and the thread below; what is above is the machine.
std::int64_t process(std::int64_t pid) { return (std::int64_t{1} << 48) | pid << 24; }
std::int64_t thread(std::int64_t pid, std::int64_t tid) { return process(pid) | tid; }

constexpr const char* kStrings = R"sql(
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'cuMemcpyHtoDAsync_v2'),
  (3, 'void gemm<float>(float*)'), (4, 'gemm'), (5, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL'),
  (6, 'cudaStreamSynchronize_v3020'), (7, 'ncclAllReduce'), (8, 'flush'), (9, 'cudaEventRecord_v3020');
)sql";

constexpr const char* kTables = R"sql(
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER, shortName INTEGER, registersPerThread INTEGER, gridX INTEGER,
  gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER,
  staticSharedMemory INTEGER, dynamicSharedMemory INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER,
  contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER,
  copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INTEGER, end INTEGER, deviceId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER,
  memKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, eventClass INTEGER,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INTEGER, end INTEGER, deviceId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER,
  eventSyncId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT(deviceId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, eventId INTEGER, eventSyncId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INTEGER, end INTEGER, deviceId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER);
CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,
  text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER,
  uint64Value INTEGER, int64Value INTEGER, uint32Value INTEGER, int32Value INTEGER);
CREATE TABLE PROFILER_OVERHEAD(start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);
CREATE TABLE OSRT_API(start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);
CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER,
  computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER);
CREATE TABLE TARGET_INFO_SYSTEM_ENV(name TEXT, value TEXT);
CREATE TABLE MPI_RANKS(globalTid INTEGER, rank INTEGER);
)sql";

TEST_CASE("every documented table of an export becomes rows") {
  const fs::path file = new_file();
  {
    Database db(file);
    db.run(kStrings);
    db.run(kTables);
    const auto pid = process(70), main = thread(70, 71);
    db.run(
        fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000, 1400, 0, {0}, 11, 1, 0),"
                    "(2000, 2100, 1, {0}, 12, 2, 0), (3000, 9000, 0, {0}, 13, 6, 0),"
                    "(9000, 9100, 0, {0}, 14, 1, 1), (9200, 9300, 0, {0}, 15, 9, 0)",
                    main));
    db.run(
        fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
                    "(1500, 4500, 1, 1, 7, 11, {0}, 3, 4, 32, 64, 2, 1, 256, 1, 1, 1024, 512),"
                    "(4600, 8000, 1, 1, 20, 12, {0}, 5, 5, 16, 1, 1, 1, 64, 1, 1, 0, 0)",
                    pid));
    db.run(
        fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES "
                    "(8100, 8200, 1, 1, 7, 12, {0}, 4096, 1, 0, 2),"
                    "(8300, 8400, 1, 1, 7, 12, {0}, 64, 2, 2, 1),"
                    "(8500, 8600, 1, 1, 7, 0, {0}, 65536, 11, 4, 2)",
                    pid));
    db.run(
        fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES "
                    "(8700, 8710, 1, 7, 0, {}, 0, 128, 2)",
                    pid));
    db.run(
        fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES "
                    "(8800, 8900, 1, 7, 11, {}, 109)",
                    pid));
    db.run(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (1, 20, 15, {}, 5, 500)",
                       pid));
    db.run(
        fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES "
                    "(3000, 9000, 1, 7, 13, {0}, 3, 0, 0),"
                    "(9300, 9310, 1, 7, 16, {0}, 2, 5, 500),"
                    "(9400, 9500, 1, 4294967295, 17, {0}, 4, 0, 0)",
                    pid));
    db.run(
        fmt::format("INSERT INTO NVTX_EVENTS VALUES "
                    "(0, NULL, 75, 'NCCL', {0}, NULL, NULL, 3, NULL, NULL, NULL, NULL),"
                    "(900, 9600, 59, 'step 4', {0}, NULL, NULL, 0, 4096, NULL, NULL, NULL),"
                    "(950, 990, 59, NULL, {0}, NULL, 7, 3, NULL, NULL, NULL, NULL),"
                    "(990, 999, 60, 'broadcast weights', {0}, {0}, NULL, 0, NULL, NULL, 7, NULL),"
                    "(990, NULL, 34, 'mark', {0}, NULL, NULL, 0, NULL, NULL, NULL, NULL)",
                    main));
    db.run(fmt::format("INSERT INTO PROFILER_OVERHEAD VALUES (5, 6, {}, 8)", main));
    db.run(fmt::format("INSERT INTO OSRT_API VALUES (5, 6, {0}, 8), (7, 8, {0}, 8)", main));
    db.run("INSERT INTO TARGET_INFO_GPU VALUES (1, 'NVIDIA H100', 85899345920, 132, 9, 0)");
    db.run("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000)");
    db.run("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('CpuCores', '96'), ('Hostname', 'box7')");
    db.run(fmt::format("INSERT INTO MPI_RANKS VALUES ({}, 5)", main));
  }
  CHECK(is_nsys(file));
  const Ranks ranks = read(file);
  REQUIRE(ranks.size() == 1);
  const Rank& rank = ranks[0];
  CHECK(rank.info.source == file.string());
  CHECK(rank.info.format == "nsys");
  CHECK(rank.info.rank == 5u);
  CHECK(rank.info.host == "box7");
  CHECK(rank.info.clock_base == Nanoseconds(1700000000000000000));
  CHECK(rank.info.timed);

  REQUIRE(rank.threads.size() == 1);
  CHECK(ranks.name(rank.threads[0].process) == "70");
  CHECK(ranks.name(rank.threads[0].thread) == "71");

  REQUIRE(rank.devices.size() == 1);
  CHECK(rank.devices[0].ordinal == 1);
  CHECK(rank.devices[0].name == "NVIDIA H100");
  CHECK(rank.devices[0].memory->gib() == 80);
  CHECK(rank.devices[0].multiprocessors == 132u);
  CHECK(rank.devices[0].compute_major == 9u);

  REQUIRE(rank.host_ops.size() == 9);
  const HostOp& launch = rank.host_ops[0];
  CHECK(ranks.name(launch.name) == "cudaLaunchKernel");
  CHECK(launch.kind == HostKind::kRuntime);
  CHECK(launch.start == Nanoseconds(1000));
  CHECK(launch.duration == Nanoseconds(400));
  CHECK(launch.correlation == 11u);
  CHECK(ranks.name(rank.host_ops[1].name) == "cuMemcpyHtoDAsync_v2");
  CHECK(rank.host_ops[1].kind == HostKind::kDriver);
  const HostOp& step = rank.host_ops[5];
  CHECK(ranks.name(step.name) == "step 4");
  CHECK(step.kind == HostKind::kAnnotation);
  CHECK(step.payload == 4096u);
  CHECK_FALSE(step.collective);
  const HostOp& range = rank.host_ops[6];
  CHECK(ranks.name(range.name) == "ncclAllReduce");
  REQUIRE(range.collective);
  CHECK(rank.collectives[range.collective->index()].kind == CollectiveKind::kAllReduce);
  // The user's own range has the name of a collective, and is none.
  CHECK(ranks.name(rank.host_ops[7].name) == "broadcast weights");
  CHECK_FALSE(rank.host_ops[7].collective);
  CHECK(rank.host_ops[7].payload == 7u);
  CHECK(rank.host_ops[8].kind == HostKind::kOverhead);
  CHECK(ranks.name(rank.host_ops[8].name) == "flush");

  REQUIRE(rank.gpu_ops.size() == 6);
  const GpuOp& gemm = rank.gpu_ops[0];
  CHECK(ranks.name(gemm.name) == "void gemm<float>(float*)");
  CHECK(gemm.kind == GpuKind::kKernel);
  CHECK(gemm.device == 1);
  CHECK(gemm.stream == 7);
  CHECK(gemm.duration == Nanoseconds(3000));
  CHECK(gemm.correlation == 11u);
  REQUIRE(gemm.launch_shape);
  const LaunchShape& shape = rank.launch_shapes[gemm.launch_shape->index()];
  CHECK(shape == LaunchShape{{64, 2, 1}, {256, 1, 1}, 32, 1536});
  REQUIRE(rank.gpu_ops[1].collective);
  CHECK(rank.collectives[rank.gpu_ops[1].collective->index()].kind == CollectiveKind::kAllReduce);
  const GpuOp& upload = rank.gpu_ops[2];
  CHECK(ranks.name(upload.name) == "Memcpy HtoD (Pageable -> Device)");
  CHECK(upload.direction == CopyDirection::kHostToDevice);
  CHECK(upload.host_memory == HostMemory::kPageable);
  CHECK(upload.bytes == 4096u);
  const GpuOp& download = rank.gpu_ops[3];
  CHECK(download.direction == CopyDirection::kDeviceToHost);
  CHECK(download.host_memory == HostMemory::kPinned);
  const GpuOp& set = rank.gpu_ops[4];
  CHECK(set.kind == GpuKind::kSet);
  CHECK(set.bytes == 128u);
  CHECK_FALSE(set.correlation);
  CHECK(ranks.name(rank.gpu_ops[5].name) == "CUDA graph 109");

  REQUIRE(rank.syncs.size() == 3);
  CHECK(rank.syncs[0].kind == SyncKind::kStream);
  CHECK(rank.syncs[0].stream == 7u);
  CHECK(rank.syncs[1].kind == SyncKind::kStreamWaitEvent);
  CHECK(rank.syncs[1].stream == 7u);
  CHECK(rank.syncs[1].source_stream == 20u);
  CHECK(rank.syncs[1].event_correlation == 15u);
  CHECK(rank.syncs[2].kind == SyncKind::kDevice);
  CHECK_FALSE(rank.syncs[2].stream);

  // Two calls of the operating system, a mark, and a migration of unified memory.
  CHECK(ranks.count(ProblemKind::kIgnoredCategory) == 4);
  CHECK(ranks.first(ProblemKind::kIgnoredCategory) == file.string() + ": OSRT_API");
  // The failed launch of correlation 14 promised no device work.
  CHECK(ranks.count(ProblemKind::kUnfinished) == 0);
  CHECK(ranks.problems.worst() == Severity::kInfo);
}

TEST_CASE("each process of an export is a rank, with its own devices") {
  const fs::path file = new_file();
  {
    Database db(file);
    db.run(kStrings);
    db.run(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER,"
        "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, shortName INTEGER);"
        "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT,"
        "globalTid INTEGER);"
        "CREATE TABLE PROCESSES(globalPid INTEGER, pid INTEGER, name TEXT);"
        "CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT);"
        "CREATE TABLE TARGET_INFO_CUDA_DEVICE(gpuId INTEGER, cudaId INTEGER, pid INTEGER)");
    db.run(
        fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 7, 1, {0}, 4),"
                    "(11, 21, 0, 7, 1, {1}, 4), (30, 40, 0, 7, 2, {0}, 4),"
                    "(50, 60, 0, 7, 3, 0, 4), (50, 60, 0, 7, 3, NULL, 4)",
                    process(300), process(200)));
    db.run(fmt::format("INSERT INTO NVTX_EVENTS VALUES (5, 6, 59, 'a', {}), (5, 6, 59, 'b', {})",
                       thread(200, 201), thread(300, 301)));
    db.run(
        fmt::format("INSERT INTO PROCESSES VALUES ({}, 200, 'worker rank1'), ({}, 300, 'python')",
                    process(200), process(300)));
    db.run("INSERT INTO TARGET_INFO_GPU VALUES (4, 'first'), (5, 'second')");
    db.run("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (4, 0, 200), (5, 0, 300)");
  }
  const Ranks ranks = read(file);
  REQUIRE(ranks.size() == 2);
  CHECK(ranks[0].info.source == file.string() + " (process 200)");
  CHECK(ranks[0].info.rank == 1u);
  CHECK_FALSE(ranks[1].info.rank);
  CHECK(ranks[0].gpu_ops.size() == 1);
  CHECK(ranks[1].gpu_ops.size() == 2);
  CHECK(ranks.name(ranks[0].host_ops.at(0).name) == "a");
  CHECK(ranks.name(ranks[1].host_ops.at(0).name) == "b");
  REQUIRE(ranks[0].devices.size() == 1);
  CHECK(ranks[0].devices[0].name == "first");
  CHECK(ranks[0].devices[0].ordinal == 0);
  CHECK(ranks[1].devices.at(0).name == "second");
  // The owner of the last two kernels is unknown.
  CHECK(ranks.count(ProblemKind::kMissingField) == 2);
}

TEST_CASE("an export that does not name its process is one rank") {
  const fs::path file = new_file();
  {
    Database db(file);
    db.run(kStrings);
    db.run(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER,"
        "streamId INTEGER, shortName INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 7, 4), (20, 30, 0, 7, 4);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER,"
        "correlationId INTEGER, nameId INTEGER)");
  }
  SECTION("when no other table does") {
    const Ranks ranks = read(file);
    REQUIRE(ranks.size() == 1);
    CHECK(ranks[0].gpu_ops.size() == 2);
    CHECK(ranks.name(ranks[0].gpu_ops[0].name) == "gemm");
  }
  SECTION("and when another table names one") {
    Database(file).run(fmt::format(
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, {}, 3, 1)", thread(9, 9)));
    const Ranks ranks = read(file);
    REQUIRE(ranks.size() == 1);
    CHECK(ranks[0].gpu_ops.size() == 2);
    CHECK(ranks[0].host_ops.size() == 1);
  }
  SECTION("but not when it names two") {
    Database(file).run(fmt::format(
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, {}, 3, 1), (1, 2, {}, 3, 1)",
        thread(9, 9), thread(8, 8)));
    const Ranks ranks = read(file);
    REQUIRE(ranks.size() == 2);
    CHECK(ranks[0].gpu_ops.size() + ranks[1].gpu_ops.size() == 0);
    CHECK(ranks.count(ProblemKind::kMissingField) == 2);
  }
}

TEST_CASE("garbage in an export is counted and dropped") {
  const fs::path file = new_file();
  {
    Database db(file);
    db.run(kStrings);
    db.run(kTables);
    const auto pid = process(70), main = thread(70, 71);
    db.run(fmt::format(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
        "(10, 20, 0, 1, 7, 1, {0}, 3, 4, 1, 1, 1, 1, 1, 1, 1, 0, 0),"      // sound
        "('soon', 20, 0, 1, 7, 1, {0}, 3, 4, 1, 1, 1, 1, 1, 1, 1, 0, 0),"  // no time
        "(0, 0, 0, 1, 7, 1, {0}, 3, 4, 1, 1, 1, 1, 1, 1, 1, 0, 0),"        // a lost time
        "(30, 20, 0, 1, 7, 1, {0}, 3, 4, 1, 1, 1, 1, 1, 1, 1, 0, 0),"      // ends before it starts
        "(-9223372036854775808, 9223372036854775807, 0, 1, 7, 1, {0}, 3, 4, 1, 1, 1, 1, 1, 1, 1, "
        "0, 0),"
        "(40, 50, 99999, 1, 7, 1, {0}, 3, 4, 1, 1, 1, 1, 1, 1, 1, 0, 0),"  // no such device
        "(40, 50, 0, 1, 7, 1, {0}, 999, 998, 1, 1, 1, 1, 1, 1, 1, 0, 0),"  // no such name
        "(40, 50, 0, 1, 7, 1, 'me', 3, 4, 1, 1, 1, 1, 1, 1, 1, 0, 0),"     // no process
        "(60, 70, 0, 1, 7, -5, {0}, 3, 4, 1, -1, 1, 1, 1, 1, 1, 0, 0)",    // no shape, no id
        pid));
    db.run(
        fmt::format("INSERT INTO NVTX_EVENTS(start, end, eventType, text, globalTid) VALUES "
                    "(1, NULL, 59, 'left open', {0}), (1, 2, 59, NULL, {0}),"
                    "(1, 2, 59, 'x' || CAST(x'ff' AS TEXT), {0})",
                    main));
    db.run(
        fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES "
                    "(1, 2, 0, 7, 1, {0}, 77, 0, 0)",
                    pid));
  }
  const Ranks ranks = read(file);
  REQUIRE(ranks.size() == 1);
  REQUIRE(ranks[0].gpu_ops.size() == 2);
  CHECK_FALSE(ranks[0].gpu_ops[1].launch_shape);
  CHECK_FALSE(ranks[0].gpu_ops[1].correlation);
  REQUIRE(ranks[0].host_ops.size() == 1);
  CHECK(ranks.name(ranks[0].host_ops[0].name) == "x?");
  CHECK(ranks[0].syncs.empty());
  CHECK(ranks.count(ProblemKind::kMissingField) == 6);
  CHECK(ranks.count(ProblemKind::kNegativeDuration) == 1);
  CHECK(ranks.first(ProblemKind::kNegativeDuration) ==
        file.string() + ": CUPTI_ACTIVITY_KIND_KERNEL row 4");
  CHECK(ranks.count(ProblemKind::kAbsurdNumber) == 1);
  CHECK(ranks.count(ProblemKind::kUnbalancedRange) == 1);
  CHECK(ranks.count(ProblemKind::kInvalidText) == 1);
  CHECK(ranks.count(ProblemKind::kUnknownCategory) == 1);
}

TEST_CASE("a view with the name of a table is not run") {
  const fs::path file = new_file();
  {
    Database db(file);
    db.run(
        "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT,"
        "globalTid INTEGER); INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, 'a', 1)");
    db.run(
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL "
        "SELECT start + 1 FROM n) SELECT start FROM n");
  }
  CHECK(read(file)[0].host_ops.size() == 1);  // and it ends
}

TEST_CASE("a damaged export gives its readable part, or one line") {
  const fs::path file = new_file();
  {
    Database db(file);
    db.run("PRAGMA page_size = 4096");
    db.run(kStrings);
    db.run(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER,"
        "streamId INTEGER, globalPid INTEGER, shortName INTEGER)");
    db.run(
        fmt::format("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
                    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i * 10, i * 10 + 5, 0, 7, {}, 4 "
                    "FROM n",
                    process(70)));
  }
  const auto size = fs::file_size(file);
  {
    std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(static_cast<std::streamoff>(size / 2 / 4096 * 4096));
    for (int i = 0; i < 4096; ++i) damaged.put('\x7f');
  }
  const Ranks ranks = read(file);
  REQUIRE(ranks.size() == 1);
  CHECK(ranks[0].gpu_ops.size() > 100);
  CHECK(ranks[0].gpu_ops.size() < 5000);
  CHECK(ranks.count(ProblemKind::kMalformed) == 1);
  CHECK(ranks.problems.worst() == Severity::kError);

  fs::resize_file(file, 100);
  CHECK(error_of(file).starts_with(file.string() + ": "));
}

TEST_CASE("a file that is not an export of CUDA or NVTX activity is refused in one line") {
  const fs::path file = new_file();
  SECTION("another database") {
    Database(file).run("CREATE TABLE wares(id INTEGER)");
    CHECK_FALSE(is_nsys(file));
    CHECK(
        error_of(file).ends_with("contains no table of an Nsight Systems export; tables such as "
                                 "CUPTI_ACTIVITY_KIND_KERNEL or "
                                 "NVTX_EVENTS"));
  }
  SECTION("an export of operating system calls only") {
    Database(file).run(
        "CREATE TABLE OSRT_API(start INTEGER, globalTid INTEGER);"
        "INSERT INTO OSRT_API VALUES (1, 1)");
    CHECK(is_nsys(file));
    CHECK(error_of(file).ends_with(
        "contains no CUDA and no NVTX activity; a recording made with --trace=cuda,nvtx"));
  }
  SECTION("an export of rows that say nothing") {
    Database(file).run(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1)");
    CHECK(error_of(file).find("no readable") != std::string::npos);
  }
  SECTION("no database") {
    std::ofstream(file) << "{}";
    CHECK_FALSE(is_nsys(file));
    CHECK(error_of(file).find("not a database") != std::string::npos);
  }
  SECTION("no file") {
    CHECK_FALSE(is_nsys(file));
    CHECK(error_of(file).find("cannot be opened") != std::string::npos);
  }
}

TEST_CASE("reading an export can be stopped") {
  const fs::path file = new_file();
  {
    Database db(file);
    db.run(kStrings);
    db.run(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER,"
        "streamId INTEGER, globalPid INTEGER, shortName INTEGER)");
    db.run(
        fmt::format("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)"
                    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i, i + 1, 0, 7, {}, 4 FROM n",
                    process(70)));
  }
  Ranks ranks;
  double last = 0;
  const auto stop_at_second = [&, calls = 0](double share) mutable {
    CHECK(share > last);
    last = share;
    return ++calls < 2;
  };
  const Status status = read_nsys(
      file, [&](std::string s) -> Recorder& { return ranks.next(std::move(s)); }, stop_at_second);
  REQUIRE_FALSE(status);
  CHECK(to_string(status.error()) == file.string() + ": stopped");
  CHECK(last == Approx(8192.0 / 9000));
}

}  // namespace
}  // namespace rehearse::ingest
