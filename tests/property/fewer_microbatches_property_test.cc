// A step from runs with few of its microbatches is the step with all of them. A failure prints the
// seed.

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "strategies/step/devices.h"
#include "strategies/step/fewer_microbatches.h"
#include "strategies/step/path_parts.h"
#include "strategies/step/run_program.h"
#include "strategies/step/step_interval.h"
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

/// The interval of a step whose closed runs at the ends of prices have all microbatches; counts those
/// that the prices widen.
Estimate<Seconds> interval_of_whole(Step step, const Spec& spec, const cluster::Cluster& cluster,
                                    const PredictOptions& options, std::size_t& reached) {
  const Result<Devices> devices = Devices::of(step.layout, cluster, spec, options.calibrations);
  REQUIRE(devices);
  const Situation situation =
      situation_of(step.layout, cluster, spec.training.microbatch, spec.plan.zero > 0);
  const Work work =
      work_of(step.layout, *devices, job_options(spec.conditions, situation, step.layout));
  Provenance provenance = work.provenance;
  for (const DeviceKind& kind : devices->kinds())
    provenance = std::max(provenance, kind.conditions.provenance);
  const bool calibrated =
      !step.lowered.pricings.empty() &&
      std::ranges::all_of(step.lowered.pricings, [](const auto& p) { return p.calibrated; });
  const Result<PriceEnds> ends =
      ends_of_prices(step.job, cluster, rules_of(spec, Fidelity::kClosed), true);
  REQUIRE(ends);
  const bool reaches = !step.lowered.collectives.empty() &&
                       (!calibrated || step.lowered.provenance >= Provenance::kExtrapolated);
  const PriceReach reach = reaches ? ends->reach() : PriceReach{};
  if (reach.up > step.communication * (step.links.high - 1)) ++reached;
  set_interval(step, spec, work, situation,
               {.prices = reach, .calibrated = calibrated, .provenance = provenance});
  return step.time;
}

TEST_CASE("few microbatches: times, occupancy and intervals are those of the whole step") {
  const cluster::Cluster cluster = test::a100_nodes(2);
  std::size_t fewer = 0, microbatches = 0, all_microbatches = 0, reached = 0;
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
    const Estimate<Seconds> interval = interval_of_whole(*whole, spec, cluster, options, reached);
    for (const Step* of : {&*step, &*whole}) {
      CHECK(equal(of->time.low, interval.low));
      CHECK(equal(of->time.high, interval.high));
    }
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
  CHECK(reached >= 3);
  CHECK(microbatches < all_microbatches / 2);
}

}  // namespace
}  // namespace rehearse::step
