#include "strategies/data_parallel.h"

#include <catch2/catch.hpp>

#include "models/job/roofline.h"
#include "sim/engine/engine.h"
#include "sim/program/lower.h"
#include "sim/program/rank_builder.h"

namespace rehearse::strategies {
namespace {

using program::GradientStep;
using program::Task;

/// One thread: three ops of the backward pass of 10 us each, then the optimizer of 5 us.
program::Program backward_pass() {
  program::Program job;
  program::RankBuilder builder;
  const std::uint32_t thread = builder.add(program::Stream{.name = job.names.intern("thread")});
  const NameId name = job.names.intern("op");
  for (const int us : {10, 10, 10, 5})
    builder.add({.name = name,
                 .task = Task::kCompute,
                 .duration = Picoseconds::from(Seconds::us(us)),
                 .stream = thread});
  for (std::uint32_t i = 0; i < 3; ++i) builder.depend(i + 1, i);
  job.programs.push_back(std::move(builder).build());
  job.program_of = {0};
  job.groups_of = {{}};
  return job;
}

const std::vector<GradientStep> kSteps = {
    {.gradients = {{0, Bytes::mb(20)}, {1, Bytes::mb(20)}, {2, Bytes::mb(5)}}, .users = {3}}};

// Two ranks: an all-reduce of S takes 2 (a + S / 2b) = 2 us + S / 2 TB/s.
const cluster::PointToPoint kLink{Seconds::us(1), ByteRate::gb_per_s(2000)};

graph::Timeline run(const DataParallelPlan& plan, std::vector<double>& megabytes) {
  program::Program job = backward_pass();
  REQUIRE(data_parallel(job, kSteps, plan));
  for (const program::ProgramOp& op : job.programs[0].ops) {
    if (op.task != Task::kCollective || !op.sized) continue;
    CHECK(op.collective == CollectiveKind::kAllReduce);
    CHECK(job.groups[job.groups_of[0][op.group]].ranks() == plan.ranks);
    megabytes.push_back(op.bytes.b() * 1e-6);
  }
  const Result<std::size_t> priced = job::price(job, comm::on_link(kLink));
  REQUIRE(priced);
  CHECK(*priced == megabytes.size());
  const Result<program::Lowered> lowered = program::lower(job);
  REQUIRE(lowered);
  const Result<graph::Timeline> timeline = engine::run(lowered->graph);
  REQUIRE(timeline);
  return *timeline;
}

double end_us(const graph::Timeline& timeline, int op) {
  return timeline[OpId(op)].end.seconds().us();
}

TEST_CASE("an all-reduce waits for the slowest rank's gradient") {
  std::vector<double> megabytes;
  const graph::Timeline timeline =
      run({.ranks = 2, .lateness = {Seconds::us(3), Seconds::us(4), Seconds::us(7)}}, megabytes);
  // 40 MB in 22 us from 20 + 4, when the slower rank has both; 5 MB in 4.5 us, ready at 30 + 7.
  CHECK(end_us(timeline, 4) == Approx(46));
  CHECK(end_us(timeline, 6) == Approx(50.5));
  CHECK(end_us(timeline, 2) == Approx(30));
}

TEST_CASE("buckets are sent during the backward pass, one after another") {
  // 20 MB are no bucket of 25 MiB yet, 40 MB are; the last holds the rest.
  std::vector<double> megabytes;
  const graph::Timeline timeline = run({.ranks = 2}, megabytes);
  CHECK(megabytes == std::vector<double>{40, 5});
  CHECK(end_us(timeline, 2) == Approx(30));        // the backward pass waits for nothing
  CHECK(end_us(timeline, 4) == Approx(20 + 22));   // 40 MB from 20 us
  CHECK(end_us(timeline, 5) == Approx(42 + 4.5));  // 5 MB, when the first is through
  CHECK(end_us(timeline, 3) == Approx(46.5 + 5));  // the optimizer needs both
}

TEST_CASE("without overlap every gradient is summed before the next is computed") {
  std::vector<double> megabytes;
  const graph::Timeline timeline = run({.ranks = 2, .overlap = false}, megabytes);
  CHECK(megabytes == std::vector<double>{20, 20, 5});
  // 10 + 12, 10 + 12, 10 + 4.5, 5
  CHECK(end_us(timeline, 3) == Approx(63.5));
}

TEST_CASE("a bucket of no size sends each gradient by itself") {
  std::vector<double> megabytes;
  const graph::Timeline timeline = run({.ranks = 2, .bucket = Bytes::b(0)}, megabytes);
  CHECK(megabytes == std::vector<double>{20, 20, 5});
  // From 10: 12; from 22: 12; from 34: 4.5; then the optimizer.
  CHECK(end_us(timeline, 3) == Approx(43.5));
}

TEST_CASE("one rank computes the same as before") {
  std::vector<double> megabytes;
  const graph::Timeline timeline = run({.ranks = 1}, megabytes);
  CHECK(megabytes.empty());
  CHECK(timeline.ops.size() == 4);
  CHECK(end_us(timeline, 3) == Approx(35));
}

TEST_CASE("a step that is not data-parallel is refused") {
  const auto error_of = [](const std::vector<GradientStep>& steps, const DataParallelPlan& plan) {
    program::Program job = backward_pass();
    const Status planned = data_parallel(job, steps, plan);
    return planned ? "no error" : to_string(planned.error());
  };
  CHECK(error_of(kSteps, {.ranks = 0}) == "0 ranks; 1 or more");
  CHECK(error_of({}, {.ranks = 2}) == "the workload has no gradients to all-reduce");
  // A gradient that is used before it is ready.
  program::Program job = backward_pass();
  REQUIRE(data_parallel(job, {{.gradients = {{2, Bytes::mb(1)}}, .users = {0}}}, {.ranks = 2}));
  CHECK_FALSE(program::lower(job));
}

}  // namespace
}  // namespace rehearse::strategies
