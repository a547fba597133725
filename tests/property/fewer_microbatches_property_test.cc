// A step from runs with few of its microbatches is the step with all of them. A failure prints the
// seed.

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "strategies/step/fewer_microbatches.h"
#include "strategies/step/path_parts.h"
#include "tests/support/a100_nodes.h"
#include "tests/support/random.h"

namespace rehearse::step {
namespace {

using strategies::Schedule;

Spec random_spec(test::Random& random) {
  strategies::Plan plan{.data = 1U << test::between(random, 0, 2),
                        .tensor = 1U << test::between(random, 0, 1),
                        .pipeline = 1U << test::between(random, 0, 2)};
  plan.schedule = static_cast<Schedule>(test::between(random, 0, 4));
  if (plan.schedule == Schedule::kInterleaved) plan.interleave = plan.pipeline > 1 ? 2 : 1;
  plan.zero = test::between(random, 0, 3);
  plan.overlap_gradients = test::between(random, 0, 1) == 1;
  const std::uint32_t microbatches = plan.pipeline * test::between(random, 60, 200);
  Spec spec =
      test::zoo_spec("gpt2_small",
                     {.global_batch = static_cast<double>(plan.data * microbatches),
                      .microbatch = 1,
                      .recompute = static_cast<strategies::Recompute>(test::between(random, 0, 2))},
                     plan);
  if (test::between(random, 0, 1) == 1) spec.conditions.host = host::implementation_named("eager");
  return spec;
}

TEST_CASE("few microbatches: times, occupancy and intervals are those of the whole step") {
  const cluster::Cluster cluster = test::a100_nodes(2);
  std::size_t fewer = 0, microbatches = 0, all_microbatches = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    test::Random random(seed);
    const Spec spec = random_spec(random);
    PredictOptions options{
        .fidelity = test::between(random, 0, 1) == 1 ? Fidelity::kMessage : Fidelity::kClosed,
        .counterfactuals = false};
    const Result<Step> whole = predict(spec, cluster, options);
    if (!whole) continue;  // a schedule that the plan cannot have
    options.timeline = false;
    options.path = true;
    const Result<Step> step = predict(spec, cluster, options);
    INFO((step ? "" : to_string(step.error())));
    REQUIRE(step);
    CHECK(whole->has_run());
    CHECK_FALSE(step->has_run());
    const std::optional<FewerMicrobatches> of_few =
        fewer_microbatches(step->layout, {&spec.training, &spec.plan}, kLeastFill);
    if (!of_few) continue;
    ++fewer;
    microbatches += of_few->more.microbatches;
    all_microbatches += step->layout.microbatches;
    const double length = whole->time.value.s();
    const auto equal = [&](Seconds a, Seconds b) {
      return a.s() == Approx(b.s()).epsilon(0).margin(2e-4 * length);
    };
    CHECK(equal(step->time.value, whole->time.value));
    CHECK(equal(step->time.low, whole->time.low));
    CHECK(equal(step->time.high, whole->time.high));
    CHECK(equal(step->communication, whole->communication));
    CHECK(step->host_share == Approx(whole->host_share).margin(1e-3));
    const program::Occupancy &a = step->occupancy, &b = whole->occupancy;
    for (Seconds program::Occupancy::*part :
         {&program::Occupancy::total, &program::Occupancy::compute,
          &program::Occupancy::exposed_communication, &program::Occupancy::bubble,
          &program::Occupancy::launch, &program::Occupancy::idle, &program::Occupancy::recompute,
          &program::Occupancy::optimizer})
      CHECK(equal(a.*part, b.*part));
    const program::PathParts path = path_of(*step).parts, whole_path = path_of(*whole).parts;
    double path_length = 0;
    for (const program::PathPart& part : path.parts) path_length += part.time.seconds().s();
    CHECK(path_length == Approx(length).epsilon(1e-3));
    for (const program::PathPart& part : whole_path.parts) {
      double time = 0;
      for (const program::PathPart& each : path.parts)
        if (each.kind == part.kind && each.name == part.name) time += each.time.seconds().s();
      INFO(part.name << ": " << time << " of " << length << " s");
      CHECK(time == Approx(part.time.seconds().s()).epsilon(0).margin(1e-3 * length));
    }
    CHECK(memory::fullest(step->memory).peak.value == memory::fullest(whole->memory).peak.value);
  }
  CHECK(fewer >= 15);
  CHECK(microbatches < all_microbatches / 2);
}

}  // namespace
}  // namespace rehearse::step
