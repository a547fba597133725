// Programs as Chakra traces: what was recorded or planned reads back to the same time.
#include "profiler/ingest/chakra_writer.h"

#include <random>

#include <catch2/catch.hpp>

#include "profiler/ingest/chakra_job.h"
#include "profiler/ingest/input.h"
#include "sim/base/file.h"
#include "sim/program/lower.h"
#include "sim/program/rank_builder.h"
#include "strategies/step/run_program.h"
#include "tests/support/a100_nodes.h"
#include "tests/support/data.h"
#include "tests/support/replayed.h"
#include "tests/support/tiny_models.h"

namespace rehearse::ingest {
namespace {

ChakraWritten written(const program::Program& program, const std::filesystem::path& prefix) {
  const Result<ChakraWritten> written = write_chakra(program, prefix);
  INFO((written ? "" : to_string(written.error())));
  REQUIRE(written);
  return *written;
}

/// The traces of a program as a program; `timed` as in ChakraFiles.
program::Program read_back(const program::Program& program, bool timed) {
  const std::filesystem::path prefix = test::scratch_folder() / "job";
  written(program, prefix);
  ChakraFiles files{.prefix = prefix, .timed = timed};
  if (!program.groups.empty()) {
    Result<CommGroups> groups = load_comm_groups(chakra_groups(prefix));
    REQUIRE(groups);
    files.groups = std::move(*groups);
  }
  Result<ChakraJob> job = read_chakra_job(files);
  INFO((job ? "" : to_string(job.error())));
  REQUIRE(job);
  return std::move(job->job);
}

Picoseconds timed(const program::Program& program) {
  const Result<program::Lowered> lowered = program::lower(program);
  REQUIRE(lowered);
  const Result<graph::Timeline> timeline = engine::run(lowered->graph);
  REQUIRE(timeline);
  return timeline->makespan();
}

TEST_CASE("a recording, as it was or edited, takes as long from its Chakra traces") {
  for (const char* name : {"examples/recordings/three_steps.json", "examples/ranks",
                           "examples/recordings/slow_rank.csv"}) {
    const std::filesystem::path path = test::source_file(name);
    Result<trace::Trace> trace = read_inputs(std::span(&path, 1), {});
    REQUIRE(trace);
    test::Replayed replayed(std::move(*trace));
    INFO(name);
    CHECK(timed(read_back(replayed.program, true)) == replayed.timeline.makespan());
    replayed.scale("gpu:0.3");
    CHECK(timed(read_back(replayed.graph.program, true)) == replayed.timeline.makespan());
  }
}

TEST_CASE("40 random plans take as long from their Chakra traces, on the same cluster") {
  const cluster::Cluster cluster = test::a100_nodes(4);
  std::mt19937 random(79);
  const auto one_of = [&](std::initializer_list<std::uint32_t> list) {
    return *(list.begin() + random() % list.size());
  };
  int right = 0;
  for (int round = 0; right < 40; ++round) {
    REQUIRE(round < 400);
    strategies::Plan plan{.data = one_of({1, 2, 4}),
                          .tensor = one_of({1, 2, 4}),
                          .pipeline = one_of({1, 2, 4}),
                          .context = one_of({1, 1, 2}),
                          .expert = one_of({1, 1, 2}),
                          .zero = one_of({0, 0, 1, 2, 3})};
    if (plan.pipeline > 1 && random() % 2 == 0) {
      plan.interleave = 2;
      plan.schedule = strategies::Schedule::kInterleaved;
    }
    const step::Spec spec{.workload = test::tiny_gpt({.experts = plan.expert > 1 ? 8U : 0U}),
                          .training = {.global_batch = 32, .microbatch = 1},
                          .plan = plan,
                          .conditions = test::a100_conditions()};
    const Result<step::Step> step = step::predict(
        spec, cluster,
        {.fidelity = step::Fidelity::kClosed, .counterfactuals = false, .value_only = true});
    if (!step) continue;  // degrees that do not suit each other
    ++right;
    INFO("data " << plan.data << " tensor " << plan.tensor << " pipeline " << plan.pipeline
                 << " context " << plan.context << " expert " << plan.expert << " zero "
                 << plan.zero << " interleave " << plan.interleave);
    const auto again =
        step::run_program(read_back(step->job, false), cluster,
                          {.slowdown = 1 + spec.conditions.overlap_penalty, .calibrated = true},
                          {.fidelity = step::Fidelity::kClosed});
    INFO((again ? "" : to_string(again.error())));
    REQUIRE(again);
    CHECK(again->step().s() == Approx(step->time.value.s()).epsilon(1e-9));
  }
}

TEST_CASE("a Chakra trace has what other tools read: whole microseconds, numbered groups, sides") {
  program::Program job;
  program::RankBuilder rank;
  const auto compute = rank.add(program::ProgramOp{.name = job.names.intern("a"),
                                                   .task = program::Task::kCompute,
                                                   .duration = Picoseconds(2'600'000)});
  rank.add(program::ProgramOp{.name = job.names.intern("gather"),
                              .task = program::Task::kCollective,
                              .bytes = Bytes::b(2048),
                              .collective = CollectiveKind::kAllGather},
           {compute});
  rank.add(program::ProgramOp{.name = job.names.intern("to"),
                              .task = program::Task::kSend,
                              .bytes = Bytes::b(100),
                              .tag = 7});
  job.programs.push_back(std::move(rank).build());
  job.program_of = {0, 0};
  job.groups = {{"tensor", {RankId(0), RankId(1)}}};
  job.groups_of = {{0}, {0}};
  job.peers_of = {{RankId(1)}, {RankId(0)}};
  const std::filesystem::path prefix = test::scratch_folder() / "job";
  CHECK(written(job, prefix).ops == 6);
  CHECK(*read_file(chakra_groups(prefix)) == "{\"1\": [0, 1]}\n");
  // A recording reader that knows nothing of our own attributes.
  const std::filesystem::path file = prefix.string() + ".0.et";
  const Result<trace::Trace> trace = read_inputs(std::span(&file, 1), {});
  REQUIRE(trace);
  const trace::Rank& read = trace->ranks.front();
  REQUIRE(read.gpu_ops.size() == 3);
  CHECK(read.gpu_ops[0].duration == Nanoseconds(3000));
  REQUIRE(read.collectives.size() == 2);
  CHECK(read.collectives[0].kind == CollectiveKind::kAllGather);
  CHECK(read.collectives[0].bytes_in == 1024);  // what one of the two puts in
  CHECK(trace->names[*read.collectives[0].group] == "1");
  CHECK(read.collectives[1].kind == CollectiveKind::kSendRecv);
  CHECK(read.collectives[1].bytes_in == 100);
}

TEST_CASE("a program with input workers has no Chakra traces") {
  program::Program job;
  program::RankBuilder rank;
  rank.add(program::Stream{.name = job.names.intern("input workers"), .slots = 4});
  job.programs.push_back(std::move(rank).build());
  job.program_of = {0};
  const auto refused = write_chakra(job, test::scratch_folder() / "job");
  REQUIRE_FALSE(refused);
  CHECK(to_string(refused.error()) ==
        "Chakra traces have no form for 'input workers', which runs several ops at once; the same "
        "without input workers");
}

TEST_CASE("a rank that cannot be written leaves no files of the others") {
  program::Program job;
  for (int rank = 0; rank < 2; ++rank) job.programs.push_back(program::RankBuilder().build());
  job.program_of = {0, 1};
  const std::filesystem::path folder = test::scratch_folder();
  std::filesystem::create_directory(folder / "job.1.et");
  REQUIRE_FALSE(write_chakra(job, folder / "job"));
  CHECK_FALSE(std::filesystem::exists(folder / "job.0.et"));
}

}  // namespace
}  // namespace rehearse::ingest
