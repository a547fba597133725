// What programs say through NVTX is what is in the capture. Each program is built twice where
// NVIDIA's headers are found: with them, and with our own declarations.
#include <numeric>
#include <set>

#include <catch2/catch.hpp>
#include <sys/wait.h>

#include "profiler/ingest/capture.h"
#include "profiler/trace/recorder.h"
#include "profiler/trace/trace.h"
#include "sim/base/file.h"
#include "tests/support/capture_run.h"
#include "tests/support/data.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using namespace trace;
using test::named;
using test::problems;

/// Runs one way of using NVTX and reads the one process it leaves.
Trace record(const std::string& build, std::vector<std::string> arguments) {
  const fs::path folder = test::scratch_folder();
  REQUIRE(test::run_target(build, std::move(arguments), folder) == 0);
  Trace trace = test::read_captures(folder);
  REQUIRE(trace.ranks.size() == 1);
  return trace;
}

HostOp only(const Trace& trace, std::string_view name) {
  const std::vector<HostOp> found = named(trace, trace.ranks[0], name);
  INFO(name);
  REQUIRE(found.size() == 1);
  return found[0];
}

bool inside(const HostOp& inner, const HostOp& outer) {
  return outer.start <= inner.start && inner.end() <= outer.end() && inner.thread == outer.thread;
}

TEST_CASE("nested ranges, marks and names of every sort") {
  for (const std::string& build : test::target_builds()) {
    INFO(build);
    const Trace trace = record(build, {"basics"});
    const Rank& rank = trace.ranks[0];
    const HostOp outer = only(trace, "outer");
    const HostOp wide = only(trace, "w\u00efde \u20ac \U0001F600");
    const HostOp inner = only(trace, "inner");
    CHECK(inside(wide, outer));
    CHECK(inside(inner, outer));
    CHECK(wide.end() <= inner.start);
    CHECK(inner.payload == UINT64_MAX);
    CHECK_FALSE(outer.payload);
    for (const char* name : {"mark a", "mark w"}) {
      const HostOp mark = only(trace, name);
      CHECK(mark.duration.count() == 0);
      CHECK(mark.kind == HostKind::kAnnotation);
      CHECK(inside(mark, wide));
    }
    CHECK(named(trace, rank, "(unnamed)").size() == 3);
    CHECK(named(trace, rank, "bad ?? bytes").size() == 1);
    CHECK(named(trace, rank, std::string(1024, 'x')).size() == 1);
    CHECK(rank.host_ops.size() == 10);
    CHECK(problems(trace, ProblemKind::kUnbalancedRange) == 1);  // the stray pop
    CHECK(problems(trace, ProblemKind::kInvalidText) == 1);
    CHECK(problems(trace, ProblemKind::kTruncated) == 0);
    const std::string_view thread = trace.names[rank.threads[outer.thread.index()].thread];
    CHECK(thread.ends_with(" the main one"));
    CHECK(rank.threads.size() == 1);
    CHECK(rank.info.clock_base.count() > 1'600'000'000'000'000'000);  // after 2020
    CHECK(outer.start.count() >= 0);
    CHECK(outer.start.count() < 10'000'000'000);
  }
}

TEST_CASE("payloads of every type") {
  for (const std::string& build : test::target_builds()) {
    INFO(build);
    const Trace trace = record(build, {"payloads"});
    CHECK(only(trace, "u64").payload == 1234567890123456789u);
    CHECK(only(trace, "i64").payload == 42u);
    CHECK_FALSE(only(trace, "negative i64").payload);
    CHECK(only(trace, "double").payload == 65536u);
    CHECK_FALSE(only(trace, "fraction").payload);
    CHECK(only(trace, "u32").payload == 4000000000u);
    CHECK(only(trace, "i32").payload == 7u);
    CHECK_FALSE(only(trace, "negative i32").payload);
    CHECK(only(trace, "float").payload == 3u);
    CHECK_FALSE(only(trace, "none").payload);
  }
}

TEST_CASE("domains, registered strings and ranges across threads") {
  for (const std::string& build : test::target_builds()) {
    INFO(build);
    const Trace trace = record(build, {"domains"});
    const Rank& rank = trace.ranks[0];
    const HostOp in_a = only(trace, "registered");
    const std::vector<HostOp> in_b = named(trace, rank, "registered w\u00efde");
    REQUIRE(in_b.size() == 2);
    const HostOp other = only(trace, "default domain");
    // Each domain pops its own: in the order a, b, default.
    CHECK(in_a.start <= in_b[0].start);
    CHECK(in_b[0].start <= other.start);
    CHECK(in_a.end() <= in_b[0].end());
    CHECK(in_b[0].end() <= other.end());
    // On the thread that started them.
    CHECK(only(trace, "started here").thread == other.thread);
    CHECK(only(trace, "started in a").thread == other.thread);
    CHECK(only(trace, "started here").duration.count() > 0);
    CHECK(named(trace, rank, "(unnamed)").size() == 1);  // by a handle that is none
    CHECK(problems(trace, ProblemKind::kUnbalancedRange) == 2);
    CHECK(test::first_problem(trace, ProblemKind::kUnbalancedRange).find("'never ended'") !=
          std::string::npos);
  }
}

TEST_CASE("payloads of communication calls become collectives") {
  for (const std::string& build : test::target_builds()) {
    INFO(build);
    const Trace trace = record(build, {"communication"});
    const Rank& rank = trace.ranks[0];
    const auto collective = [&](const HostOp& op) {
      REQUIRE(op.collective);
      return rank.collectives[op.collective->index()];
    };
    const std::vector<HostOp> reduces = named(trace, rank, "ncclAllReduce");
    REQUIRE(reduces.size() == 3);
    const Collective reduce = collective(reduces[0]);
    CHECK(reduce.kind == CollectiveKind::kAllReduce);
    CHECK(reduce.bytes_in == 4096u);
    CHECK(reduce.group_size == 8u);
    CHECK(trace.names[*reduce.group] == "0xabcdef0123456789");
    CHECK(reduces[0].payload == 4096u);
    CHECK_FALSE(collective(reduces[1]).group_size);
    CHECK(trace.names[*collective(reduces[1]).group] == "0x0000000000001111");
    CHECK_FALSE(reduces[2].collective);
    CHECK_FALSE(only(trace, "ncclBroadcast").collective);
    const Collective scatter = collective(only(trace, "ncclReduceScatter"));
    CHECK(scatter.bytes_in == 4096u);
    CHECK(scatter.bytes_out == 512u);
    CHECK(collective(only(trace, "ncclAllGather")).bytes_in == 1024u);
    CHECK(collective(only(trace, "ncclSend")).bytes_in == 77u);
    CHECK(collective(only(trace, "ncclRecv")).bytes_out == 78u);
    CHECK_FALSE(only(trace, "ncclCommInitRank").collective);
    CHECK(named(trace, rank, "named by its payload").size() == 1);
    CHECK(problems(trace, ProblemKind::kUnbalancedRange) == 0);
  }
}

TEST_CASE("the real NCCL reports its calls and bytes") {
  const fs::path library = REHEARSE_NCCL;
  if (!fs::exists(library)) {
    WARN("skipped: no libnccl was found when this was built");
    return;
  }
  const fs::path folder = test::scratch_folder();
  test::Running client({test::capture_program("capture_nccl_client"), library},
                       test::recording_to(folder), folder);
  const int status = client.wait();
  INFO(client.errors());
  REQUIRE(status == 0);
  const Trace trace = test::read_captures(folder);
  REQUIRE(trace.ranks.size() == 1);
  const Rank& rank = trace.ranks[0];
  const std::string called = *read_file(folder / "stdout.txt");
  struct Expected {
    const char* name;
    std::optional<CollectiveKind> kind;
    bool gives;  // the bytes are of what a rank gets
  };
  for (const Expected& expected :
       {Expected{"ncclAllReduce", CollectiveKind::kAllReduce, false},
        Expected{"ncclAllGather", CollectiveKind::kAllGather, false},
        Expected{"ncclReduceScatter", CollectiveKind::kReduceScatter, true},
        Expected{"ncclBroadcast", CollectiveKind::kBroadcast, false},
        Expected{"ncclReduce", CollectiveKind::kReduce, false},
        Expected{"ncclSend", CollectiveKind::kSendRecv, false},
        Expected{"ncclRecv", CollectiveKind::kSendRecv, true}}) {
    INFO(expected.name);
    const HostOp op = only(trace, expected.name);
    CHECK(op.payload == 2000u);  // 1000 bfloat16
    REQUIRE(op.collective);
    const Collective& collective = rank.collectives[op.collective->index()];
    CHECK(collective.kind == expected.kind);
    CHECK((expected.gives ? collective.bytes_out : collective.bytes_in) == 2000u);
    CHECK_FALSE(collective.group);  // there was no communicator
  }
  for (const char* newer : {"ncclAlltoAll", "ncclGather", "ncclScatter"}) {
    if (called.find(newer) == std::string::npos) continue;
    INFO(newer);
    CHECK(only(trace, newer).payload == 2000u);
  }
}

TEST_CASE("the header for programs without NVIDIA's records steps and numbers") {
  const fs::path folder = test::scratch_folder();
  const std::string program = test::capture_program("capture_range_client");
  CHECK(test::Running({program}, {}, folder).wait() == 0);  // nothing attached
  CHECK(test::Running({program}, {{"NVTX_INJECTION64_PATH", "/absent.so"}}, folder).wait() == 0);
  CHECK(test::Running({program}, test::recording_to(folder), folder).wait() == 0);
  const Trace trace = test::read_captures(folder);
  REQUIRE(trace.ranks.size() == 1);
  const std::vector<HostOp> steps = named(trace, trace.ranks[0], "step");
  const std::vector<HostOp> losses = named(trace, trace.ranks[0], "loss");
  REQUIRE(steps.size() == 3);
  REQUIRE(losses.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(steps[i].payload == i);
    CHECK(losses[i].payload == 100 - i);
    CHECK(inside(losses[i], steps[i]));
  }
  CHECK(named(trace, trace.ranks[0], "forward").size() == 3);
  CHECK(named(trace, trace.ranks[0], "end").size() == 1);
  CHECK(problems(trace, ProblemKind::kMissingSteps) == 0);
}

TEST_CASE("ranges of several threads stay on their threads") {
  const Trace trace = record("capture_target", {"threads", "4", "100"});
  const Rank& rank = trace.ranks[0];
  std::set<ThreadId> threads;
  for (int t = 0; t < 4; ++t) {
    const std::vector<HostOp> own = named(trace, rank, "thread " + std::to_string(t));
    REQUIRE(own.size() == 100);
    for (const HostOp& op : own) REQUIRE(op.thread == own[0].thread);
    threads.insert(own[0].thread);
  }
  CHECK(threads.size() == 4);
  CHECK(named(trace, rank, "inside").size() == 400);
}

/// Rows too many to keep.
struct CountedRows final : RowSink {
  void add(const HostOp&) override { ++n; }
  void add(const GpuOp&) override {}
  void add(const Sync&) override {}
  void add(const Dependency&) override {}
  void add(const PowerReading&) override {}
  std::uint64_t n = 0;
};

TEST_CASE("every range of very many is recorded or counted as lost") {
  const fs::path folder = test::scratch_folder();
  // 64 threads, 50 000 times a range in a range, as fast as they can.
  REQUIRE(test::run_target("capture_target", {"threads", "64", "50000"}, folder) == 0);
  Trace trace;
  Rank& rank = trace.ranks.emplace_back();
  CountedRows rows;
  Recorder recorder(trace.names, trace.problems, rank, rows);
  const auto one = [&](const std::string&) -> Recorder& { return recorder; };
  REQUIRE(ingest::read_capture_folder(folder, one, {}));
  const std::uint64_t lost = problems(trace, ProblemKind::kDroppedRecords);
  CHECK(rows.n + lost == 6'400'000);
  CHECK(rows.n > 1'000'000);
  CHECK(rank.threads.size() <= 64);  // one that lost all its ranges is not there
  CHECK(problems(trace, ProblemKind::kTruncated) == 0);
  CHECK(problems(trace, ProblemKind::kMalformed) == 0);
}

TEST_CASE("threads that come and go reuse memory") {
  const Trace trace = record("capture_target", {"short_threads", "3000"});
  CHECK(named(trace, trace.ranks[0], "short").size() == 3000);
  CHECK(trace.ranks[0].threads.size() == 3000);
  CHECK(problems(trace, ProblemKind::kUnbalancedRange) == 3000);
  CHECK(problems(trace, ProblemKind::kDroppedRecords) == 0);
}

TEST_CASE("records of threads that end during the last flush are written") {
  for (int run = 0; run < 20; ++run) {
    const Trace trace = record("capture_target", {"ending_threads", "16"});
    REQUIRE(named(trace, trace.ranks[0], "short").size() == 16);
  }
}

TEST_CASE("distinct names beyond the kept ones are recorded") {
  constexpr int kNames = 50000;
  const Trace trace = record("capture_target", {"many_texts", std::to_string(kNames)});
  std::set<std::string_view> names;
  for (const HostOp& op : trace.ranks[0].host_ops) names.insert(trace.names[op.name]);
  CHECK(names.size() == kNames);
  CHECK(names.contains("op 0"));
  CHECK(names.contains("op 49999"));
  CHECK(problems(trace, ProblemKind::kMissingField) == 0);
}

TEST_CASE("ranges nested too deep are counted as lost") {
  const Trace trace = record("capture_target", {"deep", "3000"});
  CHECK(named(trace, trace.ranks[0], "deep").size() == 1024);
  CHECK(named(trace, trace.ranks[0], "after").size() == 1);
  CHECK(problems(trace, ProblemKind::kDroppedRecords) == 3000 - 1024);
  CHECK(problems(trace, ProblemKind::kUnbalancedRange) == 0);
}

TEST_CASE("calls before main and after it are recorded") {
  const fs::path folder = test::scratch_folder();
  auto variables = test::recording_to(folder);
  variables["TARGET_STATIC"] = "1";
  test::Running running({test::capture_program("capture_target"), "ranges", "1"}, variables,
                        folder);
  REQUIRE(running.wait() == 0);
  const Trace trace = test::read_captures(folder);
  CHECK(named(trace, trace.ranks[0], "before main").size() == 2);
  CHECK(named(trace, trace.ranks[0], "after main").size() == 3);
  CHECK(problems(trace, ProblemKind::kTruncated) == 0);
}

TEST_CASE("a signal handler may record at any point of its thread") {
  const fs::path folder = test::scratch_folder();
  REQUIRE(test::run_target("capture_target", {"in_handler"}, folder) == 0);
  const Trace trace = test::read_captures(folder);
  long ranges = 0, handled = 0;
  REQUIRE(std::sscanf(read_file(folder / "stdout.txt")->c_str(), "%ld %ld", &ranges, &handled) ==
          2);
  const auto marks = static_cast<long>(named(trace, trace.ranks[0], "in handler").size());
  const auto lost = static_cast<long>(problems(trace, ProblemKind::kDroppedRecords));
  CHECK(static_cast<long>(named(trace, trace.ranks[0], "range").size()) == ranges);
  CHECK(marks + lost == handled);
  CHECK(marks > 0);
  CHECK(problems(trace, ProblemKind::kUnbalancedRange) == 0);
}

TEST_CASE("errno is unchanged") {
  CHECK(test::run_target("capture_target", {"errno_kept"}, test::scratch_folder()) == 0);
}

TEST_CASE("a process knows its place in the job") {
  struct Launcher {
    std::map<std::string, std::string> variables;
    std::optional<std::uint32_t> rank;
    std::optional<std::uint32_t> world_size;
  };
  const Launcher launchers[] = {
      {{{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"SLURM_PROCID", "0"}}, 5u, 8u},
      {{{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, 3u, 4u},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, 1u, 2u},
      {{{"SLURM_PROCID", "6"}, {"SLURM_NTASKS", "7"}}, 6u, 7u},
      {{{"RANK", "none"}}, std::nullopt, std::nullopt},
  };
  for (const Launcher& launcher : launchers) {
    const fs::path folder = test::scratch_folder();
    auto variables = test::recording_to(folder);
    variables.insert(launcher.variables.begin(), launcher.variables.end());
    test::Running running({test::capture_program("capture_target"), "ranges", "1"}, variables,
                          folder);
    REQUIRE(running.wait() == 0);
    const Trace trace = test::read_captures(folder);
    REQUIRE(trace.ranks.size() == 1);
    CHECK(trace.ranks[0].info.rank == launcher.rank);
    CHECK(trace.ranks[0].info.world_size == launcher.world_size);
    CHECK_FALSE(trace.ranks[0].info.host.empty());
  }
}

}  // namespace
}  // namespace rehearse
