// Low-rank adapters: each consequence of frozen weights and of adapters, by its equation.
#include "models/workload/adapters.h"

#include <catch2/catch.hpp>

#include "models/memory/memory.h"
#include "strategies/check_plan.h"
#include "strategies/lay_out.h"
#include "strategies/states.h"
#include "tests/support/laid_out.h"
#include "tests/support/layout_sums.h"
#include "tests/support/tiny_models.h"
#include "tests/support/zoo_model.h"

namespace rehearse::strategies {
namespace {

using test::collective_bytes;
using test::laid_out;
using test::tiny_gpt;
using workload::Adapted;
using workload::Axis;
using workload::Layer;
using workload::Layout;
using workload::Op;
using workload::Workload;

constexpr double kRank = 4;
// The tiny model's: 32 tokens, 64 features, 8 blocks of qkv, projection, up and down.
constexpr double kTokens = 32, kBlocks = 8;
/// in + out of the products around attention, and of the others.
constexpr double kAttention = (64 + 192) + (64 + 64), kOthers = (64 + 256) + (256 + 64);

Workload adapted(Workload w, Adapted targets = Adapted::kAll, std::uint32_t rank = 4) {
  Result<Workload> result = workload::with_adapters(std::move(w), rank, targets);
  INFO((result ? "" : to_string(result.error())));
  REQUIRE(result);
  REQUIRE(workload::verify(*result));
  return std::move(*result);
}

Workload llama(const workload::Implementation& how = {}) {
  Result<Workload> w = test::zoo_model("llama3_8b", how);
  REQUIRE(w);
  return std::move(*w);
}

double saved(const Workload& w) {
  double bytes = 0;
  for (const Layer& layer : w.layers) bytes += layer.count * layer.saved_bytes().b();
  return bytes;
}

// r (in + out) per adapted matrix. Llama 3 8B with rank 16, hidden 4096, keys and values 1024,
// feed-forward 14336, 32 blocks: 32 · 16 · (8192 + 5120 + 5120 + 8192) around attention, as PEFT
// prints it, and 32 · 16 · 3 · 18432 for the others.
TEST_CASE("adapters alone are trained") {
  const Workload w = llama({.fused_projections = false});
  const double attention = adapted(w, Adapted::kAttention, 16).trained_parameters();
  const double others = adapted(w, Adapted::kFeedForward, 16).trained_parameters();
  CHECK(attention == 13'631'488);
  CHECK(others == 28'311'552);
  const Workload all = adapted(w, Adapted::kAll, 16);
  CHECK(all.trained_parameters() == attention + others);
  CHECK(all.parameters() == w.parameters() + attention + others);
}

// A linear layer of N parameters: 2 T N forward and 2 T N for the gradient of its input stay, 2 T N
// for that of its weights goes. An adapter adds 2 T r (in + out), and twice as much in backward.
TEST_CASE("frozen weights have no gradient products, and adapters have small ones") {
  const Workload w = tiny_gpt({});
  double of_weights = 0;
  for (const Layer& layer : w.layers)
    for (const Op& op : layer.backward)
      if (op.weight_gradient) of_weights += layer.count * flops_of(op).flop();
  REQUIRE(of_weights > 0);
  for (const auto& [targets, sides] : {std::pair{Adapted::kAttention, kAttention},
                                       {Adapted::kFeedForward, kOthers},
                                       {Adapted::kAll, kAttention + kOthers}}) {
    const Workload lora = adapted(w, targets);
    CHECK(lora.model_flops().flop() ==
          Approx(w.model_flops().flop() - of_weights + kBlocks * 6 * kTokens * kRank * sides));
    double left = 0;
    for (const Layer& layer : lora.layers)
      for (const Op& op : layer.backward)
        if (op.weight_gradient) left += layer.count * flops_of(op).flop();
    CHECK(left == Approx(kBlocks * 2 * kTokens * kRank * sides));
  }
}

// 21 operator records for each of the four adapters of a block, where a Llama layer has 171.
TEST_CASE("adapters lengthen the work of the host") {
  const Workload w = tiny_gpt({}), lora = adapted(w);
  for (std::size_t l = 0; l < w.layers.size(); ++l)
    CHECK(lora.layers[l].host_work - w.layers[l].host_work ==
          Approx(w.layers[l].host_work > 0 ? 4 * 21.0 / 171 : 0));
}

// With adapters around attention, forward saves r values of each of the four, and neither the input
// of the feed-forward part nor the product of the gate: T (h + f) elements of 2 bytes less. With
// adapters everywhere it saves all that it did, and r values of each of the seven.
TEST_CASE("the inputs of frozen matrices are not saved") {
  const Workload w = llama({.fused_projections = false});
  const double tokens = w.tokens_per_sample;
  const auto difference = [&](Adapted targets) {
    return saved(adapted(w, targets, 16)) - saved(w);
  };
  CHECK(difference(Adapted::kAttention) == Approx(32 * tokens * 2 * (4 * 16 - (4096. + 14336))));
  CHECK(difference(Adapted::kFeedForward) == Approx(32 * tokens * 2 * (3 * 16 - 4096.)));
  CHECK(difference(Adapted::kAll) == Approx(32 * tokens * 2 * 7. * 16));
}

// P parameters, A of them adapters: weights 2 P, gradients 4 A, optimizer 12 A (Adam, 16 bits).
// ZeRO-1 on d ranks divides the optimizer. ZeRO-3: 2 (P − A) and 16 A bytes, all divided.
TEST_CASE("frozen weights have no gradient and no state of the optimizer") {
  const Workload w = adapted(tiny_gpt({}));
  const double all = w.parameters(), trained = w.trained_parameters();
  const auto bytes = [&](const Plan& plan) {
    const Layout layout = laid_out(w, {.global_batch = 8}, plan);
    const workload::Stage& stage = layout.stages[0];
    REQUIRE(stage.parameters() == all);
    return std::array{all * stage.states.weights, all * stage.states.gradient,
                      all * stage.states.optimizer};
  };
  const auto check = [&](const Plan& plan, std::array<double, 3> expected) {
    const std::array<double, 3> got = bytes(plan);
    for (std::size_t i = 0; i < 3; ++i) CHECK(got[i] == Approx(expected[i]));
  };
  check({}, {2 * all, 4 * trained, 12 * trained});
  check({.data = 4, .zero = 1}, {2 * all, 4 * trained, 12 * trained / 4});
  check({.data = 4, .zero = 3},
        {(2 * (all - trained) + 4 * trained) / 4, 4 * trained / 4, 8 * trained / 4});
  check({.data = 4, .tiers = tiers_of(Offload::kOptimizer)}, {2 * all, 4 * trained, 0});
}

// The gradients of A parameters are summed, 4 bytes each. ZeRO-3 still gathers the 2 bytes of every
// weight for both passes of each of 2 microbatches, except that of the embedding, which has no
// backward; only layers with adapters have gradients to scatter.
TEST_CASE("only adapters' gradients are summed, and all weights are gathered") {
  const Workload w = adapted(tiny_gpt({}));
  const double all = w.parameters(), trained = w.trained_parameters();
  const Training training{.global_batch = 8};
  const Layout none = laid_out(w, training, {.data = 4});
  CHECK(collective_bytes(none, Axis::kData) == Approx(4 * trained));
  const Layout sharded = laid_out(w, training, {.data = 4, .zero = 3});
  CHECK(collective_bytes(sharded, Axis::kData, CollectiveKind::kReduceScatter) ==
        Approx(2 * 4 * trained));
  CHECK(collective_bytes(sharded, Axis::kData, CollectiveKind::kAllGather) ==
        Approx(2 * 2 * (2 * all - w.layers.front().parameters())));
  double updated = 0;
  test::visit_ops(none, [&](const Op& op, const workload::Stage&, double times) {
    if (op.name == "update parameters") updated += times * op.bytes.b();
  });
  CHECK(updated == Approx(46 * trained));  // bytes per parameter of Adam (states.h)
}

// Where W is divided by columns, so is B, and the gradient of x A is a sum over ranks; by rows, A,
// and x A is one: T r values of 2 bytes for each adapter. Sums of the model itself stay.
TEST_CASE("tensor parallelism divides adapters as it divides what they adapt") {
  const Workload w = tiny_gpt({}), lora = adapted(w);
  const Training training{.global_batch = 3};
  const Plan plan{.tensor = 4};
  const double before = collective_bytes(laid_out(w, training, plan), Axis::kTensor);
  const double small = 2 * kTokens * kRank;
  CHECK(collective_bytes(laid_out(lora, training, plan), Axis::kTensor) ==
        Approx(before + 3 * kBlocks * 4 * small));
  CHECK(test::parameters_over_ranks(laid_out(lora, training, plan)) == Approx(lora.parameters()));

  // Sequence parallelism gathered the inputs of two products per block again for the gradients of
  // their weights, those of the head, and the gradient of the embedding; adapters take shares. An adapter by columns gathers x A
  // forward, scatters its gradient and gathers x A again; one by rows scatters and gathers.
  const Plan sequence{.tensor = 4, .sequence_parallel = true};
  const auto gathered = [&](const Workload& of) {
    return collective_bytes(laid_out(of, training, sequence), Axis::kTensor,
                            CollectiveKind::kAllGather);
  };
  const auto scattered = [&](const Workload& of) {
    return collective_bytes(laid_out(of, training, sequence), Axis::kTensor,
                            CollectiveKind::kReduceScatter);
  };
  CHECK(scattered(lora) - scattered(w) == Approx(3 * kBlocks * 4 * small));
  const double again = 3 * (2 * kBlocks + 2) * test::kTinyActivation;
  CHECK(gathered(lora) - gathered(w) == Approx(3 * kBlocks * (2 * 2 + 2) * small - again));
}

TEST_CASE("stages, experts and recomputation take adapters") {
  const Workload w = adapted(tiny_gpt({.tied = true}));
  const Layout stages = laid_out(w, {.global_batch = 8}, {.data = 2, .pipeline = 4});
  CHECK(stages.tied_gradient == Bytes::b(0));  // a frozen matrix
  // Recomputation runs forward again, adapters too.
  const Layout full = laid_out(w, {.global_batch = 8, .recompute = Recompute::kFull}, {.data = 2});
  double again = 0, forward = 0;
  for (const Layer& layer : full.stages[0].chunks[0].layers) {
    for (const Op& op : layer.recompute) again += layer.count * flops_of(op).flop();
    if (layer.name == "block")
      for (const Op& op : layer.forward) forward += layer.count * flops_of(op).flop();
  }
  CHECK(again == Approx(forward));
  const Workload experts = adapted(tiny_gpt({.experts = 4}));
  // An expert's matrices have adapters each.
  CHECK(experts.trained_parameters() == kBlocks * kRank * (kAttention + 4 * kOthers));
  const Layout divided = laid_out(experts, {.global_batch = 8}, {.data = 4, .expert = 2});
  CHECK(test::parameters_over_ranks(divided) == Approx(experts.parameters()));
}

TEST_CASE("what cannot be adapted is refused in one line") {
  const auto refused = [](Workload w, Adapted targets) {
    const Result<Workload> result = workload::with_adapters(std::move(w), 8, targets);
    REQUIRE_FALSE(result);
    return to_string(result.error());
  };
  CHECK(refused(test::tiny_mlp(3, 64), Adapted::kAll) ==
        "a model without attention has no matrix to adapt; 0");
  Workload recorded = tiny_gpt({});
  recorded.layers[1].forward[0].measured = {Seconds::us(1), Seconds::us(1), Seconds::us(1),
                                            Provenance::kRecorded};
  CHECK(refused(recorded, Adapted::kAll)
            .starts_with("the work of a recording cannot be taken apart"));
  const Workload w = adapted(tiny_gpt({}));
  CHECK(test::error_of(w, {.global_batch = 8},
                       {.data = 2, .synchronization = Synchronization::kParameterServer})
            .starts_with("lora_rank cannot be combined with synchronization parameter_server"));
  CHECK(test::error_of(w, {.global_batch = 8},
                       {.data = 2, .zero = 3, .gather_weights = GatherWeights::kByTensor})
            .starts_with("lora_rank cannot be combined with gather_weights by_tensor"));
}

// 4 bits, 8 of a constant per 64 parameters, and 32 per 64 · 256: 4.127 bits (QLoRA, section 3).
// Blocks have attention and four matrices of 64 × (192 + 64 + 256 + 256) parameters; the rest of the
// frozen weights has 2 bytes.
TEST_CASE("frozen matrices of blocks in 4 bits, written in 16 bits before each product") {
  CHECK(workload::kNf4Bytes == Approx(4.127 / 8).epsilon(1e-4));
  const Workload w = tiny_gpt({}), whole = adapted(w);
  Result<Workload> made = workload::with_adapters(w, static_cast<std::uint32_t>(kRank),
                                                  Adapted::kAll, workload::Frozen::kNf4);
  REQUIRE(made);
  REQUIRE(workload::verify(*made));
  const double matrices = kBlocks * 64 * (192 + 64 + 256 + 256);
  Training training{.global_batch = 8};
  const Layout before = laid_out(whole, training, {});
  training.lora_rank = 4;
  training.frozen_weights = workload::Frozen::kNf4;
  const Layout layout = laid_out(*made, training, {});
  const auto weights = [&](const Layout& of) {
    return of.stages.front().states.weights * whole.parameters();
  };
  CHECK(weights(before) - weights(layout) == Approx(matrices * (2 - workload::kNf4Bytes)));
  CHECK((layout.stages.front().gathered - before.stages.front().gathered).b() == 2 * 64 * 256);
  // Forward and the gradient of the input each read 4 bits and write 16.
  const auto moved = [](const Workload& of) {
    double bytes = 0;
    for (const Layer& layer : of.layers)
      for (const auto* ops : {&layer.forward, &layer.backward})
        for (const Op& op : *ops) bytes += layer.count * op.bytes.b();
    return bytes;
  };
  CHECK(moved(*made) - moved(whole) == Approx(2 * matrices * (2 + workload::kNf4Bytes)));
  CHECK(made->model_flops() == whole.model_flops());
}

// REC: QLoRA trains 33B on a GPU of 24 GB and 65B on one of 48 GB, and calls paged optimizers critical
// for that. Adapters of rank 64 on each matrix have 0.488 and 0.800 billion parameters. With all states
// on the device 33B has 0.516 · 32.1e9 + 2 · 0.426e9 + 18 · 0.488e9 = 26.2e9 bytes: too many. Without
// those of the optimizer both fit. In 16 bits neither does.
TEST_CASE("QLoRA: 33B fits into 24 GB and 65B into 48 GB, where the optimizer is elsewhere") {
  const auto states = [](std::string_view name, workload::Frozen frozen, Tier optimizer) {
    Result<Workload> w = test::zoo_model(name, {.fused_projections = false});
    REQUIRE(w);
    const Result<Workload> made = workload::with_adapters(std::move(*w), 64, Adapted::kAll, frozen);
    REQUIRE(made);
    const Layout layout = laid_out(*made,
                                   {.global_batch = 1,
                                    .recompute = Recompute::kFull,
                                    .lora_rank = 64,
                                    .frozen_weights = frozen},
                                   {.tiers = {.optimizer = {.tier = optimizer}}});
    const workload::StateBytes& each = layout.stages.front().states;
    return (each.weights + each.gradient + each.optimizer) * made->parameters();
  };
  using enum workload::Frozen;
  CHECK(states("llama_33b", kNf4, Tier::kDevice) == Approx(26.2e9).epsilon(0.001));
  CHECK(states("llama_33b", kNf4, Tier::kHost) < 24e9);
  CHECK(states("llama_65b", kNf4, Tier::kHost) < 48e9);
  CHECK(states("llama_33b", kAsTrained, Tier::kHost) > 24e9);
  CHECK(states("llama_65b", kAsTrained, Tier::kHost) > 48e9);
}

// FSDP over 2 ranks: each gather has 0.5 bytes of a parameter in 4 bits and 2 of any other; a rank holds
// half of both, and all constants (0.0157 bytes per parameter in 4 bits).
TEST_CASE("ZeRO-3 shards and gathers weights in 4 bits, and each rank has all of their constants") {
  const Workload w = *workload::with_adapters(tiny_gpt({}), static_cast<std::uint32_t>(kRank),
                                              Adapted::kAll, workload::Frozen::kNf4),
                 whole = adapted(tiny_gpt({}));
  const Training training{.global_batch = 8,
                          .lora_rank = static_cast<std::uint32_t>(kRank),
                          .frozen_weights = workload::Frozen::kNf4};
  const Plan sharded{.data = 2, .zero = 3};
  const Layout layout = laid_out(w, training, sharded),
               in_16_bits = laid_out(whole, {.global_batch = 8}, sharded);
  const auto gathered = [](const Layout& of) {
    double bytes = 0;
    for (const Layer& layer : of.stages.front().chunks.front().layers)
      for (const Op& op : layer.forward)
        if (op.name == "gather weights") bytes += layer.count * op.bytes.b();
    return bytes;
  };
  const double matrices = kBlocks * 64 * (192 + 64 + 256 + 256);
  CHECK(gathered(in_16_bits) - gathered(layout) == Approx(matrices * 1.5));
  const auto held = [&](const Layout& of) {
    return of.stages.front().states.weights * whole.parameters();
  };
  CHECK(held(in_16_bits) - held(layout) ==
        Approx(matrices * (1.5 / 2 - (workload::kNf4Bytes - 0.5))));
}

TEST_CASE("weights in 4 bits are refused without adapters, and on other tiers") {
  const Workload w =
      *workload::with_adapters(tiny_gpt({}), 4, Adapted::kAll, workload::Frozen::kNf4);
  const auto refused = [&](std::uint32_t rank, const Plan& plan) {
    const Status status = check_plan(
        w, {.global_batch = 8, .lora_rank = rank, .frozen_weights = workload::Frozen::kNf4}, plan);
    return status ? "" : status.error().diagnostics.front().problem;
  };
  CHECK(refused(0, {}) == "frozen_weights nf4 needs lora_rank");
  CHECK(refused(4, {.data = 2, .zero = 3}).empty());
  CHECK(refused(4, {.tiers = {.weights = {.tier = Tier::kHost}}}) ==
        "frozen_weights nf4 cannot be combined with weights_on host");
  CHECK(refused(4, {}).empty());
}

}  // namespace
}  // namespace rehearse::strategies
