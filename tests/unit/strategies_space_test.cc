// Spaces of plans: what is in them, in which order, and what is left out.
#include <set>
#include <tuple>

#include <catch2/catch.hpp>

#include "strategies/check_plan.h"
#include "strategies/lay_out.h"
#include "strategies/plan_fields.h"
#include "strategies/search/space.h"
#include "tests/support/tiny_models.h"

namespace rehearse::strategies {
namespace {

Space space_of(const workload::Workload& workload, std::uint32_t ranks, const Axes& axes = {},
               const Training& training = {.global_batch = 16}, const Plan& plan = {}) {
  Result<Space> space = Space::of(workload, training, plan, ranks, axes);
  REQUIRE(space);
  return std::move(*space);
}

auto key_of(const Candidate& c) {
  const auto& [t, p] = c;
  return std::tuple(p.data, p.tensor, p.pipeline, p.context, p.expert, p.interleave, t.microbatch,
                    p.schedule, p.zero, t.recompute, plan_field("offload").at.get(c), p.placement);
}

}  // namespace

TEST_CASE("A space holds each plan of all ranks once, and each can be laid out") {
  const workload::Workload gpt = test::tiny_gpt({});
  const Space space = space_of(gpt, 8);
  std::set<decltype(key_of(space.at(0)))> seen;
  for (std::uint64_t i = 0; i < space.size(); ++i) {
    const Candidate c = space.at(i);
    CHECK(ranks_of(c.plan) == 8);
    CHECK(check_plan(gpt, c.training, c.plan).has_value());
    CHECK(seen.insert(key_of(c)).second);
    if (i % 97 == 0) CHECK(lay_out(gpt, c.training, c.plan).has_value());
  }
  // tensor, pipeline, context and data of 1, 2, 4 and 8 with product 8: 20 of 35 have some context
  // or more; 8 layers take every pipeline.
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> degrees;
  for (std::uint64_t i = 0; i < space.size(); ++i) {
    const Plan p = space.at(i).plan;
    degrees.insert({p.tensor, p.pipeline, p.context});
  }
  CHECK(degrees.size() == 20);
}

TEST_CASE("A space keeps the value of every field that the table says is searched") {
  const workload::Workload gpt = test::tiny_gpt({.experts = 4});
  const Space all = space_of(gpt, 8, {.ranks_per_node = 2});
  for (const Field<Candidate>& field : plan_fields()) {
    if (field.axis.keep == nullptr) continue;
    if (field.at.section == Section::kCollectives && field.name != "all_to_all")
      continue;  // tried on the best plans
    INFO(field.name);
    std::set<double> values;
    for (std::uint64_t i = 0; i < all.size(); i += 7) values.insert(*field.at.get(all.at(i)));
    CHECK(values.size() > 1);
    for (const double value : values) {
      Axes axes;
      field.axis.keep(axes, value);
      const Result<Space> saved = Space::of(gpt, {.global_batch = 16}, {}, 8, axes);
      if (!saved) continue;  // alone it divides nothing
      for (std::uint64_t i = 0; i < saved->size(); i += 11)
        CHECK(field.at.get(saved->at(i)) == value);
    }
  }
}

TEST_CASE("Two ranks and one sample leave few plans, counted by hand") {
  // Without samples to divide data is 1: tensor 2, pipeline 2 or context 2. Nothing shares in the
  // first two. Recomputation: none or selective, as scores alone are kept by name; four offloads.
  const workload::Workload gpt = test::tiny_gpt({.flash = false});
  const Axes axes{
      .schedule = {Schedule::k1f1b}, .recompute = {Recompute::kNone}, .offload = {Offload::kNone}};
  const Space space = space_of(gpt, 2, axes, {.global_batch = 1});
  // Context does not go around unfused attention.
  REQUIRE(space.size() == 2);
  CHECK(space.at(0).plan.pipeline == 2);
  CHECK(space.at(1).plan.tensor == 2);
  const Space fused = space_of(test::tiny_gpt({}), 2, axes, {.global_batch = 1});
  // Context ranks hold the same weights: zero 0 to 3.
  CHECK(fused.size() == 2 + 4);
}

TEST_CASE("Fixed fields and fields that are not axes keep their values") {
  const workload::Workload gpt = test::tiny_gpt({});
  const Space space = space_of(
      gpt, 8, {.tensor = {2}, .microbatch = {2}, .zero = {1}, .recompute = {Recompute::kFull}},
      {.global_batch = 16}, {.overlap_gradients = false, .bucket = Bytes::mib(7)});
  REQUIRE(space.size() > 0);
  for (std::uint64_t i = 0; i < space.size(); ++i) {
    const Candidate c = space.at(i);
    CHECK(c.plan.tensor == 2);
    CHECK(c.training.microbatch == 2);
    CHECK(c.training.recompute == Recompute::kFull);
    CHECK((c.plan.zero == 1 || c.plan.data * c.plan.context == 1));
    CHECK_FALSE(c.plan.overlap_gradients);
    CHECK(c.plan.bucket == Bytes::mib(7));
    CHECK(c.plan.sequence_parallel);
  }
}

TEST_CASE("Values without effect are omitted") {
  const workload::Workload mlp = test::tiny_mlp(4, 64);
  const Space alone = space_of(mlp, 1, {}, {.global_batch = 4});
  for (std::uint64_t i = 0; i < alone.size(); ++i) {
    CHECK(alone.at(i).plan.zero == 0);
    CHECK(alone.at(i).plan.schedule == Schedule::k1f1b);
    CHECK(alone.at(i).plan.placement == Placement::kTensorDataPipeline);
  }
  const Space four = space_of(test::tiny_gpt({}), 4);
  for (std::uint64_t i = 0; i < four.size(); ++i) {
    const Candidate c = four.at(i);
    if (c.plan.schedule == Schedule::kShifted) CHECK(c.training.recompute != Recompute::kNone);
    if (c.plan.schedule == Schedule::kInterleaved) CHECK(c.plan.interleave > 1);
    if (c.plan.placement == Placement::kTensorPipelineData) {
      CHECK(c.plan.pipeline > 1);
      CHECK(c.plan.data > 1);
    }
  }
}

TEST_CASE("Ranks that nothing divides are refused with the nearest number") {
  const Result<Space> space = Space::of(test::tiny_gpt({}), {.global_batch = 16}, {}, 11, {});
  REQUIRE_FALSE(space);
  CHECK(to_string(space.error()) ==
        "no plan of 11 ranks divides this job; degrees that divide layers, heads and batch; "
        "nearest: 10 ranks");
}

TEST_CASE("Given degrees that divide nothing are named, with the nearest that do") {
  const auto refused = [](std::uint32_t ranks, const Axes& axes) {
    const Result<Space> space =
        Space::of(test::tiny_gpt({}), {.global_batch = 16, .microbatch = 1}, {}, ranks, axes);
    REQUIRE_FALSE(space);
    return to_string(space.error());
  };
  // tiny_gpt has 8 heads.
  CHECK(refused(8, {.tensor = {3}}) ==
        "plan.tensor: no plan of 8 ranks divides this job: tensor 3 does not divide 8 ranks; "
        "nearest: tensor 4");
  CHECK(refused(16, {.tensor = {16}, .context = {1}}) ==
        "plan.tensor: no plan of 16 ranks divides this job: tensor 16 does not divide 8 heads; "
        "nearest: tensor 8");
  CHECK(refused(8, {.data = {2}, .tensor = {2}, .pipeline = {1}, .context = {1}}) ==
        "plan.data: no plan of 8 ranks divides this job: data 2 x tensor 2 = 4 leaves 4 of 8 ranks "
        "without work; nearest: data 4, or 4 ranks");
  CHECK(refused(8, {.data = {4}, .microbatch = {3}}) ==
        "training.microbatch: no plan of 8 ranks divides this job: global_batch 16 is not a "
        "multiple of data 4 x microbatch 3; nearest: microbatch 4");
  CHECK(refused(8, {.expert = {2}}) ==
        "plan.expert: no plan of 8 ranks divides this job: expert 2 applies only to models with "
        "experts; "
        "nearest: expert 1");
}

TEST_CASE("Placement: stages together number ranks by pipeline, apart by stage") {
  const workload::Workload gpt = test::tiny_gpt({});
  const Training training{.global_batch = 16};
  Plan plan{.data = 2, .tensor = 2, .pipeline = 4};
  const Result<workload::Layout> apart = lay_out(gpt, training, plan);
  REQUIRE(apart);
  CHECK(apart->stages[1].rank(0) == 4);
  CHECK(apart->stages[1].rank(3) == 7);
  plan.placement = Placement::kTensorPipelineData;
  const Result<workload::Layout> together = lay_out(gpt, training, plan);
  REQUIRE(together);
  // Ranks 0 to 7 are the first pipeline, tensor pairs of its stages one after the other.
  std::set<std::uint32_t> all;
  for (std::uint32_t s = 0; s < 4; ++s)
    for (std::uint32_t r = 0; r < 4; ++r) {
      CHECK(together->stages[s].rank(r) == 8 * (r / 2) + 2 * s + r % 2);
      all.insert(together->stages[s].rank(r));
    }
  CHECK(all.size() == 16);
  plan.stages = {{.data = 2}, {.data = 2}};
  const Status ok = check_plan(gpt, training, plan);
  REQUIRE_FALSE(ok);
  CHECK(to_string(ok.error()).find("placement stages_together cannot be combined with") !=
        std::string::npos);
}

}  // namespace rehearse::strategies
