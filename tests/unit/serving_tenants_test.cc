// Servers that share a device, by hand, and against servers alone.
#include <catch2/catch.hpp>

#include "sim/serving/load.h"
#include "sim/serving/tenants.h"
#include "tests/support/linear_pricer.h"

namespace rehearse::serving_tenants {
namespace {

using namespace serving;

using test::LinearPricer;

Picoseconds ms(double time) { return Picoseconds::from(Seconds::ms(time)); }

LinearPricer steps_of(double milliseconds) {
  LinearPricer pricer;
  pricer.step = Seconds::ms(milliseconds);
  return pricer;
}

Tenant tenant(const LinearPricer& pricer, const std::vector<Request>& requests) {
  return {.rules = {.overlapped = false, .blocks = 1000}, .pricer = pricer, .requests = requests};
}

TEST_CASE("a step slows down while a step of another server runs") {
  // Steps of 10 ms use the whole device. The first server has steps from 0 ms, the other one has one from 5 ms. 5 ms of
  // the first step run alone; from then on both have half the speed: it ends at 5 + 5 · 2 = 15 ms. The other's has
  // 10 - 5 ms left then, and ends at 25 ms, half through the next step, whose rest takes 5 ms. The third takes 10 ms.
  const LinearPricer pricer = steps_of(10);
  const std::vector<Request> first = {{.output = 3}}, second = {{.planned = ms(5)}};
  const std::vector<Tenant> both = {tenant(pricer, first), tenant(pricer, second)};
  const auto runs = run_tenants(both, std::nullopt);
  REQUIRE(runs);
  CHECK((*runs)[0].served[0].first == ms(15));
  CHECK((*runs)[0].served[0].last == ms(40));
  CHECK((*runs)[1].served[0].first == ms(25));
  REQUIRE((*runs)[0].steps.size() == 3);
  CHECK((*runs)[0].steps[1].each == ms(15));
}

TEST_CASE("steps that use half of the device each do not slow each other") {
  LinearPricer pricer = steps_of(10);
  pricer.use = 0.5;
  const std::vector<Request> first = {{.output = 3}}, second = {{.planned = ms(5)}};
  const std::vector<Tenant> both = {tenant(pricer, first), tenant(pricer, second)};
  const auto runs = run_tenants(both, std::nullopt);
  REQUIRE(runs);
  CHECK((*runs)[0].served[0].last == ms(30));
  CHECK((*runs)[1].served[0].first == ms(15));
  // A third one: 1.5 devices, so that all have two thirds of their speed.
  const std::vector<Tenant> three = {tenant(pricer, second), tenant(pricer, second),
                                     tenant(pricer, second)};
  const auto slow = run_tenants(three, std::nullopt);
  REQUIRE(slow);
  for (const Run& run : *slow) CHECK(run.served[0].first == ms(20));
}

TEST_CASE("servers take turns, and give them away when they have no step") {
  // Quanta of 4 ms, switches of 1 ms, a step of 6 ms each: the first runs 0 - 4 and 10 - 12 ms, the other 5 - 9 and
  // 13 - 15 ms.
  const LinearPricer pricer = steps_of(6);
  const std::vector<Request> one = {{}};
  const std::vector<Tenant> both = {tenant(pricer, one), tenant(pricer, one)};
  const Turns turns{.quantum = Seconds::ms(4), .change = Seconds::ms(1)};
  const auto runs = run_tenants(both, turns);
  REQUIRE(runs);
  CHECK((*runs)[0].served[0].last == ms(12));
  CHECK((*runs)[1].served[0].last == ms(15));
  // Without a switch the second follows at once.
  const auto quick = run_tenants(both, Turns{.quantum = Seconds::ms(4), .change = Seconds::s(0)});
  REQUIRE(quick);
  CHECK((*quick)[1].served[0].last == ms(12));
}

TEST_CASE("a server without a neighbour's step is as fast as alone") {
  const LinearPricer pricer = steps_of(7);
  for (const bool overlapped : {false, true})
    for (const std::int64_t in_flight : {std::int64_t{0}, std::int64_t{5}}) {
      const std::vector<Request> requests = draw(
          {.count = 60, .input = {1, 700}, .output = {1, 40}, .arrivals = Arrivals{.rate = 12}},
          overlapped ? 3 : 4);
      Tenant alone = tenant(pricer, requests);
      alone.rules.overlapped = overlapped;
      alone.rules.tokens_per_step = 512;
      alone.rules.blocks = 90;
      alone.options = {.most_in_flight = in_flight, .scale = 1.1, .single = true};
      const auto expected = run(alone.rules, pricer, requests, alone.options);
      REQUIRE(expected);
      // The neighbour arrives when all have ended.
      const std::vector<Request> late = {{.planned = Picoseconds::from(Seconds::s(3600))}};
      for (const std::optional<Turns>& turns : {std::optional<Turns>{}, std::optional{Turns{}}}) {
        const std::vector<Tenant> both = {alone, tenant(pricer, late)};
        const auto shared = run_tenants(both, turns);
        REQUIRE(shared);
        CHECK((*shared)[0].served == expected->served);
      }
    }
}

TEST_CASE("two equal servers together give half the tokens per second each") {
  // Both are always busy: no work is lost and none is done twice.
  const LinearPricer pricer = steps_of(5);
  const std::vector<Request> requests =
      draw({.count = 40, .input = {1, 300}, .output = {5, 60}}, 7);
  const std::vector<Tenant> both = {tenant(pricer, requests), tenant(pricer, requests)};
  const auto shared = run_tenants(both, std::nullopt);
  const auto alone = run(both[0].rules, pricer, requests, {.single = true});
  REQUIRE(shared);
  REQUIRE(alone);
  for (std::size_t i = 0; i < requests.size(); ++i)
    for (const Run& run : *shared)
      CHECK(run.served[i].last.seconds().s() ==
            Approx(2 * alone->served[i].last.seconds().s()).epsilon(1e-9));
}

}  // namespace
}  // namespace rehearse::serving_tenants
