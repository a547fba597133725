#include "strategies/step/link_sharing.h"

#include <cmath>

#include <catch2/catch.hpp>

namespace rehearse::step {
namespace {

TEST_CASE("bursts on one link divide it, and the rest of the longer one has it alone") {
  // Both from 0 on, 4 s and 1 s alone: at half the speed until 2 s, when 3 s are left of the first.
  const Burst both[] = {{0, 4, {}, {1}}, {0, 1, {}, {1}}};
  CHECK(ends_of(both, 1) == std::vector<double>{5, 2});
  // Half a link each: nothing is lost. Three quarters each: two thirds of the speed for both.
  const Burst half[] = {{0, 4, {}, {0.5}}, {0, 4, {}, {0.5}}};
  CHECK(ends_of(half, 1) == std::vector<double>{4, 4});
  const Burst more[] = {{0, 4, {}, {0.75}}, {0, 4, {}, {0.75}}};
  CHECK(ends_of(more, 1)[0] == Approx(6));
  // The link of the first two is full; the third takes what its own link has left, which is all.
  const Burst apart[] = {{0, 2, {}, {1, 0}}, {0, 2, {}, {1, 0}}, {0, 2, {}, {0, 1}}};
  CHECK(ends_of(apart, 2) == std::vector<double>{4, 4, 2});
}

TEST_CASE("bursts begin at their time, and after others") {
  // The second begins at 1 s, meets the first until 3 s, and the third waits a second more.
  const Burst bursts[] = {
      {0, 2, {}, {1}}, {1, 2, {}, {1}}, {0, 1, {{0, 1}}, {1}}, {0, 0, {{2, 0.5}}, {}}};
  const std::vector<double> ends = ends_of(bursts, 1);
  CHECK(ends[0] == Approx(3));
  CHECK(ends[1] == Approx(4));
  CHECK(ends[2] == Approx(5));
  CHECK(ends[3] == Approx(5.5));
}

TEST_CASE(
    "stages that communicate all the time take turns, and those that hardly do are as alone") {
  const auto two = [](double communicating) {
    std::vector<LinkUser> users(2, {10, 10, {{communicating, {communicating}}}});
    const bool any = find_slower(users, 1);
    CHECK(any == (communicating > 0));
    CHECK(users[0].streams[0].slower == Approx(users[1].streams[0].slower));
    return users[0].streams[0].slower;
  };
  CHECK(two(10) == Approx(2).epsilon(1e-3));
  // s = 1 + s c / (10 + (s - 1) c): with c = 5 that is s² = s + 1.
  CHECK(two(5) == Approx((1 + std::sqrt(5.0)) / 2).epsilon(1e-3));
  CHECK(two(0.1) == Approx(1.01).epsilon(1e-3));
  std::vector<LinkUser> apart = {{10, 10, {{10, {10, 0}}}}, {10, 10, {{10, {0, 10}}}}};
  CHECK_FALSE(find_slower(apart, 2));
}

}  // namespace
}  // namespace rehearse::step
