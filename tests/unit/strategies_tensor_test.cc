#include <catch2/catch.hpp>

#include "strategies/lay_out.h"
#include "tests/support/laid_out.h"
#include "tests/support/layout_sums.h"
#include "tests/support/tiny_models.h"
#include "tests/support/zoo_model.h"

namespace rehearse::strategies {
namespace {

using test::collective_bytes;
using test::error_of;
using test::flops_over_ranks;
using test::kTinyActivation;
using test::laid_out;
using test::tiny_gpt;
using workload::Axis;
using workload::Issue;
using workload::Layer;
using workload::Layout;
using workload::Op;
using workload::OpKind;

const Layer& block_of(const Layout& layout) {
  for (const workload::Chunk& chunk : layout.stages[0].chunks)
    for (const Layer& layer : chunk.layers)
      if (layer.name == "block") return layer;
  FAIL("no block");
  return layout.stages[0].chunks[0].layers[0];
}

std::vector<std::string> names_of(const std::vector<Op>& ops) {
  std::vector<std::string> names;
  for (const Op& op : ops) names.emplace_back(op.name);
  return names;
}

TEST_CASE("the trivial plan changes no op, no weight and no activation") {
  const workload::Workload w = tiny_gpt({});
  const Layout layout = laid_out(w, {.global_batch = 3}, {});
  REQUIRE(layout.stages.size() == 1);
  REQUIRE(layout.stages[0].chunks.size() == 1);
  const std::vector<Layer>& layers = layout.stages[0].chunks[0].layers;
  REQUIRE(layers.size() == w.layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    CHECK(layers[i].count == w.layers[i].count);
    CHECK(names_of(layers[i].forward) == names_of(w.layers[i].forward));
    CHECK(names_of(layers[i].backward) == names_of(w.layers[i].backward));
    CHECK(layers[i].saved_bytes() == w.layers[i].saved_bytes());
    CHECK(layers[i].parameters() == w.layers[i].parameters());
    REQUIRE(layers[i].step.size() == 1);
    CHECK(layers[i].step[0].name == "update parameters");
  }
  CHECK(layout.ranks() == 1);
  CHECK(layout.microbatches == 3);
  CHECK(flops_over_ranks(layout) == 3 * w.model_flops());
  CHECK(layout.model_flops == 3 * w.model_flops());
  CHECK(layout.applied == std::vector<std::string>{"sum_gradients", "schedule"});
}

TEST_CASE("a microbatch multiplies what counts samples and nothing else") {
  const workload::Workload w = tiny_gpt({});
  const Layout layout = laid_out(w, {.global_batch = 8, .microbatch = 4}, {});
  CHECK(layout.microbatches == 2);
  const Op& qkv = block_of(layout).forward[1];
  CHECK(qkv.m == 4 * 32);
  CHECK(qkv.n == 192);
  CHECK(block_of(layout).saved_bytes() == 4 * w.layers[1].saved_bytes());
  CHECK(flops_over_ranks(layout) == 8 * w.model_flops());
}

// Megatron-LM: two all-reduces of an activation in forward, two in backward, and two more in what
// is recomputed, per layer and microbatch. Embedding and head add one each.
TEST_CASE("tensor parallelism sums four activations per layer and microbatch, six with recompute") {
  const workload::Workload w = tiny_gpt({.layers = 8});
  const Plan plan{.tensor = 4};
  const Layout none = laid_out(w, {.global_batch = 3}, plan);
  CHECK(collective_bytes(none, Axis::kTensor) == 3 * (8 * 4 + 2) * kTinyActivation);
  CHECK(collective_bytes(none, Axis::kTensor, CollectiveKind::kAllReduce) ==
        collective_bytes(none, Axis::kTensor));
  const Layout full = laid_out(w, {.global_batch = 3, .recompute = Recompute::kFull}, plan);
  CHECK(collective_bytes(full, Axis::kTensor) == 3 * (8 * 6 + 2) * kTinyActivation);
  CHECK(flops_over_ranks(none) == 3 * w.model_flops());
  CHECK(test::parameters_over_ranks(none) == w.parameters());
}

TEST_CASE("a column-parallel product saves its inputs, and a row-parallel one sums its outputs") {
  const Layout layout = laid_out(tiny_gpt({}), {}, {.tensor = 2});
  const Layer& block = block_of(layout);
  CHECK(names_of(block.forward) ==
        std::vector<std::string>{"norm", "qkv", "attention", "projection", "sum partial results",
                                 "add", "up", "gelu", "down", "sum partial results", "add"});
  CHECK(block.forward[1].n == 96);
  CHECK(block.forward[2].batch == 4);
  CHECK(block.forward[3].k == 32);
  CHECK(block.forward[7].bytes == Bytes::b(8 * kTinyActivation / 2));
  // In backward the sum overlaps the following gradient of the weights.
  std::size_t overlapped = 0;
  for (std::size_t i = 0; i < block.backward.size(); ++i)
    if (block.backward[i].issue == Issue::kOverlapNext) {
      CHECK(block.backward[i - 1].name == "dgrad");
      CHECK(block.backward[i + 1].name == "wgrad");
      ++overlapped;
    }
  CHECK(overlapped == 2);
  // Megatron-LM until the end of 2021: nothing runs during a sum.
  const Layout in_line = laid_out(tiny_gpt({}), {}, {.tensor = 2, .overlap_tensor = false});
  for (const Op& op : block_of(in_line).backward) CHECK(op.issue == Issue::kInline);
}

TEST_CASE("gradients of one input that are added up share a sum") {
  workload::Workload w = tiny_gpt({});
  // A gate parallel to `up`: its gradients precede those of `up`.
  std::vector<Op>& backward = w.layers[1].backward;
  const auto up = std::find_if(backward.begin(), backward.end(),
                               [](const Op& op) { return op.name == "dgrad" && op.k == 256; });
  const std::vector<Op> gate(up, up + 2);
  backward.insert(up, gate.begin(), gate.end());
  const Layout layout = laid_out(w, {}, {.tensor = 2});
  CHECK(collective_bytes(layout, Axis::kTensor) == (8 * 4 + 2) * kTinyActivation);
  // So do their inputs, gathered for the gradients of weights.
  const Layout tokens = laid_out(w, {}, {.tensor = 2, .sequence_parallel = true});
  CHECK(collective_bytes(tokens, Axis::kTensor, CollectiveKind::kAllGather) ==
        (8 * (4 + 2) + 3) * kTinyActivation);
}

TEST_CASE("ops on gathered tokens save all of them") {
  workload::Workload w = tiny_gpt({});
  std::vector<Op>& forward = w.layers[1].forward;
  Op whole = forward[0];
  whole.name = "whole";
  forward.insert(forward.begin() + 2, whole);  // after qkv
  const Layout layout = laid_out(w, {}, {.tensor = 4, .sequence_parallel = true});
  REQUIRE(block_of(layout).forward[3].name == "whole");
  CHECK(block_of(layout).forward[3].bytes == whole.bytes);
}

// A cast belongs to the activations that it converts: of rows it is divided by features, of columns
// its gradient is.
TEST_CASE("conversions to 8 bits are divided like their operands") {
  const Result<workload::Workload> w =
      test::zoo_model("llama3_8b", {.dtype = workload::Dtype::kFp8});
  REQUIRE(w);
  const auto casts = [](const Layout& layout) {
    double sum = 0;
    for (const auto* phase : {&block_of(layout).forward, &block_of(layout).backward})
      for (const Op& op : *phase)
        if (op.name.find(".cast") != op.name.npos) sum += op.bytes.b();
    return sum;
  };
  const double one = casts(laid_out(*w, {}, {}));
  CHECK(one > 0);
  CHECK(casts(laid_out(*w, {}, {.tensor = 4, .sequence_parallel = true})) == Approx(one / 4));
}

TEST_CASE("operands of 8-bit products are gathered in 8 bits, and sums are not") {
  const auto bytes = [](workload::Dtype dtype, bool quantised, CollectiveKind kind) {
    const Result<workload::Workload> w = test::zoo_model("llama3_8b", {.dtype = dtype});
    REQUIRE(w);
    Layout layout =
        laid_out(*w, {.dtype = dtype},
                 {.tensor = 4, .sequence_parallel = true, .quantised_gathers = quantised});
    std::erase_if(layout.stages[0].chunks[0].layers,
                  [](const Layer& l) { return l.name != "block"; });
    return collective_bytes(layout, Axis::kTensor, kind);
  };
  using workload::Dtype;
  const double half = bytes(Dtype::kBf16, true, CollectiveKind::kAllGather);
  CHECK(bytes(Dtype::kFp8, true, CollectiveKind::kAllGather) == Approx(half / 2));
  CHECK(bytes(Dtype::kFp8, false, CollectiveKind::kAllGather) == Approx(half));
  CHECK(bytes(Dtype::kFp8, true, CollectiveKind::kReduceScatter) ==
        Approx(bytes(Dtype::kBf16, true, CollectiveKind::kReduceScatter)));
}

TEST_CASE("sequence parallelism divides the rest too and moves as much") {
  const workload::Workload w = tiny_gpt({});
  const double t = 4;
  const Plan plan{.tensor = 4, .sequence_parallel = true};
  const Layout layout = laid_out(w, {}, plan);
  const Layer& block = block_of(layout);
  CHECK(names_of(block.forward) ==
        std::vector<std::string>{"norm", "gather tokens", "qkv", "attention", "projection",
                                 "sum and scatter tokens", "add", "gather tokens", "up", "gelu",
                                 "down", "sum and scatter tokens", "add"});
  CHECK(block.forward[0].bytes == w.layers[1].forward[0].bytes / t);
  CHECK(block.saved_bytes() == w.layers[1].saved_bytes() / t);
  CHECK(block.output == w.layers[1].output / t);
  // Two gathers and two scatters in forward, four gathers and two scatters in backward: an
  // all-reduce is one of each, and the gradients of qkv and up gather their inputs again.
  CHECK(collective_bytes(layout, Axis::kTensor, CollectiveKind::kReduceScatter) ==
        (8 * 4 + 2) * kTinyActivation);
  CHECK(collective_bytes(layout, Axis::kTensor, CollectiveKind::kAllGather) ==
        (8 * (4 + 2) + 3) * kTinyActivation);
  CHECK(flops_over_ranks(layout) == w.model_flops());
}

TEST_CASE("asynchronous tensor collectives overlap their products") {
  const Layout layout = laid_out(
      tiny_gpt({}), {}, {.tensor = 4, .sequence_parallel = true, .asynchronous_tensor = true});
  const Layer& block = block_of(layout);
  CHECK(names_of(block.forward) ==
        std::vector<std::string>{"norm", "gather tokens", "qkv", "attention",
                                 "sum and scatter tokens", "projection", "add", "gather tokens",
                                 "up", "gelu", "sum and scatter tokens", "down", "add"});
  for (const auto* phase : {&block.forward, &block.backward})
    for (const Op& op : *phase)
      if (op.kind == OpKind::kCollective) CHECK(op.issue == Issue::kOverlapNext);
  const Layout plain = laid_out(tiny_gpt({}), {}, {.tensor = 4, .sequence_parallel = true});
  CHECK(collective_bytes(layout, Axis::kTensor) == collective_bytes(plain, Axis::kTensor));
}

TEST_CASE("full recomputation repeats forward of all blocks and saves their inputs") {
  const workload::Workload w = tiny_gpt({});
  const Layout layout = laid_out(w, {.recompute = Recompute::kFull}, {});
  const Layer& block = block_of(layout);
  CHECK(names_of(block.recompute) == names_of(w.layers[1].forward));
  CHECK(block.saved_bytes() == Bytes::b(kTinyActivation));
  CHECK(block.saved_bytes() + block.recomputed == w.layers[1].saved_bytes());
  Flops forward = Flops::flop(0);
  for (const Op& op : w.layers[1].forward) forward += flops_of(op) * w.layers[1].count;
  CHECK(flops_over_ranks(layout) == w.model_flops() + forward);
  CHECK(layout.model_flops == w.model_flops());
  // Embedding and head keep what they have.
  CHECK(layout.stages[0].chunks[0].layers.back().recompute.empty());
}

TEST_CASE("selective recomputation repeats attention's core if scores are saved") {
  const workload::Workload unfused = tiny_gpt({.flash = false});
  const Layout layout = laid_out(unfused, {.recompute = Recompute::kSelective}, {.tensor = 2});
  CHECK(names_of(block_of(layout).recompute) ==
        std::vector<std::string>{"product", "softmax", "product"});
  CHECK(block_of(layout).recomputed == Bytes::b(5 * 8 * 32 * 32 / 2.0));
  const Layout flash = laid_out(tiny_gpt({}), {.recompute = Recompute::kSelective}, {});
  CHECK(block_of(flash).recompute.empty());
  CHECK(block_of(flash).saved_bytes() == tiny_gpt({}).layers[1].saved_bytes());
}

TEST_CASE("a layer with its own recomputation keeps it, and drops the marked activations") {
  workload::Workload w = tiny_gpt({.flash = false});
  for (Layer& layer : w.layers)
    if (layer.name == "block") layer.recompute = {layer.forward.front()};
  const Bytes before = w.layers[1].saved_bytes();
  const Layout layout = laid_out(w, {.recompute = Recompute::kSelective}, {});
  CHECK(names_of(block_of(layout).recompute) ==
        std::vector<std::string>{std::string(w.layers[1].forward.front().name)});
  CHECK(block_of(layout).recomputed > Bytes::b(0));
  CHECK(block_of(layout).saved_bytes() + block_of(layout).recomputed == before);
}

TEST_CASE("an invalid tensor degree is an error with the nearest valid ones") {
  const workload::Workload w = tiny_gpt({.heads = 32});
  CHECK(error_of(w, {}, {.tensor = 3}) ==
        "tensor 3 does not divide 32 heads; nearest: tensor 2 or 4");
  CHECK(error_of(w, {}, {.tensor = 64}) ==
        "tensor 64 does not divide 32 heads; nearest: tensor 32");
  CHECK(error_of(test::tiny_mlp(2, 8), {}, {.tensor = 2}) ==
        "tensor 2 cannot divide any operation of this model; nearest: tensor 1");
  CHECK(error_of(w, {}, {.tensor = 0}) == "tensor is 0; a whole number from 1 to 131,072");
  CHECK(error_of(tiny_gpt({.heads = 32, .sequence = 40}), {},
                 {.tensor = 16, .sequence_parallel = true}) ==
        "sequence parallelism over tensor 16 x context 1 does not divide 40 tokens");
}

}  // namespace
}  // namespace rehearse::strategies
