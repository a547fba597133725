// The critical path in parts: what sums, what counts as bubble, where times come from.
#include "strategies/step/path_parts.h"

#include <catch2/catch.hpp>

#include "models/job/program_ops.h"
#include "models/workload/zoo.h"
#include "sim/base/yaml.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/step/predict.h"
#include "tests/support/a100_nodes.h"

namespace rehearse::step {
namespace {

using program::PartKind;
using program::PathPart;
using program::PathParts;
using program::PathShare;

TEST_CASE("an interval of time is divided to the picosecond, for any weights") {
  program::PathSum sum;
  const auto share = [](std::string op, double weight, Provenance provenance) {
    return PathShare{.kind = PartKind::kCompute,
                     .part = "norms",
                     .op = std::move(op),
                     .weight = weight,
                     .low = 0.5,
                     .high = 2,
                     .provenance = provenance};
  };
  const std::vector<PathShare> thirds = {share("a", 1, Provenance::kRecorded),
                                         share("b", 1, Provenance::kRecorded),
                                         share("c", 1, Provenance::kDatasheet)};
  sum.add(Picoseconds(100), thirds);
  sum.add(Picoseconds(1), thirds);
  sum.add(Picoseconds(7), PathShare{.kind = PartKind::kLaunch, .part = "launch gaps", .op = "a"});
  const std::vector<PathPart> parts = sum.parts();
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].time == Picoseconds(101));
  CHECK(parts[0].from[0] + parts[0].from[3] == Picoseconds(101));
  CHECK(parts[0].from[3].count() == Approx(33.7).margin(1));
  CHECK(parts[0].estimate.low.s() == Approx(50.5e-12));
  CHECK(parts[0].estimate.high.s() == Approx(202e-12));
  CHECK(parts[0].estimate.provenance == Provenance::kDatasheet);
  REQUIRE(parts[0].ops.size() == 3);
  CHECK(parts[1].kind == PartKind::kLaunch);
  CHECK(parts[1].time == Picoseconds(7));
}

struct Predicted {
  Step step;
  PathParts path;
};
Predicted predicted_path(const Spec& spec, const cluster::Cluster& cluster, Fidelity fidelity) {
  Step step = test::predicted(spec, cluster, fidelity);
  PathParts path = path_of(step).parts;
  return {std::move(step), std::move(path)};
}

Seconds of_kind(const PathParts& path, PartKind kind) {
  Seconds sum = Seconds::s(0);
  for (const PathPart& part : path.parts)
    if (part.kind == kind) sum += part.time.seconds();
  return sum;
}

bool has(const PathParts& path, std::string_view part) {
  return std::any_of(path.parts.begin(), path.parts.end(),
                     [&](const PathPart& p) { return p.name == part; });
}

TEST_CASE("parts of the path add up to the step exactly, and the provenances to each part") {
  const cluster::Cluster cluster = test::a100_nodes(2);
  const strategies::Training gpt{.global_batch = 64, .microbatch = 2};
  strategies::Training full = gpt;
  full.recompute = strategies::Recompute::kFull;
  const std::vector<Spec> specs = {
      test::zoo_spec("gpt2_medium", gpt, {.data = 8}),
      test::zoo_spec("gpt2_medium", full, {.data = 2, .tensor = 2, .pipeline = 4}),
      test::zoo_spec("gpt2_medium", gpt, {.data = 16, .zero = 3}),
      test::zoo_spec("gpt2_medium", gpt,
                     {.pipeline = 4, .schedule = strategies::Schedule::kZeroBubble}),
      test::zoo_spec("gpt2_medium", {.global_batch = 8, .microbatch = 1},
                     {.tiers = strategies::tiers_of(strategies::Offload::kOptimizer)}),
      test::zoo_spec("resnet50", {.global_batch = 512, .microbatch = 64}, {.data = 8})};
  for (const Spec& spec : specs)
    for (const Fidelity fidelity : {Fidelity::kClosed, Fidelity::kMessage}) {
      const auto [step, path] = predicted_path(spec, cluster, fidelity);
      INFO(spec.workload.name << ", fidelity " << static_cast<int>(fidelity));
      CHECK(path.total() == step.timeline.makespan());
      CHECK(path.total() == Picoseconds::from(step.time.value));
      double shares = 0;
      for (const double share : path.shares_by_provenance()) shares += share;
      CHECK(shares == Approx(1));
      for (const PathPart& part : path.parts) {
        CHECK(part.time > Picoseconds(0));
        Picoseconds from(0);
        for (const Picoseconds p : part.from) from += p;
        CHECK(from == part.time);
        CHECK(part.estimate.low <= part.estimate.value);
        CHECK(part.estimate.value <= part.estimate.high);
        Seconds ops = Seconds::s(0);
        for (const program::PathOp& op : part.ops) ops += op.time.value;
        CHECK(ops.s() == Approx(part.time.seconds().s()).epsilon(1e-9));
      }
      // Without communication the step is no shorter than the rest of the path, where ranks do not
      // wait for each other in another order then.
      if (spec.plan.pipeline == 1)
        CHECK((of_kind(path, PartKind::kCommunication) + of_kind(path, PartKind::kMemory)).s() >=
              (step.occupancy.exposed_communication - step.time.value * 1e-6).s());
      CHECK((of_kind(path, PartKind::kRecompute) > Seconds::s(0)) ==
            (spec.training.recompute != strategies::Recompute::kNone));
      CHECK((of_kind(path, PartKind::kBubble) > step.time.value * 0.01) ==
            (spec.plan.pipeline > 1));
    }
}

TEST_CASE("one device: its path is its computing, by kinds of ops") {
  const cluster::Cluster cluster = test::a100_nodes(1);
  const auto [step, path] =
      predicted_path(test::zoo_spec("gpt2_medium", {.global_batch = 8, .microbatch = 8}, {}),
                     cluster, Fidelity::kClosed);
  CHECK(of_kind(path, PartKind::kCompute).s() ==
        Approx((step.occupancy.compute - step.occupancy.optimizer).s()).epsilon(1e-6));
  CHECK(of_kind(path, PartKind::kOptimizer).s() ==
        Approx(step.occupancy.optimizer.s()).epsilon(1e-6));
  CHECK(of_kind(path, PartKind::kLaunch).s() ==
        Approx(step.occupancy.launch.s()).margin(step.time.value.s() * 1e-6));
  CHECK(of_kind(path, PartKind::kIdle).s() == Approx(step.occupancy.idle.s()));
  CHECK(path.ranks == 1);
  for (const char* part : {"matrix products", "attention", "norms", "optimizer", "once a step"}) {
    INFO(part);
    CHECK(has(path, part));
  }
}

TEST_CASE("the bubble is the wait of the last rank for others, except for sends") {
  const cluster::Cluster cluster = test::a100_nodes(1);
  const auto bubble = [&](double batch) {
    const auto [step, path] = predicted_path(
        test::zoo_spec("gpt2_medium", {.global_batch = batch, .microbatch = 1}, {.pipeline = 4}),
        cluster, Fidelity::kClosed);
    CHECK(path.ranks == 4);
    // Every stage is a rank of its own, and so a range.
    const std::vector<job::RankRange> ranks = job::occupancy(step.job, step.lowered, step.timeline);
    const Seconds others = of_kind(path, PartKind::kBubble);
    CHECK(others.s() ==
          Approx(ranks.at(path.ends_on).occupancy.bubble.s())
              .margin((of_kind(path, PartKind::kCommunication) + step.time.value * 1e-6).s()));
    return others / step.time.value;
  };
  CHECK(bubble(8) > 0.1);
  CHECK(bubble(64) < bubble(8) / 3);
}

TEST_CASE("collectives on the path are listed by purpose") {
  const cluster::Cluster cluster = test::a100_nodes(1);
  const auto [step, path] = predicted_path(
      test::zoo_spec("gpt2_medium", {.global_batch = 64, .microbatch = 2}, {.tensor = 8}), cluster,
      Fidelity::kClosed);
  CHECK(has(path, "tensor-parallel all_reduce"));
}

TEST_CASE("waiting for samples is a separate part") {
  const cluster::Cluster cluster = test::a100_nodes(1);
  const Spec spec =
      test::zoo_spec("resnet50", {.global_batch = 512, .microbatch = 64}, {.data = 8});
  Result<Step> step = predict(spec, cluster, {.fidelity = Fidelity::kClosed});
  REQUIRE(step);
  step->occupancy.input = Seconds::ms(50);
  step->time.value += Seconds::ms(50);
  StepPath with_input = path_of(*step);
  add_input(*step, with_input);
  const PathParts& path = with_input.parts;
  CHECK(of_kind(path, PartKind::kInput).s() == Approx(0.05));
  CHECK(path.total() == Picoseconds::from(step->time.value));
}

}  // namespace
}  // namespace rehearse::step
