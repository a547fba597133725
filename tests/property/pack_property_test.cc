// Properties of where sets of jobs are put, on random sets.
#include <algorithm>
#include <random>

#include <catch2/catch.hpp>

#include "models/sharing/pack.h"
#include "tests/support/naive_fleet.h"

namespace rehearse {
namespace {

using namespace sharing;

struct RandomSet {
  std::vector<PackJob> jobs;
  Site site;
  Goal goal;
};

RandomSet random_set(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::uint64_t n) { return static_cast<double>(random() % (n + 1)); };
  RandomSet set{.jobs = {},
                .site = {.gpus = static_cast<std::uint32_t>(1 + random() % 4),
                         .memory = Bytes::gib(40),
                         .links = static_cast<Links>(random() % std::size(kLinksNames))},
                .goal = static_cast<Goal>(random() % std::size(kGoalNames))};
  if (random() % 2 == 0) {
    set.site.positions = 8;
    set.site.slices = test::a100_slices();
  }
  for (std::uint64_t j = 0; j < 1 + seed % 7; ++j) {
    PackJob job{.name = std::string(1, static_cast<char>('a' + j)), .work = Seconds::s(up_to(20))};
    if (random() % 3 == 0) job.gpus = static_cast<std::uint32_t>(1 + random() % set.site.gpus);
    if (random() % 4 != 0) job.memory = Bytes::gib(1 + up_to(30));
    if (random() % 3 != 0) {
      const double compute_ms = 1 + up_to(90);
      job.exposed = Seconds::ms(up_to(60));
      job.hidden = Seconds::ms(compute_ms * up_to(10) / 10);
      job.like = Resident{job.name, 1, Seconds::ms(compute_ms) + *job.exposed};
    }
    if (random() % 3 == 0) job.deadline = Seconds::s(up_to(30));
    for (const fleet::SliceKind& kind : set.site.slices)
      if (random() % 2 == 0) {
        const double rate = 0.1 + 0.9 * up_to(10) / 10;
        job.slice_rates[kind.name] = {rate, rate, rate, Provenance::kRecorded};
      }
    set.jobs.push_back(std::move(job));
  }
  set.site.pair = [seed](std::size_t a, std::size_t b) {
    const auto share = [&](std::size_t x, std::size_t y) {
      return 0.3 + 0.1 * static_cast<double>((x * 5 + y * 3 + seed) % 8);
    };
    return std::pair(share(a, b), share(b, a));
  };
  return set;
}

template <class Check>
void for_all(const Check& check) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    const RandomSet set = random_set(seed);
    const Result<Packing> packing = pack(set.jobs, set.site, set.goal);
    INFO("seed " << seed << (packing ? "" : to_string(packing.error())));
    REQUIRE(packing);
    check(set, *packing);
  }
}

TEST_CASE("pack: every job is placed once, with all the GPUs that it requested") {
  for_all([](const RandomSet& set, const Packing& p) {
    std::vector<int> placed(set.jobs.size(), 0);
    for (const Placed& x : p.placements) {
      for (const std::size_t j : x.jobs) {
        ++placed[j];
        REQUIRE(set.jobs[j].gpus == x.gpus.size());
      }
      REQUIRE((x.how == SharedHow::kAlone) == (x.jobs.size() == 1));
    }
    REQUIRE(std::count(placed.begin(), placed.end(), 1) == static_cast<int>(placed.size()));
  });
}

TEST_CASE("pack: no GPU holds more than it has, nor two placements at once") {
  for_all([](const RandomSet& set, const Packing& p) {
    std::vector<Seconds> free(set.site.gpus, Seconds::s(0));
    for (const Placed& x : p.placements) {  // in the order of their starts
      Bytes memory = Bytes::b(0);
      std::uint32_t positions = 0;
      for (std::size_t i = 0; i < x.jobs.size(); ++i) {
        if (x.how == SharedHow::kAlone) continue;
        const PackJob& job = set.jobs[x.jobs[i]];
        REQUIRE(job.memory);
        memory += *job.memory;
        if (x.how != SharedHow::kSlices) continue;
        const auto kind =
            std::find_if(set.site.slices.begin(), set.site.slices.end(),
                         [&](const fleet::SliceKind& k) { return k.name == x.slices[i]; });
        REQUIRE(kind != set.site.slices.end());
        REQUIRE(*job.memory <= kind->memory);
        positions += kind->size;
      }
      if (x.how == SharedHow::kSlices)
        REQUIRE(positions <= set.site.positions);
      else
        REQUIRE(memory <= set.site.memory);
      for (const std::uint32_t gpu : x.gpus) {
        REQUIRE(gpu < set.site.gpus);
        REQUIRE(x.start >= free[gpu]);
        free[gpu] = x.end;
      }
    }
  });
}

TEST_CASE("pack: work is conserved, and no job is faster than alone") {
  for_all([](const RandomSet& set, const Packing& p) {
    Seconds held = Seconds::s(0);
    for (const Placed& x : p.placements) {
      held += (x.end - x.start) * static_cast<double>(x.gpus.size());
      for (std::size_t i = 0; i < x.jobs.size(); ++i) {
        const std::size_t j = x.jobs[i];
        const Seconds took = p.finish[j] - p.started[j];
        REQUIRE(x.rates[i] <= 1);
        REQUIRE(took.s() >= set.jobs[j].work.s() * (1 - 1e-9));
        REQUIRE(p.started[j] == x.start);
        REQUIRE(p.finish[j].s() <= x.end.s() * (1 + 1e-9));
        // The job that ends first has had its rate all along; so has a job on a slice.
        const bool first = std::all_of(x.jobs.begin(), x.jobs.end(), [&](std::size_t other) {
          return p.finish[other] >= p.finish[j];
        });
        if (first || x.how == SharedHow::kSlices)
          REQUIRE(took.s() * x.rates[i] == Approx(set.jobs[j].work.s()).margin(1e-9));
      }
    }
    REQUIRE(held.s() == Approx(p.held.s()).margin(1e-9));
  });
}

TEST_CASE("pack: a job alone runs as without sharing") {
  for_all([](const RandomSet& set, const Packing&) {
    const std::span<const PackJob> one(set.jobs.data(), 1);
    const Result<Packing> p = pack(one, set.site, set.goal);
    REQUIRE(p);
    REQUIRE(p->placements.size() == 1);
    REQUIRE(p->placements[0].how == SharedHow::kAlone);
    REQUIRE(p->finish[0] == set.jobs[0].work);
    REQUIRE(p->placements[0].rates == std::vector<double>{1});
  });
}

TEST_CASE("pack: the goal is never further than every job alone, and the same set packs the same") {
  for_all([](const RandomSet& set, const Packing& p) {
    constexpr double kSlack = 1 + 1e-6;
    if (set.goal == Goal::kThroughput) REQUIRE(p.makespan.s() <= p.makespan_alone.s() * kSlack);
    if (set.goal == Goal::kCost) REQUIRE(p.held.s() <= p.held_alone.s() * kSlack);
    if (set.goal == Goal::kDeadline) REQUIRE(p.late.s() <= p.late_alone.s() * kSlack);
    const Result<Packing> again = pack(set.jobs, set.site, set.goal);
    REQUIRE(again);
    REQUIRE(again->finish == p.finish);
    REQUIRE(again->started == p.started);
  });
}

}  // namespace
}  // namespace rehearse
