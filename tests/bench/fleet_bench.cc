// Many jobs: a day of 5,000 jobs on 1,000 GPUs, and the growth of the time with both, compared with
// sorting as many events.
#include <algorithm>
#include <random>

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "models/sharing/pack.h"
#include "sim/base/check.h"
#include "sim/fleet/fleet.h"
#include "tests/support/naive_fleet.h"

namespace rehearse::bench {
namespace {

using namespace fleet;

/// A day of jobs that request nine tenths of the GPUs' capacity: mostly one GPU each, a few up to
/// 64.
std::vector<Job> day(std::uint32_t jobs, std::uint32_t gpus, bool memory) {
  std::mt19937_64 random(1);
  const auto up_to = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  constexpr std::int64_t kDay = 86'400'000'000'000;
  std::vector<Job> list;
  double demand = 0;
  for (std::uint32_t i = 0; i < jobs; ++i) {
    Job job{.name = "job",
            .user = fmt::format("user {}", up_to(50)),
            .submit = Nanoseconds(up_to(kDay)),
            .work = Nanoseconds(1 + (std::int64_t{1} << (30 + up_to(13))) + up_to(1'000'000'000)),
            .gpus = 1U << (up_to(2) * up_to(7))};
    if (memory && up_to(2) == 0) job.memory = Bytes::gib(4);
    demand += static_cast<double>(job.work.count()) * job.gpus;
    list.push_back(std::move(job));
  }
  const double scale = 0.9 * kDay * gpus / demand;
  for (Job& job : list) job.work = job.work * scale;
  return list;
}

void simulate(benchmark::State& state, const Options& options, std::uint32_t jobs,
              std::uint32_t gpus, bool slices) {
  const std::vector<Job> list = day(jobs, gpus, slices);
  Fleet fleet{.nodes = gpus / 8, .nodes_per_pod = 16};
  if (slices) {
    fleet.positions = 8;
    fleet.slices = {{"1g", Bytes::gib(5), 1, {0, 1, 2, 3, 4, 5, 6}, 1.0 / 7}};
  }
  for (auto _ : state) {
    const Result<Outcome> outcome = run(fleet, list, options);
    REHEARSE_CHECK(outcome, "{}", to_string(outcome.error()));
    benchmark::DoNotOptimize(outcome->makespan);
  }
  state.SetItemsProcessed(state.iterations() * jobs);
}

/// Sorts the arrivals and ends of as many jobs: the minimum work of any simulation.
void sort_events(benchmark::State& state) {
  const std::vector<Job> list = day(static_cast<std::uint32_t>(state.range(0)), 1000, false);
  for (auto _ : state) {
    std::vector<std::pair<Nanoseconds, std::uint32_t>> events;
    for (std::uint32_t i = 0; i < list.size(); ++i) {
      events.emplace_back(list[i].submit, i);
      events.emplace_back(list[i].submit + list[i].work, i);
    }
    std::sort(events.begin(), events.end());
    benchmark::DoNotOptimize(events.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(sort_events)->Name("fleet/sort_events")->Arg(5000)->Arg(40000);

/// Plain loops over all jobs, GPUs and nodes at every instant (tests/support).
void simulate_plainly(benchmark::State& state, Policy policy, std::uint32_t jobs,
                      std::uint32_t gpus) {
  const std::vector<Job> list = day(jobs, gpus, false);
  const Fleet fleet{.nodes = gpus / 8, .nodes_per_pod = 16};
  for (auto _ : state) benchmark::DoNotOptimize(test::naive_fleet(fleet, list, {.policy = policy}));
  state.SetItemsProcessed(state.iterations() * jobs);
}

/// A set of jobs: some share slices, some take turns, and some run together.
void pack_set(benchmark::State& state) {
  using namespace sharing;
  std::vector<PackJob> jobs;
  for (std::int64_t j = 0; j < state.range(0); ++j) {
    PackJob job{.name = fmt::format("job {}", j),
                .work = Seconds::s(static_cast<double>(100 + j * 37 % 91)),
                .gpus = j % 4 == 0 ? 4U : 1U,
                .memory = Bytes::gib(static_cast<double>(1 + j % 9)),
                .like = Resident{"f", static_cast<double>(1 + j % 5), Seconds::ms(10)}};
    if (j % 4 == 0) job.exposed = Seconds::ms(2);
    jobs.push_back(std::move(job));
  }
  Site site{.gpus = 16, .memory = Bytes::gib(40), .positions = 8, .slices = test::a100_slices()};
  site.pair = [](std::size_t a, std::size_t b) {
    return std::pair(0.5 + 0.1 * static_cast<double>(a % 4),
                     0.5 + 0.1 * static_cast<double>(b % 3));
  };
  for (auto _ : state) {
    const auto packing = pack(jobs, site, Goal::kCost);
    REHEARSE_CHECK(packing);
    benchmark::DoNotOptimize(packing->held);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(pack_set)->Name("pack")->Arg(8)->Arg(16)->Arg(32)->Arg(64)->Unit(benchmark::kMillisecond);

void add(const std::string& name, const Options& options, std::uint32_t jobs, std::uint32_t gpus,
         bool slices = false) {
  benchmark::RegisterBenchmark(fmt::format("fleet/{}/{}/{}", name, jobs, gpus).c_str(), simulate,
                               options, jobs, gpus, slices)
      ->Unit(benchmark::kMillisecond);
}

const bool added = [] {
  for (const Policy policy :
       {Policy::kFifo, Policy::kBackfill, Policy::kShortest, Policy::kFairShare})
    for (const auto& [jobs, gpus] :
         {std::pair(800U, 160U), {5000U, 1000U}, {40000U, 1000U}, {5000U, 8000U}, {40000U, 8000U}})
      add(std::string(kPolicyNames[static_cast<int>(policy)]), {.policy = policy}, jobs, gpus);
  add("rail", {.policy = Policy::kBackfill, .placement = Placement::kRail}, 5000, 1000);
  add("spread", {.policy = Policy::kBackfill, .placement = Placement::kSpread}, 5000, 1000);
  for (const std::uint32_t jobs : {5000U, 40000U}) {
    add("preempt", {.policy = Policy::kShortest, .preempt = true}, jobs, 1000);
    add("slices", {.policy = Policy::kBackfill}, jobs, 1000, true);
  }
  for (const Policy policy : {Policy::kFifo, Policy::kBackfill})
    benchmark::RegisterBenchmark(
        fmt::format("fleet/plain_{}/800/160", kPolicyNames[static_cast<int>(policy)]).c_str(),
        simulate_plainly, policy, 800, 160)
        ->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
}  // namespace rehearse::bench
