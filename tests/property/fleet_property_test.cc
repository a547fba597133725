// Properties of many jobs on many GPUs, on random lists.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <catch2/catch.hpp>

#include "sim/fleet/fleet.h"
#include "tests/support/naive_fleet.h"

namespace rehearse::fleet {
namespace {

using test::NaiveStay;
using test::random_fleet;
using test::RandomFleet;

Outcome run_fleet(const RandomFleet& r, const Options& options) {
  Result<Outcome> outcome = fleet::run(r.fleet, r.jobs, options);
  INFO((outcome ? "" : to_string(outcome.error())));
  REQUIRE(outcome);
  return std::move(*outcome);
}

std::vector<NaiveStay> stays_of(const Outcome& outcome) {
  std::vector<NaiveStay> stays;
  for (const Stay& s : outcome.stays)
    stays.push_back({s.job, s.from.count(), s.to.count(), s.gpus, s.positions});
  for (NaiveStay& s : stays) std::sort(s.gpus.begin(), s.gpus.end());
  std::sort(stays.begin(), stays.end());
  return stays;
}

void agree(std::uint64_t seed, const RandomFleet& r, const Options& options) {
  INFO("seed " << seed << ", policy " << kPolicyNames[static_cast<int>(options.policy)]
               << ", placement " << kPlacementNames[static_cast<int>(options.placement)]);
  std::vector<NaiveStay> naive = test::naive_fleet(r.fleet, r.jobs, options);
  for (NaiveStay& s : naive) std::sort(s.gpus.begin(), s.gpus.end());
  std::sort(naive.begin(), naive.end());
  const std::vector<NaiveStay> fast = stays_of(run_fleet(r, options));
  REQUIRE(fast.size() == naive.size());
  for (std::size_t i = 0; i < fast.size(); ++i) {
    INFO("job " << fast[i].job << " from " << fast[i].from << " to " << fast[i].to << ", naive "
                << naive[i].job << " from " << naive[i].from << " to " << naive[i].to);
    REQUIRE(fast[i] == naive[i]);
  }
}

constexpr Policy kPolicies[] = {Policy::kFifo, Policy::kBackfill, Policy::kShortest,
                                Policy::kFairShare};
constexpr Placement kPlacements[] = {Placement::kPacked, Placement::kSpread, Placement::kRail};

TEST_CASE("the fleet agrees with the naive one") {
  for (std::uint64_t seed = 1; seed <= 120; ++seed)
    for (const Policy policy : kPolicies)
      for (const Placement placement : kPlacements) {
        const bool rail = placement == Placement::kRail;
        if (policy == Policy::kBackfill && rail) continue;
        agree(seed, random_fleet(seed, false, rail), {.policy = policy, .placement = placement});
      }
}

TEST_CASE("the fleet agrees with the naive one on slices") {
  for (std::uint64_t seed = 1; seed <= 120; ++seed)
    for (const Policy policy : {Policy::kFifo, Policy::kShortest, Policy::kFairShare})
      for (const Placement placement : kPlacements)
        agree(seed, random_fleet(seed, true, placement == Placement::kRail),
              {.policy = policy, .placement = placement});
}

TEST_CASE("the fleet agrees with the naive one on preemption") {
  for (std::uint64_t seed = 1; seed <= 400; ++seed)
    agree(seed, random_fleet(seed, false, false),
          {.policy = Policy::kShortest,
           .placement = seed % 2 == 0 ? Placement::kPacked : Placement::kSpread,
           .preempt = true,
           .restart = Nanoseconds(static_cast<std::int64_t>(seed % 3) * 2000),
           .checkpoint = Nanoseconds(static_cast<std::int64_t>(seed % 4) * 3000)});
}

/// All ways to run_fleet a list, including those that the naive simulator does not know.
template <class Check>
void for_all(int seeds, Check check) {
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(seeds); ++seed)
    for (const Policy policy : kPolicies)
      for (const Placement placement : kPlacements)
        for (const bool preempt : {false, true}) {
          if (preempt && policy != Policy::kShortest) continue;
          const Options options{.policy = policy,
                                .placement = placement,
                                .preempt = preempt,
                                .restart = Nanoseconds(preempt ? 1000 : 0),
                                .checkpoint = Nanoseconds(preempt ? 4000 : 0)};
          const RandomFleet r = random_fleet(seed, seed % 2 == 0, placement == Placement::kRail);
          INFO("seed " << seed << ", policy " << static_cast<int>(policy) << ", placement "
                       << static_cast<int>(placement) << ", preempt " << preempt);
          check(r, options, run_fleet(r, options));
        }
}

TEST_CASE("no part of a GPU is held twice, and a gang holds all that it requested") {
  for_all(150, [](const RandomFleet& r, const Options&, const Outcome& outcome) {
    std::vector<std::vector<const Stay*>> by_gpu(r.fleet.gpus());
    for (const Stay& s : outcome.stays) {
      const Job& job = r.jobs[s.job];
      REQUIRE(s.gpus.size() == job.gpus);
      REQUIRE((s.positions == (1U << r.fleet.positions) - 1 || job.gpus == 1));
      REQUIRE(s.from >= job.submit);
      for (const std::uint32_t gpu : s.gpus) by_gpu.at(gpu).push_back(&s);
    }
    for (const auto& stays : by_gpu)
      for (std::size_t a = 0; a < stays.size(); ++a)
        for (std::size_t b = 0; b < a; ++b)
          if ((stays[a]->positions & stays[b]->positions) != 0)
            REQUIRE((stays[a]->to <= stays[b]->from || stays[b]->to <= stays[a]->from));
  });
}

TEST_CASE("every job ends, and held its GPUs for its work, its restarts and its lost work") {
  for_all(150, [](const RandomFleet& r, const Options& options, const Outcome& outcome) {
    std::vector<Nanoseconds> held(r.jobs.size(), Nanoseconds(0));
    for (const Stay& s : outcome.stays) held[s.job] += s.to - s.from;
    for (std::size_t j = 0; j < r.jobs.size(); ++j) {
      REQUIRE(outcome.jobs[j]);
      const JobRun& run_fleet = *outcome.jobs[j];
      REQUIRE(run_fleet.held == held[j]);
      REQUIRE(run_fleet.end - r.jobs[j].submit >= run_fleet.held);
      REQUIRE(run_fleet.restarting <= options.restart * std::int64_t{run_fleet.preemptions});
      if (run_fleet.slice || !r.fleet.slices.empty()) continue;
      REQUIRE(run_fleet.held == r.jobs[j].work + run_fleet.restarting + run_fleet.lost);
      REQUIRE(run_fleet.lost <= options.checkpoint * std::int64_t{run_fleet.preemptions});
    }
  });
}

TEST_CASE("a job alone runs from its arrival for its work") {
  for_all(60, [](const RandomFleet& r, const Options& options, const Outcome&) {
    RandomFleet one{r.fleet, {r.jobs.front()}};
    one.fleet.slices.clear();
    const Outcome outcome = run_fleet(one, options);
    REQUIRE(outcome.jobs[0]->start == one.jobs[0].submit);
    REQUIRE(outcome.jobs[0]->end == one.jobs[0].submit + one.jobs[0].work);
    REQUIRE(outcome.preemptions == 0);
  });
}

TEST_CASE("on a slice a job is held for its work at the rate of the slice") {
  std::size_t slices = 0;
  for_all(80, [&](const RandomFleet& r, const Options& options, const Outcome& outcome) {
    if (options.preempt) return;
    for (std::size_t j = 0; j < r.jobs.size(); ++j) {
      const JobRun& run_fleet = *outcome.jobs[j];
      const double rate = run_fleet.slice ? r.fleet.slices[*run_fleet.slice].rate : 1;
      REQUIRE(std::abs(static_cast<double>(run_fleet.held.count()) * rate -
                       static_cast<double>(r.jobs[j].work.count())) <= 2);
      slices += run_fleet.slice.has_value();
    }
  });
  CHECK(slices > 100);
}

TEST_CASE("in order of arrival no job starts before an earlier one") {
  for_all(100, [](const RandomFleet& r, const Options& options, const Outcome& outcome) {
    if (options.policy != Policy::kFifo) return;
    std::vector<std::size_t> order(r.jobs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return r.jobs[a].submit < r.jobs[b].submit;
    });
    for (std::size_t i = 1; i < order.size(); ++i)
      REQUIRE(outcome.jobs[order[i - 1]]->start <= outcome.jobs[order[i]]->start);
  });
}

TEST_CASE("nothing waits on an empty fleet") {
  for_all(100, [](const RandomFleet& r, const Options&, const Outcome& outcome) {
    // At every instant at which a job waits some other one holds GPUs.
    for (std::size_t j = 0; j < r.jobs.size(); ++j) {
      Nanoseconds idle = r.jobs[j].submit;
      std::vector<const Stay*> stays;
      for (const Stay& s : outcome.stays)
        if (s.from < outcome.jobs[j]->start) stays.push_back(&s);
      std::sort(stays.begin(), stays.end(),
                [](const Stay* a, const Stay* b) { return a->from < b->from; });
      for (const Stay* s : stays)
        if (s->from <= idle) idle = std::max(idle, s->to);
      REQUIRE(idle >= outcome.jobs[j]->start);
    }
  });
}

/// Positions taken of each GPU.
using Gpus = std::vector<std::uint32_t>;

bool fits(const RandomFleet& r, const Gpus& gpus, const Job& job, Placement placement) {
  bool slice = false;
  std::uint32_t free = 0, in_node = 0, in_pod = 0;
  const std::uint32_t per_node = r.fleet.gpus_per_node;
  const std::uint32_t per_pod =
      per_node * (r.fleet.nodes_per_pod == 0 ? r.fleet.nodes : r.fleet.nodes_per_pod);
  for (std::uint32_t g = 0; g < gpus.size(); ++g) {
    if (g % per_node == 0) in_node = 0;
    if (g % per_pod == 0) in_pod = 0;
    if (gpus[g] == 0) ++free, ++in_node, ++in_pod;
    if (in_node >= job.gpus) return true;
    if (job.gpus > per_node && in_pod >= job.gpus) return true;
    for (const SliceKind& kind : r.fleet.slices)
      for (const std::uint32_t start : kind.starts)
        slice |= job.gpus == 1 && job.memory && *job.memory <= kind.memory &&
                 (((1U << kind.size) - 1) << start & gpus[g]) == 0;
  }
  return slice || (placement != Placement::kRail && free >= job.gpus);
}

TEST_CASE("a later job never delays the job that is first in line") {
  std::size_t checked = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed)
    for (const Placement placement : kPlacements) {
      const RandomFleet r = random_fleet(seed, seed % 2 == 0, placement == Placement::kRail);
      const Outcome outcome = run_fleet(r, {.policy = Policy::kBackfill, .placement = placement});
      std::vector<std::size_t> order(r.jobs.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return r.jobs[a].submit < r.jobs[b].submit;
      });
      Nanoseconds first_at(0);  // when all earlier ones have started
      for (std::size_t rank = 0; rank < order.size(); ++rank) {
        const Job& job = r.jobs[order[rank]];
        const Nanoseconds since = std::max(first_at, job.submit);
        first_at = std::max(first_at, outcome.jobs[order[rank]]->start);
        // Who ran when it became the first: those that started before, and the earlier ones.
        Gpus gpus(r.fleet.gpus(), 0);
        std::vector<const Stay*> running;
        for (const Stay& s : outcome.stays) {
          const bool earlier =
              std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(rank), s.job) !=
              order.begin() + static_cast<std::ptrdiff_t>(rank);
          if (s.to <= since || s.from > since || (s.from == since && !earlier)) continue;
          running.push_back(&s);
          for (const std::uint32_t g : s.gpus) gpus[g] |= s.positions;
        }
        std::sort(running.begin(), running.end(),
                  [](const Stay* a, const Stay* b) { return a->to < b->to; });
        Nanoseconds latest = since;
        for (std::size_t i = 0; !fits(r, gpus, job, placement); ++i) {
          REQUIRE(i < running.size());
          latest = running[i]->to;
          for (const std::uint32_t g : running[i]->gpus) gpus[g] &= ~running[i]->positions;
        }
        INFO("seed " << seed << ", placement " << static_cast<int>(placement) << ", job "
                     << order[rank] << " at " << outcome.jobs[order[rank]]->start.count()
                     << " ns, due " << latest.count() << " ns");
        REQUIRE(outcome.jobs[order[rank]]->start <= latest);
        checked += latest > since;
      }
    }
  CHECK(checked > 1000);
}

TEST_CASE("backfill lets some jobs start earlier") {
  std::size_t before = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed)
    for (const Placement placement : kPlacements) {
      const RandomFleet r = random_fleet(seed, seed % 2 == 0, placement == Placement::kRail);
      const Outcome fifo = run_fleet(r, {.placement = placement});
      const Outcome filled = run_fleet(r, {.policy = Policy::kBackfill, .placement = placement});
      for (std::size_t j = 0; j < r.jobs.size(); ++j)
        before += filled.jobs[j]->start < fifo.jobs[j]->start;
    }
  CHECK(before > 500);
}

TEST_CASE("the same list gives the same outcome") {
  for_all(20, [](const RandomFleet& r, const Options& options, const Outcome& outcome) {
    CHECK(stays_of(outcome) == stays_of(run_fleet(r, options)));
  });
}

TEST_CASE("utilization is the sum of the held times") {
  for_all(60, [](const RandomFleet& r, const Options&, const Outcome& outcome) {
    double held = 0;
    for (const Stay& s : outcome.stays)
      held += static_cast<double>((s.to - s.from).count()) * std::popcount(s.positions) *
              static_cast<double>(s.gpus.size());
    const double all = static_cast<double>(outcome.makespan.count()) * r.fleet.gpus() *
                       static_cast<double>(r.fleet.positions);
    if (all > 0) REQUIRE(std::abs(outcome.utilization - held / all) < 1e-9);
    REQUIRE(
        (outcome.fragmentation >= 0 && outcome.fragmentation + outcome.utilization <= 1 + 1e-9));
  });
}

}  // namespace
}  // namespace rehearse::fleet
