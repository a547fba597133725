#include <catch2/catch.hpp>

#include "strategies/lay_out.h"
#include "tests/support/laid_out.h"
#include "tests/support/layout_sums.h"
#include "tests/support/tiny_models.h"

namespace rehearse::strategies {
namespace {

using test::collective_bytes;
using test::error_of;
using test::laid_out;
using test::tiny_gpt;
using test::tiny_mlp;
using workload::Axis;
using workload::Chunk;
using workload::Layer;
using workload::Layout;
using workload::Op;
using workload::Stage;

/// Layers by stage and chunk.
std::vector<std::vector<std::uint32_t>> counts_of(const Layout& layout) {
  std::vector<std::vector<std::uint32_t>> counts;
  for (const Stage& stage : layout.stages) {
    counts.emplace_back();
    for (const Chunk& chunk : stage.chunks) {
      counts.back().push_back(0);
      for (const Layer& layer : chunk.layers) counts.back().back() += layer.count;
    }
  }
  return counts;
}

using Counts = std::vector<std::vector<std::uint32_t>>;

TEST_CASE("stages divide the blocks, and embedding and head are added") {
  const Training training{.global_batch = 8};
  CHECK(counts_of(laid_out(tiny_gpt({.layers = 8}), training, {.pipeline = 4})) ==
        Counts{{3}, {2}, {2}, {3}});
  // What is left over goes to the middle.
  CHECK(counts_of(laid_out(tiny_gpt({.layers = 10}), training, {.pipeline = 4})) ==
        Counts{{3}, {3}, {3}, {3}});
  CHECK(counts_of(laid_out(tiny_gpt({.layers = 11}), training, {.pipeline = 4})) ==
        Counts{{4}, {3}, {3}, {3}});
  // No layer repeats: all are shared.
  CHECK(counts_of(laid_out(tiny_mlp(7, 8), training, {.pipeline = 3})) == Counts{{2}, {3}, {2}});
}

TEST_CASE("an interleaved stage has chunks from all over the model") {
  const Layout layout =
      laid_out(tiny_gpt({.layers = 12}), {.global_batch = 8}, {.pipeline = 2, .interleave = 3});
  CHECK(counts_of(layout) == Counts{{3, 2, 2}, {2, 2, 3}});
  CHECK(layout.stages[0].chunks[1].first_layer == 5);
  CHECK(layout.stages[1].chunks[2].first_layer == 11);
  CHECK(layout.stages[0].chunks[0].layers.front().name == "embedding");
  CHECK(layout.stages[1].chunks[2].layers.back().name == "head");
}

TEST_CASE("embedding and head may count as layers, and chunks may share FLOPs") {
  const Training training{.global_batch = 8};
  // Llama-3 405B in small: 6 blocks are 8 layers, two for each of 4 chunks.
  const Layout eight = laid_out(tiny_gpt({.layers = 6}), training,
                                {.pipeline = 2, .interleave = 2, .split = LayerSplit::kLayers});
  CHECK(counts_of(eight) == Counts{{2, 2}, {2, 2}});
  CHECK(eight.stages[0].chunks[0].layers.front().name == "embedding");
  CHECK(eight.stages[0].chunks[0].layers.back().name == "block");
  CHECK(eight.stages[1].chunks[1].layers.back().name == "head");
  // What is left over goes to the middle; chunks need not be equal.
  CHECK(counts_of(laid_out(tiny_gpt({.layers = 8}), training,
                           {.pipeline = 4, .split = LayerSplit::kLayers})) ==
        Counts{{2}, {3}, {3}, {2}});
  CHECK(counts_of(laid_out(tiny_gpt({.layers = 7}), training,
                           {.pipeline = 2, .interleave = 2, .split = LayerSplit::kLayers})) ==
        Counts{{2, 2}, {3, 2}});
  // Where the plan does not say, whichever makes interleaved chunks even.
  CHECK(counts_of(laid_out(tiny_gpt({.layers = 6}), training, {.pipeline = 2, .interleave = 2})) ==
        counts_of(eight));
  CHECK(counts_of(laid_out(tiny_gpt({.layers = 4}), training, {.pipeline = 2, .interleave = 2})) ==
        Counts{{2, 1}, {1, 2}});
  CHECK(error_of(tiny_gpt({.layers = 6}), training,
                 {.pipeline = 2, .interleave = 2, .split = LayerSplit::kBlocks}) ==
        "pipeline 2 x interleave 2 does not divide 6 layers; nearest: interleave 1 or 3");
  CHECK(error_of(tiny_gpt({.layers = 6}), training,
                 {.pipeline = 2, .interleave = 5, .split = LayerSplit::kLayers}) ==
        "pipeline 2 x interleave 5 is more than 8 layers; nearest: interleave 4");
  CHECK(error_of(tiny_gpt({}), training,
                 {.split = LayerSplit::kFlops, .stages = {{.layers = 4}, {}}}) ==
        "split flops cannot be combined with `stages`; one of the two");
}

TEST_CASE("a split by FLOPs has the least largest chunk of all divisions") {
  // The head takes as long as six blocks: 2 · 64 · 4608 against 12 · 64² · 2 and scores.
  const workload::Workload w = tiny_gpt({.vocabulary = 4608, .layers = 8});
  std::vector<double> flops;
  for (const Layer& layer : w.layers)
    for (std::uint32_t i = 0; i < layer.count; ++i) {
      flops.push_back(0);
      for (const auto* ops : {&layer.forward, &layer.backward})
        for (const Op& op : *ops) flops.back() += workload::flops_of(op).flop();
    }
  const Layout layout =
      laid_out(w, {.global_batch = 8}, {.pipeline = 3, .split = LayerSplit::kFlops});
  const auto largest = [&](std::uint32_t first, std::uint32_t second) {
    double sums[3] = {0, 0, 0};
    for (std::size_t l = 0; l < flops.size(); ++l)
      sums[l < first ? 0 : l < first + second ? 1 : 2] += flops[l];
    return *std::max_element(sums, sums + 3);
  };
  double least = largest(1, 1);
  for (std::uint32_t first = 1; first + 1 < flops.size(); ++first)
    for (std::uint32_t second = 1; first + second < flops.size(); ++second)
      least = std::min(least, largest(first, second));
  const Counts counts = counts_of(layout);
  CHECK(largest(counts[0][0], counts[1][0]) == Approx(least));
  CHECK(counts[2][0] < 3);
  CHECK(counts[0][0] + counts[1][0] + counts[2][0] == 10);
}

TEST_CASE("ranks are numbered stage by stage") {
  const Layout layout =
      laid_out(tiny_gpt({}), {.global_batch = 8}, {.data = 2, .tensor = 4, .pipeline = 2});
  CHECK(layout.ranks() == 16);
  CHECK(layout.stages[1].first_rank == 8);
  CHECK(layout.stages[1].name == "stage 1");
  CHECK(layout.applied ==
        std::vector<std::string>{"tensor_parallel", "pipeline", "sum_gradients", "schedule"});
}

TEST_CASE("a stage border carries each element once") {
  const double activation = 32 * 64 * 2;
  const workload::Workload w = tiny_gpt({});
  const Layout layout = laid_out(w, {}, {.tensor = 4, .pipeline = 2});
  CHECK(layout.stages[0].chunks[0].layers.back().output.b() == activation / 4);
  // Gathered by the receivers: once in forward, once in backward.
  CHECK(collective_bytes(layout, Axis::kTensor, CollectiveKind::kAllGather) == 2 * activation);
  CHECK(layout.stages[1].chunks[0].layers.front().forward.front().name ==
        "gather across the stage border");
  CHECK(layout.stages[1].chunks[0].layers.front().count == 1);
  const Layout tokens = laid_out(w, {}, {.tensor = 4, .pipeline = 2, .sequence_parallel = true});
  CHECK(tokens.stages[1].chunks[0].layers.front().forward.front().name == "norm");
  CHECK(tokens.stages[0].chunks[0].layers.size() == 2);
}

TEST_CASE("data from an earlier to a later layer crosses every border between them") {
  workload::Workload w = tiny_mlp(6, 100);
  w.layers[5].inputs = {0, 4};
  const Layout layout = laid_out(w, {}, {.pipeline = 3});
  CHECK(layout.stages[0].chunks[0].layers.back().output.b() == 2 * 400);
  CHECK(layout.stages[1].chunks[0].layers.back().output.b() == 2 * 400);
  w.layers[5].inputs = {};
  CHECK(laid_out(w, {}, {.pipeline = 3}).stages[0].chunks[0].layers.back().output.b() == 400);
}

TEST_CASE("a tied embedding is on the first and the last stage") {
  const workload::Workload w = tiny_gpt({.tied = true});
  const Layout one = laid_out(w, {}, {});
  CHECK(one.tied_gradient.b() == 0);
  CHECK(test::parameters_over_ranks(one) == w.parameters());
  const Layout two = laid_out(w, {}, {.tensor = 2, .pipeline = 2});
  CHECK(two.tied_gradient.b() == 4 * 512 * 64 / 2);
  CHECK(test::parameters_over_ranks(two) == w.parameters() + 512 * 64);
}

// Convolutions on many ranks feed fully connected layers on few: activations pass the border in the
// place of the latter's gradients (Krizhevsky's "one weird trick"; Stanza).
TEST_CASE("layers on separate ranks have separate data degrees") {
  const workload::Workload w = tiny_mlp(6, 100);
  const Plan plan{.stages = {{.name = "front", .layers = 4, .data = 4},
                             {.name = "back", .data = 1, .recompute = Recompute::kFull}}};
  CHECK(ranks_of(plan) == 5);
  const Layout layout =
      laid_out(w, {.global_batch = 64, .microbatch = 8, .dtype = workload::Dtype::kFp32}, plan);
  CHECK(layout.ranks() == 5);
  CHECK(layout.microbatches == 2);
  CHECK(counts_of(layout) == Counts{{4}, {2}});
  const Stage& front = layout.stages[0];
  const Stage& back = layout.stages[1];
  CHECK(front.name == "front");
  CHECK(back.first_rank == 4);
  CHECK(front.chunks[0].layers[0].forward[0].m == 8);
  CHECK(back.chunks[0].layers[0].forward[0].m == 32);
  CHECK(front.chunks[0].layers.back().output.b() == 8 * 400);
  CHECK(front.chunks[0].layers[0].recompute.empty());
  CHECK_FALSE(back.chunks[0].layers[0].recompute.empty());
  // Gradients of the first four layers alone are summed.
  CHECK(collective_bytes(layout, Axis::kData) == 4 * 40000);
  CHECK(layout.model_flops == 64 * w.model_flops());
}

TEST_CASE("the shifted critical path saves activations on the last stage") {
  const Training training{.global_batch = 4, .recompute = Recompute::kFull};
  const Layout layout =
      laid_out(tiny_gpt({}), training, {.pipeline = 2, .schedule = Schedule::kShifted});
  CHECK_FALSE(layout.stages[0].chunks[0].layers.back().recompute.empty());
  for (const Layer& layer : layout.stages[1].chunks[0].layers) CHECK(layer.recompute.empty());
  CHECK(layout.stages[0].order[2] == workload::Slot{workload::Pass::kRecompute, 0, 0});
  CHECK(layout.stages[1].order.size() == 8);
}

TEST_CASE("invalid pipelines are errors with the nearest valid ones") {
  const workload::Workload w = tiny_gpt({.layers = 8});
  const Training training{.global_batch = 8};
  CHECK(error_of(w, training, {.pipeline = 9}) ==
        "pipeline 9 for 8 layers; at least one layer per stage; nearest: pipeline 8");
  CHECK(error_of(w, training, {.pipeline = 2, .interleave = 3}) ==
        "pipeline 2 x interleave 3 does not divide 8 layers; nearest: interleave 2 or 4");
  CHECK(error_of(w, {.global_batch = 6}, {.pipeline = 4, .interleave = 2}) ==
        "interleaved schedule of 6 microbatches on pipeline 4; a multiple of the pipeline stages; "
        "nearest: pipeline 2");
  CHECK(error_of(w, training, {.interleave = 2}) ==
        "interleave 2 needs pipeline stages; pipeline 2 or more; nearest: interleave 1");
  CHECK(error_of(w, training, {.pipeline = 2, .interleave = 2, .schedule = Schedule::kGpipe}) ==
        "interleave 2 cannot be combined with schedule gpipe; schedule interleaved; nearest: "
        "interleave 1");
  CHECK(error_of(tiny_mlp(4, 8), {.global_batch = 6},
                 {.stages = {{.name = "a", .layers = 2, .data = 3}, {.name = "b", .data = 2}}}) ==
        "stage 'b' with data 2 receives 3 samples at a time; a multiple of its ranks; nearest: "
        "data 1 "
        "or 3");
  CHECK(error_of(tiny_mlp(4, 8), {}, {.stages = {{.name = "a", .layers = 2}, {.layers = 1}}}) ==
        "stage '' has 1 layers, but 2 remain; nearest: layers 2");
  workload::Workload unmarked = tiny_mlp(4, 8);
  for (Layer& layer : unmarked.layers)
    for (Op& op : layer.backward) op.weight_gradient = false;
  CHECK(error_of(unmarked, training, {.pipeline = 2, .schedule = Schedule::kZeroBubble}) ==
        "schedule zero_bubble for a workload that does not separate weight gradients; ops marked "
        "as such; nearest: schedule 1f1b");
}

}  // namespace
}  // namespace rehearse::strategies
