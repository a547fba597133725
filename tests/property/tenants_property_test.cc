// Properties of tenants that share a device, on random chains of kernels. A failure prints the
// seed.
#include <algorithm>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/support/tenants.h"

namespace rehearse {
namespace {

using sharing::Policy;
using sharing::Sharing;
using sharing::Tenant;
using sharing::TenantStep;
using sharing::Together;
using test::random_chain;

constexpr Policy kAll[] = {Policy::kMps, Policy::kPriority, Policy::kTimeSlice, Policy::kCrossover,
                           Policy::kExclusive};

Together together(const std::vector<Tenant>& tenants, const Sharing& sharing,
                  const std::vector<std::uint32_t>& periods) {
  Result<Together> run = sharing::run_together(tenants, sharing, periods);
  INFO((run ? "" : to_string(run.error())));
  REQUIRE(run);
  return std::move(*run);
}

TEST_CASE("a tenant alone is exactly as fast as without sharing") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    for (const Policy policy : kAll) {
      INFO("seed " << seed << ", " << sharing::kPolicyNames[static_cast<int>(policy)]);
      const Tenant tenant = random_chain("a", seed);
      const Together run = together({tenant}, {.policy = policy}, {3});
      for (std::size_t p = 0; p < 3; ++p) {
        const graph::Timeline period = run.of_period(0, p);
        for (std::size_t i = 0; i < tenant.timeline.ops.size(); ++i) {
          REQUIRE(period.ops[i].start == tenant.timeline.ops[i].start);
          REQUIRE(period.ops[i].end == tenant.timeline.ops[i].end);
        }
      }
    }
}

TEST_CASE("with others no tenant is faster than alone, and its losses add up") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    for (const Policy policy : kAll) {
      INFO("seed " << seed << ", " << sharing::kPolicyNames[static_cast<int>(policy)]);
      const std::vector<Tenant> tenants = {random_chain("a", seed), random_chain("b", seed + 1000)};
      const auto steps = sharing::share_devices(
          tenants, {.policy = policy, .quantum = Seconds::us(200), .change = Seconds::us(10)});
      INFO((steps ? "" : to_string(steps.error())));
      REQUIRE(steps);
      for (const TenantStep& step : *steps) {
        // A period ends on a whole picosecond: each op may round.
        CHECK(step.slowdown() > 1 - 1e-9);
        CHECK(step.when_contended >= step.shared);
        CHECK((step.shared - step.alone - step.loss.total()).us() == Approx(0).margin(1e-9));
      }
      if (policy == Policy::kPriority) CHECK((*steps)[0].slowdown() == Approx(1).epsilon(1e-9));
    }
}

TEST_CASE("work is conserved: tenants that are always busy use exactly the whole device") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 rng(seed);
    std::vector<Tenant> tenants;
    std::vector<std::uint32_t> periods;
    double work_us = 0;
    for (int t = 0; t < 3; ++t) {
      std::vector<test::Piece> pieces;
      for (std::uint64_t i = 0; i <= rng() % 5; ++i)
        pieces.push_back({.kernel_us = static_cast<double>(1 + rng() % 500)});
      periods.push_back(static_cast<std::uint32_t>(1 + rng() % 5));
      for (const test::Piece& piece : pieces) work_us += piece.kernel_us * periods.back();
      tenants.push_back(test::chain("t", pieces));
    }
    for (const Policy policy :
         {Policy::kMps, Policy::kPriority, Policy::kTimeSlice, Policy::kExclusive}) {
      const Together run = together(tenants, {.policy = policy, .change = Seconds::s(0)}, periods);
      CHECK(run.timeline.makespan().seconds().us() == Approx(work_us).epsilon(1e-9));
    }
  }
}

TEST_CASE(
    "no tenant takes more multiprocessors than its cap, and all together take at most all of "
    "them") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    const std::vector<Tenant> tenants = {random_chain("a", seed), random_chain("b", seed + 500)};
    const double cap = 0.1 + 0.008 * static_cast<double>(seed);
    const Together run =
        together(tenants, {.policy = Policy::kMps, .caps = {cap, 1 - cap}}, {4, 4});
    double all = 0, bandwidth = 0;
    for (std::size_t t = 0; t < 2; ++t)
      for (const sharing::DeviceOp& op : tenants[t].on_device) {
        const Seconds length = tenants[t].program.programs[0].ops[op.op].duration->seconds();
        const double share = t == 0 ? cap : 1 - cap;
        all += 4 * length.s() * op.multiprocessors;
        bandwidth += 4 * length.s() * op.bandwidth;
        for (std::size_t p = 0; p < 4; ++p) {
          const graph::OpTimes times = run.of_period(t, p)[OpId(op.op)];
          CHECK((times.end - times.start).seconds().s() * (1 + 1e-6) >=
                length.s() * std::max(1.0, op.multiprocessors / share));
        }
      }
    const double makespan = run.timeline.makespan().seconds().s() * (1 + 1e-6);
    CHECK(all <= makespan);
    CHECK(bandwidth <= makespan);
  }
}

TEST_CASE("the same tenants share in the same way, regardless of concurrent runs") {
  const std::vector<Tenant> tenants = {random_chain("a", 7), random_chain("b", 8)};
  for (const Policy policy : kAll) {
    const auto times = [&] { return together(tenants, {.policy = policy}, {20, 20}).timeline; };
    const graph::Timeline first = times();
    std::vector<graph::Timeline> others(4);
    std::vector<std::thread> threads;
    for (graph::Timeline& other : others)
      threads.emplace_back([&, policy] {
        Result<Together> run =
            sharing::run_together(tenants, {.policy = policy}, std::vector<std::uint32_t>{20, 20});
        if (run) other = std::move(run->timeline);
      });
    for (std::thread& thread : threads) thread.join();
    for (const graph::Timeline& other : others) {
      REQUIRE(other.ops.size() == first.ops.size());
      for (std::size_t i = 0; i < first.ops.size(); ++i)
        REQUIRE(other.ops[i].end == first.ops[i].end);
    }
  }
}

}  // namespace
}  // namespace rehearse
