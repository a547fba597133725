// Where to put jobs: small sets whose best placement can be said by hand.
#include "models/sharing/pack.h"

#include <catch2/catch.hpp>

#include "tests/support/naive_fleet.h"

namespace rehearse {
namespace {

using namespace sharing;

PackJob job(const std::string& name, double work_s, double gib = 4) {
  return {.name = name, .work = Seconds::s(work_s), .memory = Bytes::gib(gib)};
}

Estimate<double> rate(double value) {
  return {value, 0.9 * value, value, Provenance::kExtrapolated};
}

Packing packed(const std::vector<PackJob>& jobs, const Site& site, Goal goal = Goal::kThroughput) {
  Result<Packing> packing = pack(jobs, site, goal);
  INFO((packing ? "" : to_string(packing.error())));
  REQUIRE(packing);
  return std::move(*packing);
}

TEST_CASE("pack: without ways to share every job is alone, the longest first") {
  const Packing p =
      packed({job("a", 4), job("b", 10), job("c", 5)}, {.gpus = 2, .memory = Bytes::gib(16)});
  CHECK(p.makespan.s() == Approx(10));
  CHECK(p.finish[0].s() == Approx(9));
  for (const Placed& placed : p.placements) CHECK(placed.how == SharedHow::kAlone);
  CHECK(p.held.s() == Approx(19));
}

TEST_CASE("pack: two jobs share a GPU if they gain, and not if they lose or do not fit") {
  Site site{.gpus = 1, .memory = Bytes::gib(16)};
  const std::vector<PackJob> jobs = {job("a", 10), job("b", 10)};
  site.pair = [](std::size_t, std::size_t) { return std::pair(0.8, 0.5); };
  // a ends at 12.5 s; b has done 6.25 s by then, and does its last 3.75 s alone.
  Packing p = packed(jobs, site);
  REQUIRE(p.placements.size() == 1);
  CHECK(p.placements[0].how == SharedHow::kTogether);
  CHECK(p.finish[0].s() == Approx(12.5));
  CHECK(p.finish[1].s() == Approx(16.25));
  CHECK(p.placements[0].gain == Approx(20 / 16.25));
  CHECK(p.makespan_alone.s() == Approx(20));
  site.pair = [](std::size_t, std::size_t) { return std::pair(0.5, 0.4); };
  CHECK(packed(jobs, site).placements.size() == 2);
  site.pair = [](std::size_t, std::size_t) { return std::pair(0.9, 0.9); };
  CHECK(packed({job("a", 10, 9), job("b", 10, 9)}, site).placements.size() == 2);
}

TEST_CASE("pack: jobs that expose communication take turns") {
  std::vector<PackJob> jobs = {job("a", 12), job("b", 12)};
  for (PackJob& j : jobs) {
    j.gpus = 4;
    j.like = Resident{"x", 8, Seconds::ms(120)};
    j.exposed = Seconds::ms(20);
  }
  const Packing p = packed(jobs, {.gpus = 4, .memory = Bytes::gib(16)});
  REQUIRE(p.placements.size() == 1);
  CHECK(p.placements[0].how == SharedHow::kCrossover);
  CHECK(p.placements[0].gain == Approx(1.2).epsilon(0.01));
  CHECK(p.makespan.s() == Approx(20).epsilon(0.01));
  CHECK(p.placements[0].gpus.size() == 4);
}

TEST_CASE("pack: small jobs on slices, the last to end gets a larger one") {
  Site site{.gpus = 1, .memory = Bytes::gib(40), .positions = 8, .slices = test::a100_slices()};
  // At a seventh of the GPU, both keep half their speed; on 2g all of it.
  std::vector<PackJob> jobs = {job("a", 10), job("b", 10)};
  for (PackJob& j : jobs) j.slice_rates = {{"1g.5gb", rate(0.5)}, {"2g.10gb", rate(1)}};
  const Packing p = packed(jobs, site);
  REQUIRE(p.placements.size() == 1);
  CHECK(p.placements[0].how == SharedHow::kSlices);
  CHECK(p.placements[0].slices == std::vector<std::string>{"2g.10gb", "2g.10gb"});
  CHECK(p.makespan.s() == Approx(10));
  CHECK(p.placements[0].gain == Approx(2));
  CHECK(p.placements[0].ranges[1] == std::pair(0.9, 1.0));
  // Seven of them: 7 x 1g, at half speed, 3.5 times the work.
  const std::vector<PackJob> seven(7, [&] {
    PackJob j = jobs[0];
    j.slice_rates = {{"1g.5gb", rate(0.5)}};
    return j;
  }());
  CHECK(packed(seven, site).makespan.s() <= 20 + 1e-9);
  // Slices at their share of the GPU gain nothing.
  CHECK(packed({job("a", 10), job("b", 10)}, site).placements.size() == 2);
}

TEST_CASE("pack: goals") {
  Site site{.gpus = 2, .memory = Bytes::gib(16)};
  site.pair = [](std::size_t, std::size_t) { return std::pair(0.6, 0.6); };
  const std::vector<PackJob> two = {job("a", 10), job("b", 10)};
  // Two GPUs: alone is faster, together holds one GPU for 16.7 s in place of two for 10 s.
  CHECK(packed(two, site, Goal::kThroughput).makespan.s() == Approx(10));
  const Packing cheap = packed(two, site, Goal::kCost);
  CHECK(cheap.held.s() == Approx(10 / 0.6));
  CHECK(cheap.held_alone.s() == Approx(20));
  // One GPU: the short one is due first, and goes first.
  std::vector<PackJob> due = {job("long", 10), job("short", 2)};
  due[1].deadline = Seconds::s(3);
  site.gpus = 1;
  site.pair = nullptr;
  const Packing p = packed(due, site, Goal::kDeadline);
  CHECK(p.finish[1].s() == Approx(2));
  CHECK(p.late.s() == Approx(0));
  CHECK(packed(due, site, Goal::kThroughput).late.s() == Approx(9));
}

TEST_CASE("pack: the choice is never worse than every job alone") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    std::vector<PackJob> jobs;
    for (unsigned i = 0; i < 6; ++i) jobs.push_back(job("j", 1 + (seed * 7 + i * 13) % 17, 1 + i));
    Site site{.gpus = 1 + seed % 3,
              .memory = Bytes::gib(39),
              .positions = 8,
              .slices = test::a100_slices()};
    site.pair = [&](std::size_t a, std::size_t b) {
      return std::pair(0.4 + 0.08 * static_cast<double>((a * 3 + b + seed) % 7),
                       0.4 + 0.08 * static_cast<double>((b * 3 + a + seed) % 7));
    };
    const Packing p = packed(jobs, site);
    CHECK(p.makespan <= p.makespan_alone);
    CHECK(packed(jobs, site, Goal::kCost).held.s() <= p.held_alone.s() * (1 + 1e-9));
    std::size_t placed = 0;
    for (const Placed& x : p.placements) placed += x.jobs.size();
    CHECK(placed == jobs.size());
  }
}

TEST_CASE("pack: jobs that cannot be placed are refused") {
  const auto refused = [](const std::vector<PackJob>& jobs) {
    const Result<Packing> packing =
        pack(jobs, {.gpus = 2, .memory = Bytes::gib(16)}, Goal::kThroughput);
    REQUIRE_FALSE(packing);
    return to_string(packing.error());
  };
  using Catch::Contains;
  CHECK_THAT(refused({}), Contains("no job"));
  CHECK_THAT(refused({job("a", 1, 17)}), Contains("'a' needs 17"));
  PackJob wide = job("w", 1);
  wide.gpus = 3;
  CHECK_THAT(refused({wide}), Contains("3 GPUs") && Contains("1 to 2"));
  CHECK_THAT(refused(std::vector<PackJob>(65, job("a", 1))), Contains("64"));
}

}  // namespace
}  // namespace rehearse
