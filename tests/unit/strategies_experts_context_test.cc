#include <catch2/catch.hpp>

#include "strategies/lay_out.h"
#include "strategies/stage_groups.h"
#include "tests/support/laid_out.h"
#include "tests/support/layout_sums.h"
#include "tests/support/tiny_models.h"

namespace rehearse::strategies {
namespace {

using test::collective_bytes;
using test::error_of;
using test::kTinyActivation;
using test::laid_out;
using test::tiny_gpt;
using workload::Axis;
using workload::Chunk;
using workload::Issue;
using workload::Layer;
using workload::Layout;
using workload::Op;

const Layer& first_block_of(const Layout& layout) { return layout.stages[0].chunks[0].layers[1]; }

const Op& op_named(const std::vector<Op>& ops, std::string_view name) {
  for (const Op& op : ops)
    if (op.name == name) return op;
  FAIL("no op " << name);
  return ops[0];
}

// 8 experts of 2 · 4 · 64² parameters, two for each token: an expert gets 32 · 2 / 8 = 8 tokens.
TEST_CASE("experts on other ranks receive the tokens of all") {
  const workload::Workload w = tiny_gpt({.experts = 8});
  const Training training{.global_batch = 8};
  const Layout layout = laid_out(w, training, {.data = 4, .expert = 4});
  const Op& up = op_named(first_block_of(layout).forward, "up");
  CHECK(up.batch == 2);
  CHECK(up.m == 4 * 8);
  // Every token goes to two experts and comes back, in forward and in backward.
  CHECK(collective_bytes(layout, Axis::kExpert, CollectiveKind::kAllToAll) ==
        2 * 8 * 4 * 2 * kTinyActivation);
  CHECK(test::flops_over_ranks(layout) == 8 * w.model_flops());
  CHECK(test::parameters_over_ranks(layout) == w.parameters());
  // Experts are on one rank each: no other rank sums their gradients.
  const double dense = w.parameters() - 8 * 8 * 8 * 64 * 64;
  CHECK(collective_bytes(layout, Axis::kData) == Approx(4 * dense));

  const Layout wider = laid_out(w, training, {.data = 8, .expert = 4});
  double experts = 0;
  test::visit_ops(wider, [&](const Op& op, const workload::Stage& stage, double times) {
    if (!op.expert || op.axis != Axis::kData || !op.communicates()) return;
    CHECK(workload::group_size(op, stage.degrees) == 2);
    experts += op.bytes.b() * times;
  });
  CHECK(experts == Approx(4.0 * 8 * 8 * 8 * 64 * 64 / 4));
}

TEST_CASE("the all-to-all precedes the first and follows the last expert op") {
  const Layout layout =
      laid_out(tiny_gpt({.experts = 8}), {.global_batch = 2}, {.data = 2, .expert = 2});
  std::vector<std::string> names;
  for (const Op& op : first_block_of(layout).forward) names.emplace_back(op.name);
  CHECK(names == std::vector<std::string>{"norm", "qkv", "attention", "projection", "add",
                                          "tokens to experts", "up", "gelu", "down",
                                          "tokens from experts", "add"});
}

TEST_CASE("a capacity is computed and sent in full, and without one the busiest rank decides") {
  const workload::Workload w = tiny_gpt({.experts = 8});
  const Training training{.global_batch = 2};
  const Layout padded = laid_out(w, training, {.data = 2, .expert = 2, .capacity_factor = 1.25});
  CHECK(op_named(first_block_of(padded).forward, "up").m == 1.25 * 16);
  CHECK(op_named(first_block_of(padded).forward, "tokens to experts").bytes.b() ==
        1.25 * 2 * kTinyActivation);
  const Layout busiest = laid_out(w, training, {.data = 2, .expert = 2, .expert_imbalance = 1.5});
  CHECK(op_named(first_block_of(busiest).forward, "down").m == 1.5 * 16);
  CHECK(op_named(first_block_of(busiest).forward, "gelu").bytes ==
        1.5 * op_named(w.layers[1].forward, "gelu").bytes);
  CHECK(busiest.model_flops == 2 * w.model_flops());
}

// Tokens move 4 · 2 · 4096 = 32 KiB times the samples, weights 3 · 2 · 8 · 8 · 64² = 1.5 MiB.
TEST_CASE("experts move to the tokens if that is cheaper") {
  const workload::Workload w = tiny_gpt({.experts = 8});
  const auto with = [&](double microbatch, ExpertExchange exchange) {
    return laid_out(w, {.global_batch = 2 * microbatch, .microbatch = microbatch},
                    {.data = 2, .expert = 2, .expert_exchange = exchange});
  };
  for (const double samples : {40.0, 60.0}) {
    const Layout cheaper = with(samples, ExpertExchange::kCheaper);
    const bool weights = collective_bytes(cheaper, Axis::kExpert, CollectiveKind::kAllGather) > 0;
    CHECK(weights == (samples == 60));
    const double least =
        std::min(collective_bytes(with(samples, ExpertExchange::kTokens), Axis::kExpert),
                 collective_bytes(with(samples, ExpertExchange::kWeights), Axis::kExpert));
    CHECK(collective_bytes(cheaper, Axis::kExpert) == least);
  }
  const Layout weights = with(1, ExpertExchange::kWeights);
  CHECK(op_named(first_block_of(weights).forward, "up").batch == 8);
  CHECK(op_named(first_block_of(weights).forward, "gather experts").issue == Issue::kPrefetched);
  CHECK(test::parameters_over_ranks(weights) == w.parameters());
  CHECK(test::flops_over_ranks(weights) == 2 * w.model_flops());
}

// Two of 8 experts on 4 ranks: 4 (1 - (3/4)²) = 1.75 ranks have some of them.
TEST_CASE("a token may go once to each rank with some of its experts") {
  const workload::Workload w = tiny_gpt({.experts = 8});
  const Training training{.global_batch = 8};
  const auto bytes = [&](ExpertExchange exchange) {
    return collective_bytes(
        laid_out(w, training, {.data = 4, .expert = 4, .expert_exchange = exchange}), Axis::kExpert,
        CollectiveKind::kAllToAll);
  };
  CHECK(bytes(ExpertExchange::kTokensOnce) == Approx(bytes(ExpertExchange::kTokens) * 1.75 / 2));
  const Layout once = laid_out(
      w, training, {.data = 4, .expert = 4, .expert_exchange = ExpertExchange::kTokensOnce});
  CHECK(test::flops_over_ranks(once) == 8 * w.model_flops());
}

TEST_CASE("exchanges of tokens may overlap the next op") {
  const workload::Workload w = tiny_gpt({.experts = 8});
  const auto issues = [&](bool overlap) {
    const Layout layout =
        laid_out(w, {.global_batch = 8}, {.data = 4, .expert = 4, .overlap_experts = overlap});
    std::vector<Issue> found;
    for (const auto* phase : {&first_block_of(layout).forward, &first_block_of(layout).backward})
      for (const Op& op : *phase)
        if (op.collective == CollectiveKind::kAllToAll && op.communicates())
          found.push_back(op.issue);
    return found;
  };
  CHECK(issues(false) == std::vector<Issue>(4, Issue::kInline));
  CHECK(issues(true) == std::vector<Issue>(4, Issue::kDeferred));
}

TEST_CASE("a ring passes keys and values during attention") {
  const workload::Workload w = tiny_gpt({});
  const Layout layout = laid_out(w, {}, {.context = 4});
  const Layer& block = first_block_of(layout);
  const Op& attention = op_named(block.forward, "attention");
  CHECK(attention.m == 8);
  CHECK(attention.n == 32);
  CHECK(attention.batch == 8);
  CHECK(op_named(block.forward, "qkv").m == 8);
  const Op& ring = op_named(block.forward, "keys and values around");
  CHECK(ring.issue == Issue::kOverlapNext);
  CHECK(ring.bytes.b() == 2 * kTinyActivation);
  // In backward with their gradients.
  CHECK(collective_bytes(layout, Axis::kContext) == 8 * (2 + 4) * kTinyActivation);
  CHECK(test::flops_over_ranks(layout) == w.model_flops());
  CHECK(block.saved_bytes() == w.layers[1].saved_bytes() / 4);
  CHECK(layout.ranks() == 4);
  // Heads of tensor parallelism have their own keys.
  const Layout both = laid_out(w, {}, {.tensor = 2, .context = 4});
  CHECK(op_named(first_block_of(both).forward, "keys and values around").bytes.b() ==
        kTinyActivation);
  CHECK(test::flops_over_ranks(both) == w.model_flops());
}

TEST_CASE("an all-to-all turns tokens into heads and back") {
  for (const bool flash : {true, false}) {
    const workload::Workload w = tiny_gpt({.flash = flash});
    const Layout layout =
        laid_out(w, {}, {.context = 4, .context_exchange = ContextExchange::kAllToAll});
    const Layer& block = first_block_of(layout);
    if (flash) {
      CHECK(op_named(block.forward, "attention").batch == 2);
      CHECK(op_named(block.forward, "attention").m == 32);
    }
    // Queries, keys, values there and the result back, in shares; the reverse in backward.
    CHECK(op_named(block.forward, "tokens to heads").bytes.b() == 3 * kTinyActivation / 4);
    CHECK(op_named(block.forward, "heads to tokens").bytes.b() == kTinyActivation / 4);
    CHECK(collective_bytes(layout, Axis::kContext, CollectiveKind::kAllToAll) ==
          8 * 2 * 4 * kTinyActivation / 4);
    CHECK(test::flops_over_ranks(layout) == w.model_flops());
  }
}

TEST_CASE("fewer heads of keys and values pass fewer bytes") {
  workload::Workload w = tiny_gpt({});
  w.divided_by_tensor.push_back({"kv_heads", 2});
  CHECK(op_named(first_block_of(laid_out(w, {}, {.context = 4})).forward, "keys and values around")
            .bytes.b() == 2 * kTinyActivation * 2 / 8);
}

TEST_CASE("invalid degrees of experts and tokens are errors") {
  const workload::Workload w = tiny_gpt({.experts = 8});
  const Training training{.global_batch = 12};
  CHECK(error_of(w, training, {.data = 12, .expert = 8}) ==
        "expert 8 does not divide data 12; nearest: expert 4");
  CHECK(error_of(w, training, {.data = 12, .expert = 3}) ==
        "expert 3 does not divide 8 experts; nearest: expert 2 or 4");
  CHECK(error_of(tiny_gpt({}), training, {.data = 4, .expert = 2}) ==
        "expert 2 applies only to models with experts; nearest: expert 1");
  CHECK(error_of(w, training, {.context = 5}) ==
        "context 5 does not divide 32 tokens; nearest: context 4 or 8");
  CHECK(error_of(test::tiny_mlp(2, 8), {}, {.context = 2}) ==
        "context 2 applies only to samples with tokens; nearest: context 1");
  CHECK(error_of(w, {},
                 {.tensor = 4, .context = 4, .context_exchange = ContextExchange::kAllToAll}) ==
        "tensor 4 x context 4 does not divide 8 heads, as all_to_all needs; nearest: context 2");
  CHECK(error_of(tiny_gpt({.flash = false}), {}, {.context = 2}) ==
        "context 2 by ring around unfused attention of layer 'block'; fused attention; nearest: "
        "context_exchange all_to_all");
}

// 16 ranks: 4 data x 4 tensor; 8 of them hold the 8 experts once.
TEST_CASE("whole experts are divided over tensor ranks too") {
  const workload::Workload w = tiny_gpt({.experts = 8});
  const Training training{.global_batch = 4};
  const Plan whole{
      .data = 4, .tensor = 4, .expert = 8, .expert_tensor = 1, .sequence_parallel = true};
  const Layout layout = laid_out(w, training, whole);
  const workload::Stage& stage = layout.stages[0];
  CHECK(stage.degrees.sharers(true) == 2);
  CHECK(stage.degrees.sharers(false) == 4);
  // Groups: 0 to 7 and 8 to 15 exchange tokens; r and r + 8 hold the same experts.
  CHECK(group_from(stage, GroupKind::kExpert, 8).size() == 8);
  CHECK(group_from(stage, GroupKind::kExpert, 4).empty());
  const std::vector<RankId> same = group_from(stage, GroupKind::kExpertData, 3);
  REQUIRE(same.size() == 2);
  CHECK(same[1].index() == 11);
  CHECK(group_from(stage, GroupKind::kExpertData, 8).empty());

  // As many expert parameters, and as much to compute, as with experts divided by both.
  const Plan divided{.data = 4, .tensor = 4, .expert = 2, .sequence_parallel = true};
  const Layout other = laid_out(w, training, divided);
  const auto of_experts = [](const Layout& of, auto value) {
    double sum = 0;
    for (const Chunk& chunk : of.stages[0].chunks)
      for (const Layer& layer : chunk.layers) sum += layer.count * value(layer);
    return sum;
  };
  const auto parameters = [](const Layer& layer) {
    double sum = 0;
    for (const workload::Weights& weights : layer.weights) sum += weights.expert * weights.count;
    return sum;
  };
  const auto flops = [](const Layer& layer) {
    double sum = 0;
    for (const auto* ops : {&layer.forward, &layer.backward})
      for (const Op& op : *ops)
        if (op.expert && !op.communicates()) sum += workload::flops_of(op).flop();
    return sum;
  };
  CHECK(of_experts(layout, parameters) == Approx(of_experts(other, parameters)));
  CHECK(of_experts(layout, flops) == Approx(of_experts(other, flops)));
  // A rank sends its share of the tokens; nothing is gathered for the experts or summed after them.
  const double tokens = collective_bytes(layout, Axis::kExpert, CollectiveKind::kAllToAll);
  CHECK(tokens == Approx(collective_bytes(other, Axis::kExpert, CollectiveKind::kAllToAll)));
  CHECK(collective_bytes(layout, Axis::kTensor) < collective_bytes(other, Axis::kTensor));
  CHECK(test::parameters_over_ranks(layout) == Approx(w.parameters()));
  CHECK(test::flops_over_ranks(layout).flop() == Approx(4 * w.model_flops().flop()));

  CHECK(error_of(w, training, {.data = 4, .tensor = 4, .expert = 8, .sequence_parallel = true}) ==
        "expert 8 does not divide data 4; nearest: expert_tensor 1");
  CHECK(error_of(w, training, {.data = 4, .tensor = 4, .expert = 8, .expert_tensor = 1}) ==
        "expert_tensor 1 with tensor 4 and all tokens on each rank; sequence_parallel: true, which "
        "divides tokens among the ranks");
  CHECK(error_of(w, training, {.data = 4, .tensor = 4, .expert = 2, .expert_tensor = 2}) ==
        "expert_tensor 2 with tensor 4; 1 or 4");
  CHECK(error_of(tiny_gpt({}), training, {.tensor = 2, .expert_tensor = 1}) ==
        "expert_tensor 1 applies only to mixtures of experts");
}

}  // namespace
}  // namespace rehearse::strategies
