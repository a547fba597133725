#include "tests/support/tiny_models.h"

#include <fmt/core.h>

namespace rehearse::test {
namespace {

using namespace workload;

Op gemm(std::string_view name, double m, double n, double k, Extent samples, Extent tensor) {
  return {.name = name,
          .kind = OpKind::kGemm,
          .m = m,
          .n = n,
          .k = k,
          .samples = samples,
          .tensor = tensor};
}

Op moved(std::string_view name, double bytes, bool tensor = false) {
  return {.name = name,
          .kind = OpKind::kElementwise,
          .bytes = Bytes::b(bytes),
          .samples = Extent::kBytes,
          .tensor = tensor ? Extent::kBytes : Extent::kNone};
}

/// Column-parallel if `columns`, else row-parallel.
void linear(Layer& layer, std::vector<std::vector<Op>>& backward, std::string_view name,
            double tokens, double out, double in, bool columns, double experts = 0) {
  const auto put = [&](std::vector<Op>& ops, Op op) {
    op.expert = experts > 0;
    op.batch = experts > 0 ? experts : 1;
    ops.push_back(op);
  };
  put(layer.forward, gemm(name, tokens, out, in, Extent::kM, columns ? Extent::kN : Extent::kK));
  std::vector<Op> gradients;
  put(gradients, gemm("dgrad", tokens, in, out, Extent::kM, columns ? Extent::kK : Extent::kN));
  Op wgrad = gemm("wgrad", in, out, tokens, Extent::kK, columns ? Extent::kN : Extent::kM);
  wgrad.weight_gradient = true;
  put(gradients, wgrad);
  backward.push_back(gradients);
  const double count = out * in * (experts > 0 ? experts : 1);
  for (Weights& w : layer.weights)
    if (w.expert == (experts > 0)) {
      w.count += count;
      return;
    }
  layer.weights.push_back({.count = count, .tensor = true, .expert = experts > 0});
}

void close(Layer& layer, const std::vector<std::vector<Op>>& backward) {
  for (std::size_t i = backward.size(); i-- > 0;)
    layer.backward.insert(layer.backward.end(), backward[i].begin(), backward[i].end());
}

Layer block(const TinyGpt& g) {
  const double s = g.sequence, h = g.hidden, u = 2 * s * h;
  Layer layer{.name = "block", .count = g.layers, .output = Bytes::b(u), .host_work = 1};
  layer.saved = {{.name = "input", .bytes = Bytes::b(u), .input = true},
                 {.name = "attention", .bytes = Bytes::b(4 * u), .tensor = true},
                 {.name = "rest", .bytes = Bytes::b(3 * u)}};
  std::vector<std::vector<Op>> backward;
  layer.forward.push_back(moved("norm", 2 * u));
  backward.push_back({moved("norm backward", 3 * u)});
  linear(layer, backward, "qkv", s, 3 * h, h, true);
  if (g.flash) {
    Op attention{.name = "attention",
                 .kind = OpKind::kAttention,
                 .batch = g.heads,
                 .m = s,
                 .n = s,
                 .k = h / g.heads,
                 .samples = Extent::kBatch,
                 .tensor = Extent::kBatch,
                 .core = true};
    layer.forward.push_back(attention);
    attention.batch *= 2;
    backward.push_back({attention});
  } else {
    const auto product = [&](double m, double n, double k) {
      Op op = gemm("product", m, n, k, Extent::kBatch, Extent::kBatch);
      op.batch = g.heads;
      op.core = true;
      return op;
    };
    const double d = h / g.heads;
    Op softmax = moved("softmax", 4 * g.heads * s * s, true);
    softmax.core = true;
    layer.forward.push_back(product(s, s, d));
    layer.forward.push_back(softmax);
    layer.forward.push_back(product(s, d, s));
    backward.push_back({product(s, d, s), product(s, d, s)});
    backward.push_back({softmax});
    backward.push_back({product(s, s, d), product(s, d, s)});
    layer.saved.push_back(
        {.name = "scores", .bytes = Bytes::b(5 * g.heads * s * s), .tensor = true, .core = true});
  }
  linear(layer, backward, "projection", s, h, h, false);
  layer.forward.push_back(moved("add", 3 * u));
  if (g.experts == 0) {
    linear(layer, backward, "up", s, 4 * h, h, true);
    layer.forward.push_back(moved("gelu", 8 * u, true));
    backward.push_back({moved("gelu backward", 12 * u, true)});
    linear(layer, backward, "down", s, h, 4 * h, false);
  } else {
    const double tokens = s * g.experts_per_token / g.experts;
    linear(layer, backward, "up", tokens, 4 * h, h, true, g.experts);
    layer.forward.push_back(moved("gelu", 8 * u * g.experts_per_token, true));
    backward.push_back({moved("gelu backward", 12 * u * g.experts_per_token, true)});
    linear(layer, backward, "down", tokens, h, 4 * h, false, g.experts);
  }
  layer.forward.push_back(moved("add", 3 * u));
  close(layer, backward);
  return layer;
}

}  // namespace

Workload tiny_gpt(const TinyGpt& g) {
  const double s = g.sequence, h = g.hidden, u = 2 * s * h;
  Workload w{.name = "tiny gpt", .names = {}, .layers = {}, .tokens_per_sample = s};
  w.divided_by_tensor = {{"heads", g.heads}};
  w.experts = g.experts;
  w.experts_per_token = g.experts > 0 ? g.experts_per_token : 0;
  w.tied_embedding = g.tied;
  Layer embedding{.name = "embedding", .output = Bytes::b(u)};
  Op rows{.name = "lookup",
          .kind = OpKind::kGather,
          .m = s,
          .n = h,
          .k = g.vocabulary,
          .samples = Extent::kM,
          .tensor = Extent::kK};
  embedding.forward = {rows};
  rows.tensor = Extent::kM;
  rows.weight_gradient = true;
  embedding.backward = {rows};
  embedding.weights = {{.count = g.vocabulary * h, .tensor = true}};
  w.layers.push_back(embedding);
  w.layers.push_back(block(g));
  Layer head{.name = "head"};
  std::vector<std::vector<Op>> backward;
  head.forward.push_back(moved("norm", 2 * u));
  backward.push_back({moved("norm backward", 3 * u)});
  linear(head, backward, "logits", s, g.vocabulary, h, true);
  if (g.tied) head.weights.clear();
  head.saved = {{.name = "input", .bytes = Bytes::b(u), .input = true},
                {.name = "logits",
                 .bytes = Bytes::b(4 * s * g.vocabulary),
                 .tensor = true,
                 .transient = true}};
  close(head, backward);
  w.layers.push_back(head);
  return w;
}

Workload tiny_mlp(std::uint32_t layers, double size) {
  Workload w{.name = "tiny mlp", .names = {}, .layers = {}};
  for (std::uint32_t i = 0; i < layers; ++i) {
    Layer layer{.name = fmt::format("linear {}", i), .output = Bytes::b(4 * size)};
    std::vector<std::vector<Op>> backward;
    linear(layer, backward, "linear", 1, size, size, true);
    for (std::vector<Op>* ops : {&layer.forward, &backward[0]})
      for (Op& op : *ops) {
        op.tensor = Extent::kNone;
        op.dtype = Dtype::kFp32;
      }
    layer.weights.front().tensor = false;
    layer.saved = {{.name = "input", .bytes = Bytes::b(4 * size), .input = true}};
    close(layer, backward);
    w.layers.push_back(layer);
  }
  return w;
}

}  // namespace rehearse::test
