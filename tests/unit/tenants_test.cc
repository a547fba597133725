// Tenants of one device, against what can be said by hand.
#include "models/sharing/tenants.h"

#include <catch2/catch.hpp>

#include "tests/support/tenants.h"

namespace rehearse {
namespace {

using Catch::Contains;
using sharing::Policy;
using sharing::Sharing;
using sharing::Tenant;
using sharing::TenantStep;
using test::chain;

std::vector<TenantStep> steps(const std::vector<Tenant>& tenants, const Sharing& sharing) {
  Result<std::vector<TenantStep>> steps = sharing::share_devices(tenants, sharing);
  INFO((steps ? "" : to_string(steps.error())));
  REQUIRE(steps);
  for (const TenantStep& step : *steps)
    CHECK((step.shared - step.alone).us() == Approx(step.loss.total().us()).margin(1e-6));
  return std::move(*steps);
}

TEST_CASE(
    "caps: a kernel that asks for more multiprocessors than its cap is slower in proportion") {
  // All of the device under 40 %: 2.5 times as long. Half of it under 60 %: as before.
  const auto found = steps(
      {chain("a", {{.kernel_us = 100}}), chain("b", {{.kernel_us = 100, .multiprocessors = 0.5}})},
      {.policy = Policy::kMps, .caps = {0.4, 0.6}});
  CHECK(found[0].shared.us() == Approx(250));
  CHECK(found[0].loss.compute.us() == Approx(150));
  CHECK(found[1].shared.us() == Approx(100));
  CHECK(found[1].slowdown() == Approx(1));
}

TEST_CASE("bandwidth is divided by demand, including the part that a capped neighbour leaves") {
  // a is capped to 0.4 of its speed and then draws 0.2 of the bandwidth; b asks for 0.9 and gets
  // 0.8: 100 us become 112.5 us.
  const auto found =
      steps({chain("a", {{.kernel_us = 100, .multiprocessors = 1, .bandwidth = 0.5}}),
             chain("b", {{.kernel_us = 100, .multiprocessors = 0.5, .bandwidth = 0.9}})},
            {.policy = Policy::kMps, .caps = {0.4, 0.6}});
  CHECK(found[0].shared.us() == Approx(250));
  CHECK(found[1].shared.us() == Approx(112.5));
  CHECK(found[1].loss.memory_bandwidth.us() == Approx(12.5));
  CHECK(found[1].loss.compute.us() == Approx(0).margin(1e-9));
}

TEST_CASE(
    "two kernels that request the whole device get half each, and one uses the gaps of the other") {
  // Always two: half each. 100 us of kernel and 100 us of host of both: kernels of one lie in the
  // gaps of the other, once they have found them.
  const auto busy = steps({chain("a", {{.kernel_us = 100}}), chain("b", {{.kernel_us = 100}})},
                          {.policy = Policy::kMps});
  CHECK(busy[0].slowdown() == Approx(2));
  CHECK(busy[1].slowdown() == Approx(2));
  const auto idle = steps({chain("a", {{.kernel_us = 100, .gap_us = 100}}),
                           chain("b", {{.kernel_us = 10, .gap_us = 190}})},
                          {.policy = Policy::kMps});
  CHECK(idle[0].slowdown() < 1.06);
}

TEST_CASE("a collective of one job slows the kernels of the other where they share space") {
  // Kernels of 100 us lose 0.5 of the collective's share of 0.2, and 10 us of it: 10 + 2 us.
  const auto found = [](Policy policy) {
    return steps({chain("a", {{.kernel_us = 100}}),
                  chain("b", {{.kernel_us = 0, .gap_us = 100, .gap = program::Task::kCollective}})},
                 {.policy = policy});
  };
  CHECK(found(Policy::kMps)[0].shared.us() == Approx(112));
  CHECK(found(Policy::kMps)[0].loss.compute.us() == Approx(12));
  CHECK(found(Policy::kMps)[1].slowdown() == Approx(1));
  // The first has priority.
  CHECK(found(Policy::kPriority)[0].slowdown() == Approx(1));
  CHECK(found(Policy::kTimeSlice)[0].slowdown() == Approx(1));
}

TEST_CASE("time slices: a quantum each, and the time of a switch is lost") {
  // Both always busy: of every 2 · (2 + 0.5) ms a tenant has 2.
  const Sharing sharing{
      .policy = Policy::kTimeSlice, .quantum = Seconds::ms(2), .change = Seconds::us(500)};
  const auto found =
      steps({chain("a", {{.kernel_us = 8000}}), chain("b", {{.kernel_us = 8000}})}, sharing);
  for (const TenantStep& step : found) {
    CHECK(step.slowdown() == Approx(2.5).epsilon(0.01));
    CHECK(step.loss.waiting.ms() == Approx(8).epsilon(0.03));
    CHECK(step.loss.changes.ms() == Approx(4).epsilon(0.06));
  }
}

TEST_CASE("a turn survives gaps up to the length of a switch") {
  // 20 kernels of 50 us with 10 us between them are one turn to the others; with changes that are
  // shorter than the gaps each gap is a change.
  std::vector<test::Piece> pieces(20, {.kernel_us = 50, .gap_us = 10});
  const std::vector<Tenant> tenants = {chain("a", pieces), chain("b", {{.kernel_us = 4000}})};
  const auto kept =
      steps(tenants,
            {.policy = Policy::kTimeSlice, .quantum = Seconds::ms(2), .change = Seconds::us(20)});
  const auto lost = steps(
      tenants, {.policy = Policy::kTimeSlice, .quantum = Seconds::ms(2), .change = Seconds::us(5)});
  CHECK(kept[0].slowdown() == Approx(2).epsilon(0.1));
  CHECK(lost[0].slowdown() > 10);
}

TEST_CASE("priority: the first tenant is as fast as alone, and the second has the rest") {
  // 60 us of kernel and 40 us of host: the second gets 40 of every 100 us.
  const auto found =
      steps({chain("a", {{.kernel_us = 60, .gap_us = 40}}), chain("b", {{.kernel_us = 1000}})},
            {.policy = Policy::kPriority});
  CHECK(found[0].slowdown() == Approx(1));
  CHECK(found[1].slowdown() == Approx(2.5).epsilon(0.02));
}

TEST_CASE("crossover: one computes while the other synchronises") {
  // C = 100, N = 20: an iteration of each every 200 us, in place of 120.
  const std::vector<test::Piece> iteration = {
      {.kernel_us = 30},
      {.kernel_us = 70},
      {.kernel_us = 0, .gap_us = 20, .gap = program::Task::kCollective}};
  const std::vector<Tenant> tenants = {chain("a", iteration), chain("b", iteration)};
  const auto turns = steps(tenants, {.policy = Policy::kCrossover});
  CHECK(turns[0].shared.us() == Approx(200));
  CHECK(turns[0].loss.waiting.us() == Approx(80));
  CHECK(turns[0].when_contended.us() == Approx(240));
  // Whole steps by turns: nothing is gained.
  const auto exclusive = steps(tenants, {.policy = Policy::kExclusive});
  CHECK(exclusive[0].shared.us() == Approx(240));
  CHECK(exclusive[1].shared.us() == Approx(240));
}

TEST_CASE("crossover: ops after the synchronisation belong to the next turn") {
  // 90 us, 20 us of communication, 10 us of optimizer: C is 100 all the same.
  const std::vector<test::Piece> iteration = {
      {.kernel_us = 90}, {.kernel_us = 10, .gap_us = 20, .gap = program::Task::kCollective}};
  const auto turns =
      steps({chain("a", iteration), chain("b", iteration)}, {.policy = Policy::kCrossover});
  CHECK(turns[0].shared.us() == Approx(200));
  CHECK(turns[1].shared.us() == Approx(200));
}

TEST_CASE("copies of both share the link to the host") {
  const std::vector<test::Piece> copy = {
      {.kernel_us = 100, .multiprocessors = 0, .bandwidth = 0, .host_link = 1}};
  for (const Policy policy : {Policy::kMps, Policy::kTimeSlice}) {
    const auto found = steps({chain("a", copy), chain("b", copy)}, {.policy = policy});
    CHECK(found[0].slowdown() == Approx(2));
    CHECK(found[0].loss.communication.us() == Approx(100));
  }
}

TEST_CASE("jobs that cannot share are one line") {
  const auto why = [](const std::vector<Tenant>& tenants, const Sharing& sharing) {
    const auto steps = sharing::share_devices(tenants, sharing);
    REQUIRE_FALSE(steps);
    return to_string(steps.error());
  };
  const Tenant computes = chain("a", {{.kernel_us = 100}});
  CHECK_THAT(why({computes, computes}, {.policy = Policy::kCrossover}),
             Contains("a has no communication during which"));
  CHECK_THAT(why({computes, chain("b", {})}, {}), Contains("a step of b takes no time"));
  CHECK_THAT(why({computes, chain("b", {{.kernel_us = 200000}})}, {}), Contains("thousand"));
  CHECK_THAT(why({computes, computes}, {.policy = Policy::kPriority}),
             Contains("makes almost no progress"));
}

}  // namespace
}  // namespace rehearse
