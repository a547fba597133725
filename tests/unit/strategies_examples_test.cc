// The worked examples of the pages under docs/concepts. Each case is named after its page, which
// states the same numbers.
#include <catch2/catch.hpp>

#include "strategies/lay_out.h"
#include "strategies/schedule.h"
#include "tests/support/laid_out.h"
#include "tests/support/layout_sums.h"
#include "tests/support/pipeline_run.h"
#include "tests/support/zoo_model.h"

namespace rehearse::strategies {
namespace {

using test::collective_bytes;
using workload::Attention;
using workload::Axis;
using workload::Dtype;
using workload::Implementation;
using workload::Layer;
using workload::Layout;
using workload::Op;

Layout laid_out(std::string_view model, const Training& training, const Plan& plan,
                const Implementation& how = {}) {
  const Result<workload::Workload> w = test::zoo_model(model, how);
  REQUIRE(w);
  return test::laid_out(*w, training, plan);
}

const Layer& layer_named(const Layout& layout, std::string_view name) {
  for (const workload::Chunk& chunk : layout.stages[0].chunks)
    for (const Layer& layer : chunk.layers)
      if (layer.name == name) return layer;
  FAIL("no layer " << name);
  return layout.stages[0].chunks[0].layers[0];
}

/// MB that one layer passes to such collectives, by phase.
double megabytes(const std::vector<Op>& ops, Axis axis) {
  double sum = 0;
  for (const Op& op : ops)
    if (op.kind == workload::OpKind::kCollective && op.axis == axis) sum += op.bytes.b() / 1e6;
  return sum;
}

TEST_CASE("plan.md") {
  const Training training{.global_batch = 1536, .recompute = Recompute::kFull};
  const Plan plan{.data = 16, .tensor = 8, .pipeline = 12};
  const Layout layout = laid_out("gpt3_175b", training, plan);
  CHECK(layout.ranks() == 1536);
  CHECK(layout.microbatches == 96);
  const workload::Stage& stage = layout.stages[1];
  CHECK(stage.first_rank == 128);
  CHECK(stage.parameters() == Approx(1.812e9).epsilon(0.001));
  CHECK(stage.states.total() == 18);
  CHECK(layout.tied_gradient.b() / 1e6 == Approx(308.8).epsilon(0.001));
  CHECK(layout.applied == std::vector<std::string>{"tensor_parallel", "recompute", "pipeline",
                                                   "sum_gradients", "schedule"});
}

TEST_CASE("tensor-parallel.md") {
  const Training training{.global_batch = 1};
  const Layout layout = laid_out("gpt3_175b", training, {.tensor = 8});
  CHECK(megabytes(layer_named(layout, "block").forward, Axis::kTensor) ==
        Approx(100.66).epsilon(0.001));
  CHECK(megabytes(layer_named(layout, "block").backward, Axis::kTensor) ==
        Approx(100.66).epsilon(0.001));
  const Layout tokens = laid_out("gpt3_175b", training, {.tensor = 8, .sequence_parallel = true});
  CHECK(megabytes(layer_named(tokens, "block").forward, Axis::kTensor) ==
        Approx(201.33).epsilon(0.001));
  CHECK(megabytes(layer_named(tokens, "block").backward, Axis::kTensor) ==
        Approx(301.99).epsilon(0.001));
}

TEST_CASE("zero.md") {
  const double parameters = 7.5;  // 10⁹
  const auto gigabytes = [&](std::uint32_t zero) {
    return parameters * laid_out("megatron_7.5b", {.global_batch = 64, .dtype = Dtype::kFp16},
                                 {.data = 64, .zero = zero})
                            .stages[0]
                            .states.total();
  };
  CHECK(gigabytes(0) == Approx(120));
  CHECK(gigabytes(1) == Approx(31.4).epsilon(0.002));
  CHECK(gigabytes(2) == Approx(16.64).epsilon(0.001));
  CHECK(gigabytes(3) == Approx(1.875));
}

TEST_CASE("pipeline.md") {
  const auto bubble = [](Schedule schedule, std::uint32_t chunks, const test::PassTimes& times) {
    std::vector<std::vector<workload::Slot>> orders;
    std::vector<std::span<const workload::Slot>> spans;
    for (std::uint32_t s = 0; s < 4; ++s) orders.push_back(order_of(schedule, {4, 8, chunks}, s));
    for (const auto& order : orders) spans.emplace_back(order);
    const auto run =
        test::run_pipeline(spans, std::vector<std::vector<test::PassTimes>>(4, {chunks, times}), 8);
    REQUIRE(run);
    return run->bubble();
  };
  const test::PassTimes whole{.forward = Seconds::ms(1), .backward = Seconds::ms(2)};
  const test::PassTimes split{
      .forward = Seconds::ms(1), .backward = Seconds::ms(1), .backward_weights = Seconds::ms(1)};
  CHECK(bubble(Schedule::kGpipe, 1, whole) == Approx(0.375));
  CHECK(bubble(Schedule::k1f1b, 1, whole) == Approx(0.375));
  CHECK(bubble(Schedule::kInterleaved, 2, whole) == Approx(0.1875));
  CHECK(bubble(Schedule::kZeroBubble, 1, split) == Approx(0.125));
}

TEST_CASE("expert-parallel.md") {
  const Training training{.global_batch = 8};
  const Layout layout = laid_out("mixtral_8x7b", training, {.data = 8, .expert = 4});
  const Layer& block = layer_named(layout, "mixture_block");
  CHECK(megabytes(block.forward, Axis::kExpert) == Approx(134.2).epsilon(0.001));
  CHECK(megabytes(block.backward, Axis::kExpert) == Approx(134.2).epsilon(0.001));
  for (const Op& op : block.forward)
    if (op.name == "expert_down") {
      CHECK(op.batch == 2);
      CHECK(op.m == 4096);
    }
  const Layout weights =
      laid_out("mixtral_8x7b", training,
               {.data = 8, .expert = 4, .expert_exchange = ExpertExchange::kWeights});
  const Layer& gathered = layer_named(weights, "mixture_block");
  CHECK(megabytes(gathered.forward, Axis::kExpert) + megabytes(gathered.backward, Axis::kExpert) ==
        Approx(8455.7).epsilon(0.001));
}

TEST_CASE("context-parallel.md") {
  const Training training{.global_batch = 1};
  const Layout ring = laid_out("llama3_8b", training, {.context = 4});
  CHECK(megabytes(layer_named(ring, "block").forward, Axis::kContext) ==
        Approx(33.55).epsilon(0.001));
  CHECK(megabytes(layer_named(ring, "block").backward, Axis::kContext) ==
        Approx(67.11).epsilon(0.001));
  const Layout exchange = laid_out("llama3_8b", training,
                                   {.context = 4, .context_exchange = ContextExchange::kAllToAll});
  CHECK(megabytes(layer_named(exchange, "block").forward, Axis::kContext) ==
        Approx(41.94).epsilon(0.001));
  CHECK(megabytes(layer_named(exchange, "block").backward, Axis::kContext) ==
        Approx(41.94).epsilon(0.001));
}

TEST_CASE("recompute.md") {
  const Implementation unfused{.attention = Attention::kUnfused};
  const auto with = [&](Recompute recompute) {
    return laid_out("gpt3_175b", {.global_batch = 1, .recompute = recompute}, {}, unfused);
  };
  const double none = test::flops_over_ranks(with(Recompute::kNone)).flop();
  const auto more = [&](Recompute recompute) {
    return 100 * (test::flops_over_ranks(with(recompute)).flop() / none - 1);
  };
  const auto saved = [&](Recompute recompute) {
    return layer_named(with(recompute), "block").saved_bytes().b() / 1e6;
  };
  CHECK(more(Recompute::kSelective) == Approx(0.9).margin(0.05));
  CHECK(more(Recompute::kFull) == Approx(33.1).margin(0.2));
  CHECK(saved(Recompute::kSelective) < saved(Recompute::kNone));
  CHECK(saved(Recompute::kFull) == Approx(50.3).epsilon(0.001));
}

TEST_CASE("offload.md") {
  const Layout layout = laid_out("llama2_7b", {.global_batch = 8},
                                 {.data = 8, .zero = 1, .tiers = tiers_of(Offload::kOptimizer)});
  double there = 0, back = 0;
  test::visit_ops(layout, [&](const Op& op, const workload::Stage&, double times) {
    if (op.name == "gradients to host") there += times * op.bytes.b() / 1e9;
    if (op.name == "weights from host") back += times * op.bytes.b() / 1e9;
  });
  CHECK(there == Approx(3.37).epsilon(0.001));
  CHECK(back == Approx(1.685).epsilon(0.001));
  CHECK(layout.stages[0].states.optimizer == 0);
  // Of 2 + 2 + 12 bytes of a parameter, the weights stay.
  const Layout moved = laid_out("llama2_7b", {.global_batch = 2, .dtype = Dtype::kFp16},
                                {.tiers = tiers_of(Offload::kGradients)});
  const workload::StateBytes& states = moved.stages[0].states;
  CHECK(states.weights == 2);
  CHECK(states.gradient + states.optimizer + states.update.value_or(0) == 0);
}

constexpr Implementation kFp32{.dtype = Dtype::kFp32};

TEST_CASE("parameter-server.md") {
  const Training training{
      .global_batch = 128, .microbatch = 32, .dtype = Dtype::kFp32, .optimizer = Optimizer::kSgd};
  const Layout layout = laid_out("vgg16", training,
                                 {.data = 4,
                                  .synchronization = Synchronization::kParameterServer,
                                  .parameter_server = {.servers = 2}},
                                 kFp32);
  CHECK(layout.ranks() == 6);
  CHECK(collective_bytes(layout, Axis::kData, CollectiveKind::kReduce) / 1e6 ==
        Approx(553.4).epsilon(0.001));
  CHECK(layout.servers->parameters / 1e6 == Approx(69.18).epsilon(0.001));
  CHECK(layout.servers->update.bytes.b() / 1e9 == Approx(4.151).epsilon(0.001));
}

TEST_CASE("layer-separation.md") {
  const Training training{.global_batch = 256, .microbatch = 32, .dtype = Dtype::kFp32};
  const Layout together = laid_out("vgg16", training, {.data = 8}, kFp32);
  CHECK(collective_bytes(together, Axis::kData) / 1e6 == Approx(553.4).epsilon(0.001));
  const Layout apart = laid_out("vgg16", training,
                                {.stages = {{.name = "convolutions", .layers = 18, .data = 8},
                                            {.name = "classifier", .data = 1}}},
                                kFp32);
  CHECK(apart.ranks() == 9);
  CHECK(collective_bytes(apart, Axis::kData) / 1e6 == Approx(58.86).epsilon(0.001));
  const Layer& last = apart.stages[0].chunks[0].layers.back();
  CHECK(last.output.b() / 1e6 == Approx(3.211).epsilon(0.001));
  CHECK(apart.stages[1].chunks[0].layers[0].forward[0].m == 256);
}

}  // namespace
}  // namespace rehearse::strategies
