// Layers of a recording, and what tensor parallelism divides of them.
#include <catch2/catch.hpp>

#include "models/workload/lift.h"
#include "models/workload/lift_operands.h"
#include "tests/support/lift_builder.h"

namespace rehearse::workload {
namespace {

using test::StepBuilder;
using trace::HostKind;
using trace::Trace;

Workload lifted_workload(const Trace& trace) {
  Result<Lifted> result = lift(trace, {});
  INFO((result ? "" : to_string(result.error())));
  REQUIRE(result);
  return std::move(result->workload);
}

std::vector<std::string> names(const Workload& workload) {
  std::vector<std::string> list;
  for (const Layer& layer : workload.layers) list.push_back(layer.name);
  return list;
}

constexpr const char* kSquare = "[[2, 8, 32], [32, 32], []]";

/// Attention of four heads and a gated feed-forward part, as Llama has them.
void block(StepBuilder& b) {
  b.op("aten::layer_norm", "[[2, 8, 32], [], [32], [32]]", 1);
  for (int i = 0; i < 3; ++i) b.op("aten::linear", kSquare, 3);
  b.op("aten::mul", "[[2, 4, 8, 8], [8, 8]]", 1);
  b.op("aten::scaled_dot_product_attention", "[[2, 4, 8, 8], [2, 4, 8, 8], [2, 4, 8, 8]]", 4);
  b.op("aten::linear", kSquare, 3);
  b.op("aten::add", "[[2, 8, 32], [2, 8, 32]]", 1);
  b.op("aten::layer_norm", "[[2, 8, 32], [], [32], [32]]", 1);
  b.op("aten::linear", "[[2, 8, 32], [96, 32], []]", 5);
  b.op("aten::silu", "[[2, 8, 96]]", 1);
  b.op("aten::linear", "[[2, 8, 32], [96, 32], []]", 5);
  b.op("aten::mul", "[[2, 8, 96], [2, 8, 96]]", 1);
  b.op("aten::linear", "[[2, 8, 96], [32, 96], []]", 5);
  b.op("aten::add", "[[2, 8, 32], [2, 8, 32]]", 1);
}

TEST_CASE("tensor parallelism divides a block as Megatron does") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  for (int i = 0; i < 2; ++i) b.module("Block_" + std::to_string(i), [&] { block(b); });
  b.end_step();
  const Workload w = lifted_workload(trace);
  REQUIRE(names(w) == std::vector<std::string>{"Block_0", "Block_1"});
  REQUIRE(w.divided_by_tensor.size() == 1);
  CHECK(w.divided_by_tensor[0].name == "heads");
  CHECK(w.divided_by_tensor[0].count == 4);
  for (const Layer& layer : w.layers) {
    std::vector<std::pair<OpKind, Extent>> tags;
    for (const Op& op : layer.forward) tags.push_back({op.kind, op.tensor});
    using K = OpKind;
    using E = Extent;
    CHECK(tags == std::vector<std::pair<K, E>>{{K::kNorm, E::kNone},
                                               {K::kGemm, E::kN},  // queries, keys, values
                                               {K::kGemm, E::kN},
                                               {K::kGemm, E::kN},
                                               {K::kElementwise, E::kBytes},
                                               {K::kAttention, E::kBatch},
                                               {K::kGemm, E::kK},
                                               {K::kElementwise, E::kNone},
                                               {K::kNorm, E::kNone},
                                               {K::kGemm, E::kN},  // gate
                                               {K::kElementwise, E::kBytes},
                                               {K::kGemm, E::kN},  // up
                                               {K::kElementwise, E::kBytes},
                                               {K::kGemm, E::kK},
                                               {K::kElementwise, E::kNone}});
    double divided = 0, whole = 0;
    for (const Weights& weights : layer.weights)
      (weights.tensor ? divided : whole) += weights.count;
    CHECK(divided == 4 * 32 * 32 + 3 * 96 * 32);
    CHECK(whole == 4 * 32);
  }
}

TEST_CASE("attention from single operators is found by its softmax and heads") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  b.op("aten::linear", "[[2, 8, 32], [96, 32], [96]]", 3);
  b.op("aten::bmm", "[[8, 8, 8], [8, 8, 8]]", 2);  // two samples of four heads
  b.op("aten::_softmax", "[[8, 8, 8]]", 1);
  b.op("aten::bmm", "[[8, 8, 8], [8, 8, 8]]", 2);
  b.op("aten::linear", kSquare, 3);
  b.end_step();
  LiftOptions options;
  options.samples = 2;
  const Result<Lifted> result = lift(trace, options);
  REQUIRE(result);
  const Workload& w = result->workload;
  CHECK(w.divided_by_tensor[0].count == 4);
  REQUIRE(w.layers.size() == 2);
  const std::vector<Op>& ops = w.layers[0].forward;
  REQUIRE(ops.size() == 4);
  CHECK(ops[0].tensor == Extent::kN);
  CHECK(ops[1].tensor == Extent::kBatch);
  CHECK(ops[1].batch == 8);
  CHECK(ops[2].tensor == Extent::kBytes);
  CHECK(ops[3].tensor == Extent::kBatch);
  CHECK(w.layers[1].forward[0].tensor == Extent::kK);
  bool scores = false;
  for (const SavedActivation& saved : w.layers[0].saved)
    scores = scores || (saved.core && saved.tensor);
  CHECK(scores);
}

TEST_CASE("a linear without a partner is whole, and so are convolutions") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  b.op("aten::conv2d", "[[2, 3, 8, 8], [16, 3, 3, 3], []]", 3);
  b.op("aten::relu", "[[2, 16, 6, 6]]", 1);
  b.op("aten::linear", "[[2, 576], [10, 576], [10]]", 3);
  b.end_step();
  const Workload w = lifted_workload(trace);
  CHECK(names(w) == std::vector<std::string>{"conv2d 1", "linear 1"});
  const Op& convolution = w.layers[0].forward[0];
  CHECK(convolution.kind == OpKind::kConvolution);
  CHECK(convolution.m == 2 * 6 * 6);  // positions of the output: what the next operator takes
  CHECK(convolution.n == 16);
  CHECK(convolution.k == 27);
  CHECK(convolution.samples == Extent::kM);
  for (const Layer& layer : w.layers)
    for (const Op& op : layer.forward) CHECK(op.tensor == Extent::kNone);
  CHECK(w.divided_by_tensor[0].count == 1);
}

TEST_CASE("modules: repeated blocks are layers, and single compound modules are opened") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  b.module("Net_0", [&] {
    b.module("Linear_0", [&] { b.op("aten::linear", kSquare, 5); });
    b.module("ReLU_0", [&] { b.op("aten::relu", "[[2, 8, 32]]", 1); });
    b.module("Body_0", [&] {
      for (int i = 0; i < 3; ++i)
        b.module("Block_" + std::to_string(i), [&] {
          for (int k = 0; k < 2; ++k)
            b.module(fmt::format("Linear_{}", 1 + 2 * i + k),
                     [&] { b.op("aten::linear", kSquare, 5); });
        });
      b.op("aten::add", "[[2, 8, 32], [2, 8, 32]]", 1);
    });
  });
  b.end_step();
  const Workload w = lifted_workload(trace);
  CHECK(names(w) == std::vector<std::string>{"Linear_0", "Block_0", "Block_1", "Block_2"});
  CHECK(w.layers[0].forward.size() == 2);  // with its activation
  CHECK(w.layers[3].forward.size() == 3);  // with what follows it
}

TEST_CASE("ranges of the program are layers if there are no modules") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  for (const char* name : {"embed", "mix", "mix"})
    b.around(name, HostKind::kAnnotation, [&] {
      b.launch(5, StepBuilder::kMain, "k");
      b.wait(8);
    });
  b.end_step();
  CHECK(names(lifted_workload(trace)) == std::vector<std::string>{"embed", "mix 1", "mix 2"});
}

TEST_CASE("operands: shapes and types as profilers write them") {
  using lifting::parse_operands;
  const auto kineto = parse_operands("[[32, 3, 224], [], [[2, 2], [4]], [7]]",
                                     R"(["c10::BFloat16", "Scalar", "TensorList", "long int"])");
  REQUIRE(kineto.size() == 5);
  CHECK(kineto[0].extents == std::vector<double>{32, 3, 224});
  CHECK(kineto[0].dtype == Dtype::kBf16);
  CHECK(kineto[0].bytes() == 32 * 3 * 224 * 2);
  CHECK_FALSE(kineto[1].is_tensor());
  CHECK(kineto[2].extents == std::vector<double>{2, 2});
  CHECK(kineto[3].extents == std::vector<double>{4});
  CHECK_FALSE(kineto[4].is_floating());
  CHECK(kineto[4].bytes() == 56);
  const auto chakra =
      parse_operands("[[2, 3], [[4], [5]]]",
                     R"x(["Tensor(float)", "GenericList[Tensor(c10::Half),Tensor(c10::Half)]"])x");
  REQUIRE(chakra.size() == 3);
  CHECK(chakra[0].dtype == Dtype::kFp32);
  CHECK(chakra[2].dtype == Dtype::kFp16);
  CHECK(chakra[2].extents == std::vector<double>{5});
  CHECK(parse_operands("nonsense", "[").empty());
  CHECK(parse_operands("[[1", "").empty());
}

TEST_CASE("modules named by path are layers like those named by class") {
  // A transformer: an embedding, blocks with two attentions each, a head.
  Trace trace;
  StepBuilder b(trace);
  const auto module = [&](const std::string& path, auto inside) {
    b.around(path, HostKind::kAnnotation, inside);
  };
  b.begin_step();
  module("model", [&] {
    module("model.embed", [&] { b.op("aten::embedding", "[[100, 32], [2, 8]]", 1); });
    for (int i = 0; i < 4; ++i) {
      const std::string path = "model.layers." + std::to_string(i);
      module(path, [&] {
        for (const char* part : {".attn1", ".attn2"})
          module(path + part, [&] {
            for (const char* matrix : {".q_proj", ".o_proj"})
              module(path + part + matrix, [&] { b.op("aten::linear", kSquare, 3); });
          });
        module(path + ".mlp", [&] { b.op("aten::linear", kSquare, 3); });
      });
    }
  });
  module("lm_head", [&] { b.op("aten::linear", kSquare, 3); });
  b.end_step();
  CHECK(names(lifted_workload(trace)) ==
        std::vector<std::string>{"model.embed", "model.layers.0", "model.layers.1",
                                 "model.layers.2", "model.layers.3", "lm_head"});
}

TEST_CASE("a sequence with numbered parts is not itself a layer") {
  Trace trace;
  StepBuilder b(trace);
  const auto module = [&](const std::string& path, auto inside) {
    b.around(path, HostKind::kAnnotation, inside);
  };
  b.begin_step();
  module("conv1", [&] { b.op("aten::linear", kSquare, 3); });
  for (const char* stage : {"layer1", "layer2"})
    module(stage, [&] {
      for (int i = 0; i < 2; ++i) {
        const std::string path = fmt::format("{}.{}", stage, i);
        module(path, [&] {
          for (const char* part : {".conv1", ".conv2"})
            module(path + part, [&] { b.op("aten::linear", kSquare, 3); });
        });
      }
    });
  b.end_step();
  CHECK(names(lifted_workload(trace)) ==
        std::vector<std::string>{"conv1", "layer1.0", "layer1.1", "layer2.0", "layer2.1"});
}

TEST_CASE("for shapes without types the kernels determine the type") {
  for (const auto& [kernel, bytes] : {std::pair("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", 2.0),
                                      std::pair("ampere_sgemm_128x64_nn", 4.0)}) {
    Trace trace;
    StepBuilder b(trace);
    b.begin_step();
    for (int i = 0; i < 3; ++i)
      b.op("aten::mm", "[[16, 32], [32, 64]]", 5, StepBuilder::kMain, kernel);
    b.end_step();
    for (trace::Inputs& inputs : trace.ranks[0].inputs) inputs.types = trace.names.intern("");
    const Workload w = lifted_workload(trace);
    REQUIRE(w.layers.size() == 3);
    CHECK(w.layers[0].forward[0].kind == OpKind::kGemm);
    CHECK(w.layers[0].forward[0].k == 32);
    CHECK(w.layers[0].output.b() == 16 * 64 * bytes);
  }
}

}  // namespace
}  // namespace rehearse::workload
