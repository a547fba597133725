// Flows: the mean makespan of random flows against the expected one.
#include <cmath>

#include <catch2/catch.hpp>

#include "models/flow/flow.h"
#include "sim/base/random.h"

namespace rehearse::flow {
namespace {

/// The expected seconds of a step, and the probability that it succeeds: tries of s seconds each, of
/// which the one after retry k happens with the probability p^k, after a wait of b f^(k - 1).
struct Expected {
  double seconds, succeeds;
};
Expected expected_of(const FlowStep& step) {
  const double once = step.poll ? seen_at(*step.poll, step.time) : step.time;
  Expected expected{once, 1 - std::pow(step.fails, step.retries + 1)};
  double wait = step.back_off ? step.back_off->first : 0;
  for (std::uint32_t k = 1; k <= step.retries; ++k) {
    expected.seconds += std::pow(step.fails, k) * (once + wait);
    if (step.back_off) wait = std::min(wait * step.back_off->factor, step.back_off->most);
  }
  return expected;
}

// A flow whose branches lead forward: from the last step on, E(s) = transition + T(s) + P(s) Σ share
// E(to) + (1 - P(s)) E(otherwise), where a flow that fails has no time left.
TEST_CASE("flow: the mean makespan under failures is the expected one") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Flow flow{.transition = random.uniform(), .runs = 4000, .seed = seed};
    const std::size_t steps = 1 + random.below(6);
    for (std::size_t s = 0; s < steps; ++s) {
      FlowStep step{.time = 100 * random.uniform()};
      if (random.below(2) == 0)
        step.poll = Waits{.first = 0.1 + random.uniform(),
                          .factor = 1 + random.uniform(),
                          .most = 1.1 + 20 * random.uniform()};
      if (random.below(3) > 0) {
        step.fails = 0.7 * random.uniform();
        step.retries = random.below(6);
        step.back_off = Waits{.first = 5 * random.uniform() + 0.01,
                              .factor = 1 + 2 * random.uniform(),
                              .most = 5.1 + 40 * random.uniform()};
      }
      const auto later = [&] {
        return s + 1 + random.below(static_cast<std::uint32_t>(steps - s));
      };
      const double share = random.uniform();
      step.then = {{later(), share}, {later(), 1 - share}};
      if (random.below(2) == 0) step.otherwise = later();
      flow.steps.push_back(std::move(step));
    }
    std::vector<double> seconds(steps + 1, 0), completes(steps + 1, 1);
    for (std::size_t s = steps; s-- > 0;) {
      const FlowStep& step = flow.steps[s];
      const auto [once, succeeds] = expected_of(step);
      seconds[s] = flow.transition + once;
      completes[s] = 0;
      for (const Branch& branch : step.then) {
        seconds[s] += succeeds * branch.share * seconds[branch.to];
        completes[s] += succeeds * branch.share * completes[branch.to];
      }
      if (!step.otherwise) continue;
      seconds[s] += (1 - succeeds) * seconds[*step.otherwise];
      completes[s] += (1 - succeeds) * completes[*step.otherwise];
    }
    const auto got = run(flow);
    REQUIRE(got);
    INFO("seed " << seed << ": " << got->makespan << " +- " << got->standard_error << " against "
                 << seconds[0]);
    // 60 flows: 4.5 standard errors are exceeded by chance in one of 2,500 such tests.
    CHECK(std::abs(got->makespan - seconds[0]) <= 4.5 * got->standard_error + 1e-9 * seconds[0]);
    const double of_share = std::sqrt(completes[0] * (1 - completes[0]) / flow.runs);
    CHECK(std::abs(got->completed - completes[0]) <= 4.5 * of_share + 1e-9);
  }
}

}  // namespace
}  // namespace rehearse::flow
