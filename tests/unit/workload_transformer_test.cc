// A transformer's layers against the formulas of "Reducing Activation Recomputation in Large
// Transformer Models" (Korthikanti et al., 2022) and of docs/concepts/workload.md.
#include <cmath>

#include <catch2/catch.hpp>

#include "models/workload/transformer.h"

using namespace rehearse;
using namespace rehearse::workload;

namespace {

constexpr double kRounding = 1e-12;

// Distinct sizes, so that none agree by chance.
Transformer gpt() {
  return {.name = "gpt",
          .hidden = 768,
          .layers = 5,
          .heads = 12,
          .feed_forward = 4 * 768,
          .vocabulary = 51200,
          .sequence = 1024};
}

Transformer llama() {
  return {.name = "llama",
          .hidden = 4096,
          .layers = 32,
          .heads = 32,
          .kv_heads = 8,
          .feed_forward = 14336,
          .vocabulary = 128256,
          .sequence = 8192,
          .gated = true,
          .activation = Activation::kSilu,
          .norm = Norm::kRms,
          .positions = Positions::kRotary,
          .tied_embedding = false,
          .query_bias = false,
          .output_bias = false,
          .linear_bias = false};
}

const Implementation kMegatron = {.attention = Attention::kUnfused, .dropout = true};

Workload made(const Transformer& model, const Implementation& how) {
  Result<Workload> w = transformer(model, how);
  INFO((w ? "" : to_string(w.error())));
  REQUIRE(w);
  return *w;
}

const Layer& layer(const Workload& w, std::string_view name) {
  for (const Layer& l : w.layers)
    if (l.name == name) return l;
  FAIL("no layer " << name);
  return w.layers.front();
}

struct Sums {
  double whole = 0;
  double divided = 0;  // by tensor parallelism
  double scores = 0;
};

bool moves(const Op& op) {
  return op.kind == OpKind::kElementwise || op.kind == OpKind::kNorm || op.kind == OpKind::kSoftmax;
}

Sums traffic(const std::vector<Op>& ops) {
  Sums sums;
  for (const Op& op : ops)
    if (moves(op) && op.samples == Extent::kBytes)
      (op.core                       ? sums.scores
       : op.tensor == Extent::kBytes ? sums.divided
                                     : sums.whole) += op.bytes.b();
  return sums;
}

Sums saved(const Layer& l) {
  Sums sums;
  for (const SavedActivation& k : l.saved)
    (k.core ? sums.scores : k.tensor ? sums.divided : sums.whole) += k.bytes.b();
  return sums;
}

double gemm_flops(const std::vector<Op>& ops) {
  double sum = 0;
  for (const Op& op : ops) sum += flops_of(op).flop();
  return sum;
}

double kernels(const std::vector<Op>& ops) {
  double sum = 0;
  for (const Op& op : ops) sum += op.kernels;
  return sum;
}

}  // namespace

TEST_CASE("the elementwise traffic of a GPT block is that of Megatron's runs") {
  const Transformer m = gpt();
  const Workload w = made(m, kMegatron);
  const Layer& block = layer(w, "block");
  const double u = 2. * m.sequence * m.hidden;  // bytes of one activation
  const double scores = 2. * m.heads * m.sequence * m.sequence;

  const Sums forward = traffic(block.forward);
  CHECK(forward.whole == Approx(11 * u).epsilon(kRounding));
  CHECK(forward.divided == Approx((8 + 6) * u).epsilon(kRounding));
  CHECK(forward.scores == Approx(4.5 * scores).epsilon(kRounding));
  const Sums backward = traffic(block.backward);
  CHECK(backward.whole == Approx(21 * u).epsilon(kRounding));
  CHECK(backward.divided == Approx(28 * u).epsilon(kRounding));
  CHECK(backward.scores == Approx(5.5 * scores).epsilon(kRounding));

  // 10 bytes a parameter of gradient accumulation, whatever the samples.
  double accumulated = 0;
  for (const Op& op : block.backward)
    if (op.samples == Extent::kNone) accumulated += op.bytes.b();
  CHECK(accumulated == Approx(10. * 12 * m.hidden * m.hidden).epsilon(kRounding));

  double loss = 0;
  for (const std::vector<Op>* ops : {&w.layers.back().forward, &w.layers.back().backward})
    for (const Op& op : *ops)
      if (op.name.substr(0, 4) == "loss") loss += op.bytes.b();
  CHECK(loss == Approx(32. * m.sequence * m.vocabulary));
}

// Logits are read for the maximum, the sum and the gradient, which is written: 4 times 2 bytes,
// whatever copies are held.
TEST_CASE("a compiled loss moves eight bytes per logit") {
  const Transformer m = gpt();
  const Workload w = made(m, {.loss = Loss::kCompiled});
  double loss = 0;
  for (const std::vector<Op>* ops : {&w.layers.back().forward, &w.layers.back().backward})
    for (const Op& op : *ops)
      if (op.name.substr(0, 4) == "loss") loss += op.bytes.b();
  CHECK(loss == Approx(8. * m.sequence * m.vocabulary));
}

TEST_CASE("a block launches about 24 kernels forward and 48 backward") {
  const Workload w = made(gpt(), kMegatron);
  CHECK(kernels(layer(w, "block").forward) == Approx(24).margin(2));
  CHECK(kernels(layer(w, "block").backward) == Approx(48).margin(4));
  const Workload compiled =
      made(gpt(), {.elementwise = Elementwise::kCompiled, .loss = Loss::kCompiled});
  CHECK(kernels(layer(compiled, "block").forward) < 12);
}

TEST_CASE("GPT-2 moves the bytes of its list of operations, term by term") {
  // Forward of a block in Hugging Face's GPT-2, as a profile of each operation lists it: divide,
  // where, softmax, dropout of scores (2 passes each, and a mask); two dropouts and two sums of one
  // activation (2 and 3 passes, two masks); two norms; and of the wide activation eight terms of
  // GeLU: 2 + 2 + 2 + 3 + 2 + 2 + 2 + 3.
  Transformer m = gpt();
  m.activation = Activation::kGeluNew;
  const Workload w = made(
      m, {.attention = Attention::kUnfused, .elementwise = Elementwise::kUnfused, .dropout = true});
  const double u = 2. * m.sequence * m.hidden;
  const double scores = 2. * m.heads * m.sequence * m.sequence;
  const Sums forward = traffic(layer(w, "block").forward);
  CHECK(forward.scores == Approx((4 * 2 + 0.5) * scores));
  CHECK(forward.whole == Approx((2 * (2 + 3) + 2 * 0.5 + 2 * 2) * u));
  CHECK(forward.divided == Approx((4 * 18 + 6) * u));
  CHECK(traffic(layer(w, "block").backward).scores == Approx((5.5 + 4) * scores));
}

TEST_CASE("matrix operations of a GPT model: 24 B s h^2 (1 + s / 6h) a layer, and backward twice") {
  // Narayanan et al., SC 2021: forward and backward, 72 B s l h^2 (1 + s/6h + V/12lh).
  const Transformer m = gpt();
  for (const Attention attention : {Attention::kUnfused, Attention::kFlash}) {
    const Workload w = made(m, {.attention = attention});
    const double s = m.sequence, h = m.hidden, l = m.layers, v = m.vocabulary;
    CHECK(w.model_flops().flop() ==
          Approx(72 * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h))).epsilon(kRounding));
    for (const Layer& each : w.layers)
      CHECK(gemm_flops(each.backward) == Approx(2 * gemm_flops(each.forward)));
  }
}

TEST_CASE("a block saves the bytes that Korthikanti et al. count") {
  const Transformer m = gpt();
  const double u = double(m.sequence) * m.hidden;  // elements
  const double scores = double(m.heads) * m.sequence * m.sequence;

  SECTION("GPT with dropout: u (10 + 24/t) + 5 a s^2 / t") {
    const Layer block = layer(made(m, kMegatron), "block");
    CHECK(saved(block).whole == Approx(10 * u));
    CHECK(saved(block).divided == Approx(24 * u));
    CHECK(saved(block).scores == Approx(5 * scores));
  }
  SECTION("flash attention: the scores leave 4 a s") {
    const Layer block = layer(made(m, {.dropout = true}), "block");
    CHECK(saved(block).whole == Approx(10 * u));
    CHECK(saved(block).divided == Approx(24 * u));
    CHECK(saved(block).scores == Approx(4. * m.heads * m.sequence));
  }
  SECTION("MPT, flash without dropout: 32 u") {
    const Layer block = layer(made(m, {}), "block");
    CHECK(saved(block).whole + saved(block).divided == Approx(32 * u));
  }
  SECTION("Llama, keys and values expanded: u (8 + (8 + 8f/h) / t)") {
    const Transformer x = llama();
    const double e = double(x.sequence) * x.hidden;
    const Layer block = layer(made(x, {}), "block");
    CHECK(saved(block).whole == Approx(8 * e));
    CHECK(saved(block).divided == Approx((8 + 8. * x.feed_forward / x.hidden) * e));
    // not expanded: keys and values of 8 heads of 32
    const Layer lean = layer(made(x, {.expanded_keys = false}), "block");
    CHECK(saved(lean).divided == Approx((5 + 8. * x.feed_forward / x.hidden) * e));
  }
  SECTION("one tensor is the input, 2 u: what full recomputation keeps") {
    for (const Layer& each : made(m, kMegatron).layers) {
      double inputs = 0;
      for (const SavedActivation& k : each.saved)
        if (k.input) inputs += k.bytes.b();
      CHECK(inputs == Approx(each.name == "embedding" ? 0 : 2 * u));
    }
  }
  SECTION("logits by their copies, for the current microbatch alone") {
    for (const auto& [loss, bytes] :
         {std::pair{Loss::kFused, 2.}, std::pair{Loss::kMpt, 6.}, std::pair{Loss::kCompiled, 8.},
          std::pair{Loss::kEager, 16.}}) {
      double transient = 0;
      const Workload w = made(m, {.loss = loss});
      for (const SavedActivation& k : w.layers.back().saved)
        if (k.transient) transient += k.bytes.b();
      CHECK(transient == Approx(bytes * m.sequence * m.vocabulary));
    }
  }
}

TEST_CASE("tensor parallelism divides the same ops as Megatron-LM") {
  const Workload w = made(gpt(), kMegatron);
  const auto tag = [&](std::string_view layer_name, std::string_view name) {
    const Layer& l = layer(w, layer_name);
    for (const std::vector<Op>* ops : {&l.forward, &l.backward})
      for (const Op& op : *ops)
        if (op.name == name) return op.tensor;
    FAIL("no op " << name);
    return Extent::kNone;
  };
  CHECK(tag("block", "qkv") == Extent::kN);
  CHECK(tag("block", "qkv.dgrad") == Extent::kK);  // partial sums
  CHECK(tag("block", "qkv.wgrad") == Extent::kN);
  CHECK(tag("block", "projection") == Extent::kK);  // partial sums
  CHECK(tag("block", "projection.dgrad") == Extent::kN);
  CHECK(tag("block", "projection.wgrad") == Extent::kM);
  CHECK(tag("block", "scores") == Extent::kBatch);
  CHECK(tag("embedding", "embedding") == Extent::kK);  // partial sums
  CHECK(tag("embedding", "embedding.wgrad") == Extent::kM);
  CHECK(tag("head", "logits") == Extent::kN);

  // Megatron-LM: matrices and biases of columns are divided; norms and biases of rows are not.
  double divided = 0, whole = 0;
  for (const Weights& p : layer(w, "block").weights) (p.tensor ? divided : whole) += p.count;
  const double h = gpt().hidden;
  CHECK(divided == 12 * h * h + 7 * h);
  CHECK(whole == 4 * h + 2 * h);
}

TEST_CASE("the gradient of weights follows that of the input, and sums over tokens") {
  for (const Layer& l : made(llama(), {}).layers)
    for (std::size_t i = 0; i < l.backward.size(); ++i) {
      const Op& op = l.backward[i];
      if (op.kind != OpKind::kGemm || op.core) continue;
      if (!op.weight_gradient) {
        REQUIRE(i + 2 < l.backward.size());
        CHECK(l.backward[i + 1].weight_gradient);
        CHECK(l.backward[i + 1].kind == OpKind::kGemm);
        CHECK(l.backward[i + 2].samples == Extent::kNone);
      } else {
        CHECK(op.samples == Extent::kK);
      }
    }
}

TEST_CASE("a mixture computes as much as its tokens are sent to, and holds all experts") {
  Transformer m = llama();
  m.mixture = Mixture{.experts = 8, .per_token = 2, .feed_forward = 14336};
  const Workload w = made(m, {});
  const Layer& block = layer(w, "mixture_block");
  double held = 0;
  for (const Weights& p : block.weights)
    if (p.expert) held += p.count;
  CHECK(held == 8. * 3 * 4096 * 14336);
  double flops = 0;
  for (const Op& op : block.forward)
    if (op.expert) flops += flops_of(op).flop();
  CHECK(flops == Approx(2. * 2 * 8192 * 3 * 4096 * 14336));
  CHECK(w.experts == 8);

  m.layers = 7;
  m.mixture->first_dense = 1;
  m.mixture->every = 2;
  std::string order;
  for (const Layer& l : made(m, {}).layers)
    order += l.name == "mixture_block" ? "m" : l.name == "dense_block" ? "d" : "";
  CHECK(order == "ddmdmdm");
}

TEST_CASE(
    "32-bit activations take twice the bytes, masks the same, 8-bit operands are stored wider") {
  const Transformer m = gpt();
  const auto bytes = [&](Dtype dtype) {
    return layer(made(m, {.dtype = dtype}), "block").saved_bytes().b() - 4. * m.heads * m.sequence;
  };
  CHECK(bytes(Dtype::kFp32) == Approx(2 * bytes(Dtype::kBf16)));
  CHECK(bytes(Dtype::kFp8) == Approx(bytes(Dtype::kBf16)));
  const Workload w = made(m, {.dtype = Dtype::kFp8});
  for (const Op& op : layer(w, "block").forward)
    CHECK((op.dtype == Dtype::kFp8) == (op.kind == OpKind::kGemm));
}

// u: an activation. Gradients of the input by queries, keys and values, and by both halves of the
// gated input, are added: eager two by two, 2 · 3 u and 3 u, compiled each read and the sum
// written, 4 u and 3 u.
TEST_CASE("separate projections multiply as much and add gradients of their input") {
  const double u = 2. * 8192 * 4096;
  for (const Elementwise elementwise : {Elementwise::kEager, Elementwise::kCompiled}) {
    const Implementation fused{.elementwise = elementwise};
    Implementation separate = fused;
    separate.fused_projections = false;
    const Workload one = made(llama(), fused), other = made(llama(), separate);
    CHECK(other.model_flops() == one.model_flops());
    CHECK(other.parameters() == one.parameters());
    CHECK(layer(other, "block").saved_bytes() == layer(one, "block").saved_bytes());
    double added = 0;
    for (const Op& op : layer(other, "block").backward)
      if (op.name == "input_gradients.backward") added += op.bytes.b();
    CHECK(added == Approx((elementwise == Elementwise::kEager ? 9 : 7) * u));
  }
}

// Queries, keys and values take one 8-bit copy of their input, and so do gate and input.
TEST_CASE("products of one input share its conversion") {
  const auto casts = [](bool fused) {
    double sum = 0;
    const Workload w = made(llama(), {.dtype = Dtype::kFp8, .fused_projections = fused});
    for (const Op& op : layer(w, "block").forward)
      if (op.name.ends_with(".cast")) sum += op.bytes.b();
    return sum;
  };
  CHECK(casts(false) == Approx(casts(true)));
}

// 4 experts a token: 4 · 16 = 64 rows of 32 and, of the inner width, of 48. Clamping moves 8 of the
// latter forward and 10 backward, biases 14 and 20 of the former, 2 bytes each.
TEST_CASE("ops between products of experts move bytes unless they are fused") {
  Transformer model{.name = "mixture",
                    .hidden = 32,
                    .layers = 1,
                    .heads = 4,
                    .vocabulary = 64,
                    .sequence = 16,
                    .gated = true};
  model.mixture = Mixture{.experts = 8, .per_token = 4, .feed_forward = 48, .clamped = true};
  const auto bytes_named = [&](const Implementation& how, std::string_view name) {
    double sum = 0;
    const Workload w = made(model, how);
    for (const auto* phase : {&w.layers[1].forward, &w.layers[1].backward})
      for (const Op& op : *phase)
        if (op.name.starts_with(name)) sum += op.bytes.b();
    return sum;
  };
  CHECK(bytes_named({}, "expert_clamp") == 2 * 64 * 48 * 18.);
  CHECK(bytes_named({}, "expert_bias") == 2 * 64 * 32 * 34.);
  CHECK(bytes_named({.fused_experts = true}, "expert_clamp") == 0);
  CHECK(bytes_named({.fused_experts = true}, "expert_bias") == 0);
  model.linear_bias = model.mixture->clamped = false;
  CHECK(bytes_named({}, "expert_clamp") == 0);
  CHECK(bytes_named({}, "expert_bias") == 0);
}

TEST_CASE("dimensions that make no transformer are refused with the reason") {
  const auto message = [](auto change) {
    Transformer m = gpt();
    change(m);
    const Result<Workload> w = transformer(m, {});
    REQUIRE_FALSE(w);
    return to_string(w.error());
  };
  CHECK(message([](Transformer& m) { m.hidden = 0; }) ==
        "'gpt' has no hidden size; a whole number above zero");
  CHECK(message([](Transformer& m) { m.heads = 7; }) ==
        "'gpt' divides a hidden size of 768 among 7 heads; heads that divide it, or a head size");
  CHECK(message([](Transformer& m) { m.kv_heads = 5; }) ==
        "'gpt' has 12 heads for 5 of keys and values; kv_heads that divide heads");
  CHECK(message([](Transformer& m) {
          m.mixture = Mixture{.experts = 8, .per_token = 9, .feed_forward = 64};
        }) == "'gpt' sends a token to 9 of 8 experts; experts_per_token up to experts");
}

// DeepSeek-V3's recorded layers have 1.4 to 4 times the operators of a Llama block.
TEST_CASE("the host of a mixture has its mean number of operators") {
  Transformer model{.name = "mixture",
                    .hidden = 32,
                    .layers = 1,
                    .heads = 4,
                    .feed_forward = 48,
                    .vocabulary = 64,
                    .sequence = 16,
                    .gated = true};
  const double dense = made(model, {}).layers[1].host_work;
  model.mixture = Mixture{.experts = 8, .per_token = 4, .feed_forward = 48};
  CHECK(made(model, {}).layers[1].host_work / dense == Approx(std::sqrt(1.4 * 4)).epsilon(0.02));
}
