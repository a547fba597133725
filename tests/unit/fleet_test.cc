// Worked examples of many jobs on a few GPUs; docs/concepts/many-jobs.md tells them.
#include "sim/fleet/fleet.h"

#include <algorithm>
#include <limits>

#include <catch2/catch.hpp>

#include "tests/support/naive_fleet.h"

namespace rehearse {
namespace {

using namespace fleet;

Nanoseconds seconds(std::int64_t s) { return Nanoseconds(s * 1'000'000'000); }
std::int64_t whole_seconds(Nanoseconds t) { return t.count() / 1'000'000'000; }

Job job(std::int64_t submit, std::int64_t work, std::uint32_t gpus, std::string user = "") {
  return {.name = "j",
          .user = std::move(user),
          .submit = seconds(submit),
          .work = seconds(work),
          .gpus = gpus};
}

Outcome run(const Fleet& fleet, const std::vector<Job>& jobs, const Options& options) {
  Result<Outcome> outcome = fleet::run(fleet, jobs, options);
  INFO((outcome ? "" : to_string(outcome.error())));
  REQUIRE(outcome);
  return std::move(*outcome);
}

std::vector<std::int64_t> starts(const Outcome& outcome) {
  std::vector<std::int64_t> starts;
  for (const auto& run : outcome.jobs) starts.push_back(run ? whole_seconds(run->start) : -1);
  return starts;
}

std::vector<std::int64_t> ends(const Outcome& outcome) {
  std::vector<std::int64_t> ends;
  for (const auto& run : outcome.jobs) ends.push_back(run ? whole_seconds(run->end) : -1);
  return ends;
}

using Times = std::vector<std::int64_t>;

const Fleet kFourGpus{.nodes = 1, .gpus_per_node = 4};

// 4 GPUs. A: 2 GPUs for 10 s; B: 4 GPUs for 5 s; C: 2 GPUs for 8 s; D: 1 GPU for 20 s; one second
// apart.
const std::vector<Job> kJobs = {job(0, 10, 2, "u"), job(1, 5, 4, "v"), job(2, 8, 2, "u"),
                                job(3, 20, 1, "w")};

TEST_CASE("fifo: a job that does not fit blocks later ones") {
  const Outcome outcome = run(kFourGpus, kJobs, {});
  CHECK(starts(outcome) == Times{0, 10, 15, 15});
  CHECK(ends(outcome) == Times{10, 15, 23, 35});
  CHECK(outcome.makespan == seconds(35));
  // 2 x 10 + 4 x 5 + 2 x 8 + 1 x 20 = 76 of 140 GPU seconds.
  CHECK(outcome.utilization == Approx(76.0 / 140));
  CHECK(slowdown_of(kJobs[1], *outcome.jobs[1]) == Approx(14.0 / 5));
  CHECK(queued(kJobs[2], *outcome.jobs[2]) == seconds(13));
}

TEST_CASE("backfill: C ends when B is due, D would delay it") {
  const Outcome outcome = run(kFourGpus, kJobs, {.policy = Policy::kBackfill});
  CHECK(starts(outcome) == Times{0, 10, 2, 15});
  CHECK(ends(outcome) == Times{10, 15, 10, 35});
}

TEST_CASE("backfill: a long job starts earlier on GPUs that the first job leaves free") {
  // B asks for 3: of 4 GPUs one is left over, which D may have for as long as it likes, and C, of 2
  // GPUs until 11 s, may not.
  std::vector<Job> jobs = kJobs;
  jobs[1].gpus = 3;
  jobs[2].work = seconds(9);
  CHECK(starts(run(kFourGpus, jobs, {.policy = Policy::kBackfill})) == Times{0, 10, 15, 3});
}

TEST_CASE("shortest first") {
  // At 10 s B (5 s), C (8 s) and D (20 s) wait: B, then C; D with C.
  CHECK(starts(run(kFourGpus, kJobs, {.policy = Policy::kShortest})) == Times{0, 10, 15, 15});
  std::vector<Job> jobs = kJobs;
  jobs[1].work = seconds(9);
  // C is shorter than B now and fits with A; after A, 2 GPUs are free and C has them until 10 s.
  CHECK(starts(run(kFourGpus, jobs, {.policy = Policy::kShortest})) == Times{0, 10, 2, 19});
}

TEST_CASE(
    "shortest first with preemption: the job with more remaining work leaves, and pays for the "
    "restart") {
  // B needs all 4 GPUs for 5 s; A has 9 s to go and leaves at 1 s. At 6 s it takes 2 s to restart
  // and does its last 9 s; C has 8 s, less than those 11, and runs with it; D after C.
  const Outcome outcome =
      run(kFourGpus, kJobs, {.policy = Policy::kShortest, .preempt = true, .restart = seconds(2)});
  CHECK(starts(outcome) == Times{0, 1, 6, 14});
  CHECK(ends(outcome) == Times{17, 6, 14, 34});
  CHECK(outcome.preemptions == 1);
  CHECK(outcome.jobs[0]->restarting == seconds(2));
  CHECK(outcome.jobs[0]->held == seconds(12));
  CHECK(outcome.jobs[0]->lost == seconds(0));
}

TEST_CASE("preempted work since the last checkpoint is repeated") {
  // A of 20 s leaves at 7 s; its checkpoint is of 5 s.
  const std::vector<Job> jobs = {job(0, 20, 4), job(7, 3, 4)};
  const Outcome outcome = run(kFourGpus, jobs,
                              {.policy = Policy::kShortest,
                               .preempt = true,
                               .restart = seconds(1),
                               .checkpoint = seconds(5)});
  CHECK(ends(outcome) == Times{10 + 1 + 15, 10});
  CHECK(outcome.jobs[0]->lost == seconds(2));
}

TEST_CASE("fair share: the user who was charged least goes first") {
  // u is charged 4 x 10 = 40 GPU seconds when its first job starts, and v begins with as much. At
  // 10 s u's second came first; then v (40 against 60), u again (60 each, and it came first), and
  // what v has left.
  const std::vector<Job> jobs = {job(0, 10, 4, "u"), job(1, 5, 4, "u"), job(2, 5, 4, "u"),
                                 job(3, 5, 4, "v"),  job(4, 5, 4, "v"), job(5, 5, 4, "v")};
  CHECK(starts(run(kFourGpus, jobs, {})) == Times{0, 10, 15, 20, 25, 30});
  CHECK(starts(run(kFourGpus, jobs, {.policy = Policy::kFairShare})) ==
        Times{0, 10, 20, 15, 25, 30});
}

TEST_CASE("fair share: a returning user has no credit") {
  // v was charged 4 x 1 = 4 when it comes back at 12 s; u, alone, 60 by then, and v begins with
  // that. Were it not so, both of v's would go at 15 s and 20 s, before u's third.
  const std::vector<Job> jobs = {job(0, 1, 4, "v"), job(0, 9, 4, "u"),  job(1, 6, 4, "u"),
                                 job(2, 5, 4, "u"), job(12, 5, 4, "v"), job(13, 5, 4, "v")};
  CHECK(starts(run(kFourGpus, jobs, {.policy = Policy::kFairShare})) ==
        Times{0, 1, 10, 16, 21, 26});
}

TEST_CASE("placements: packed, spread and on rails") {
  const Fleet fleet{.nodes = 3, .gpus_per_node = 4, .nodes_per_pod = 2};
  const auto nodes = [&](Placement placement, const std::vector<Job>& jobs) {
    std::vector<std::vector<std::uint32_t>> gpus;
    for (const auto& r : run(fleet, jobs, {.placement = placement}).jobs) {
      gpus.push_back(r->gpus);
      std::sort(gpus.back().begin(), gpus.back().end());
    }
    return gpus;
  };
  using Gpus = std::vector<std::vector<std::uint32_t>>;
  const std::vector<Job> three = {job(0, 9, 3), job(0, 9, 2), job(0, 9, 1)};
  CHECK(nodes(Placement::kPacked, three) == Gpus{{0, 1, 2}, {4, 5}, {3}});
  CHECK(nodes(Placement::kSpread, three) == Gpus{{0, 4, 8}, {1, 5}, {9}});
  // Six GPUs are more than a node: two of each of the first pod's nodes are left, and pod 1 is too
  // small; it waits. Packed, it takes what there is.
  const std::vector<Job> six = {job(0, 9, 2), job(0, 9, 3), job(1, 9, 6)};
  CHECK(starts(run(fleet, six, {.placement = Placement::kRail})) == Times{0, 0, 9});
  CHECK(starts(run(fleet, six, {.placement = Placement::kPacked})) == Times{0, 0, 1});
}

TEST_CASE("fragmentation: GPUs that are free, but not in a place that the next job could take") {
  // Two nodes of 4; 3 of each are taken for 10 s. The next asks for 2 in one node: the 2 of 8 GPUs
  // that are free for 10 s are of no use to it.
  const Fleet fleet{.nodes = 2, .gpus_per_node = 4};
  const std::vector<Job> jobs = {job(0, 10, 3), job(0, 10, 3), job(0, 10, 2)};
  const Outcome outcome = run(fleet, jobs, {.placement = Placement::kRail});
  CHECK(starts(outcome) == Times{0, 0, 10});
  CHECK(outcome.fragmentation == Approx(2.0 * 10 / (8 * 20)));
  CHECK(run(fleet, jobs, {.placement = Placement::kPacked}).fragmentation == 0);
}

Job small(std::int64_t submit, std::int64_t work, double gib) {
  Job j = job(submit, work, 1);
  j.memory = Bytes::gib(gib);
  return j;
}

TEST_CASE("a job that fits a slice takes the smallest, on the fullest GPU that has room") {
  Fleet fleet{.nodes = 1, .gpus_per_node = 2, .positions = 8, .slices = test::a100_slices()};
  const std::vector<Job> jobs = {small(0, 3, 4), small(0, 3, 15), small(0, 6, 9), job(1, 10, 1),
                                 job(2, 10, 1)};
  const Outcome outcome = run(fleet, jobs, {});
  // 1g on GPU 0 at position 6, which spoils no larger place; 3g on the same GPU at 0; 1g.10gb at 4.
  // GPU 1 stays whole for the job of unknown memory.
  CHECK(outcome.jobs[0]->slice == 0);
  CHECK(outcome.jobs[1]->slice == 3);
  CHECK(outcome.jobs[2]->slice == 1);
  CHECK(outcome.jobs[3]->gpus == std::vector<std::uint32_t>{1});
  for (int i = 0; i < 3; ++i) CHECK(outcome.jobs[i]->gpus == std::vector<std::uint32_t>{0});
  // At 1/7, 3/7 and 1/7 of the speed: 21, 7 and 42 s. GPU 0 is whole again at 42 s, GPU 1 at 11 s.
  CHECK(ends(outcome) == Times{21, 7, 42, 11, 21});
}

TEST_CASE("a job alone runs for the time of its work") {
  for (const Policy policy :
       {Policy::kFifo, Policy::kBackfill, Policy::kShortest, Policy::kFairShare}) {
    const Outcome outcome = run(kFourGpus, {job(3, 7, 4)}, {.policy = policy});
    CHECK(starts(outcome) == Times{3});
    CHECK(ends(outcome) == Times{10});
    CHECK(outcome.utilization == Approx(1));
  }
}

TEST_CASE("jobs that can never fit are left out, the others run") {
  Fleet fleet = kFourGpus;
  fleet.memory = Bytes::gib(16);
  Outcome outcome = run(fleet, {job(0, 5, 5), small(0, 5, 17), job(0, 5, 4), job(0, 5, 0)}, {});
  CHECK(starts(outcome) == Times{-1, -1, 0, -1});
  fleet.nodes = 4;
  fleet.nodes_per_pod = 2;
  outcome = run(fleet, {job(0, 5, 9), job(0, 5, 8)}, {.placement = Placement::kRail});
  CHECK(starts(outcome) == Times{-1, 0});
  CHECK(starts(run(kFourGpus, std::vector<Job>(), {})).empty());
}

TEST_CASE("jobs without work end when they start") {
  CHECK(ends(run(kFourGpus, {job(0, 0, 4), job(0, 5, 4), job(0, 0, 1)}, {})) == Times{0, 5, 5});
}

TEST_CASE("a list that cannot be run is refused") {
  const auto refused = [](const Fleet& fleet, const std::vector<Job>& jobs,
                          const Options& options) {
    const Result<Outcome> outcome = fleet::run(fleet, jobs, options);
    REQUIRE_FALSE(outcome);
    return to_string(outcome.error());
  };
  using Catch::Contains;
  CHECK_THAT(refused({.nodes = 0}, {}, {}), Contains("0 nodes of 8 GPUs"));
  CHECK_THAT(refused({.gpus_per_node = 65}, {}, {}), Contains("1 to 64"));
  CHECK_THAT(refused({.positions = 9}, {}, {}), Contains("9 positions"));
  CHECK_THAT(refused({.positions = 2, .slices = {{"x", Bytes::gib(1), 2, {1}}}}, {}, {}),
             Contains("slice x at 1 reaches beyond"));
  CHECK_THAT(refused({.slices = {{"x", Bytes::gib(1), 1, {}}}}, {}, {}),
             Contains("slice x lacks a size"));
  CHECK_THAT(refused({}, {}, {.preempt = true}), Contains("'shortest'"));
  CHECK_THAT(refused({}, {}, {.restart = seconds(-1)}), Contains("negative"));
  CHECK_THAT(refused({}, {job(0, 400'000'000, 1)}, {}), Contains("too long"));
  // Ten jobs of nine years, one after another.
  CHECK_THAT(refused({.gpus_per_node = 1}, std::vector<Job>(10, job(0, 290'000'000, 1)), {}),
             Contains("more than 31 years"));
  CHECK_THAT(refused({}, {job(0, -1, 1)}, {}), Contains("a negative duration"));
}

}  // namespace
}  // namespace rehearse
