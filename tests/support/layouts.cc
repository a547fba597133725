#include "tests/support/layouts.h"

#include <algorithm>

#include <fmt/core.h>

namespace rehearse::test {

using namespace workload;

namespace {

std::vector<Slot> order_of(const LayoutShape& shape, std::uint32_t stage) {
  const std::uint32_t p = shape.stages, v = shape.chunks, total = shape.microbatches * v;
  const auto slot = [&](Pass pass, std::uint32_t k) {
    const std::uint32_t wave = v > 1 ? p : 1;
    const std::uint32_t chunk = k / wave % v;
    return Slot{pass, pass == Pass::kForward ? chunk : v - 1 - chunk,
                k / (wave * v) * wave + k % wave};
  };
  std::uint32_t warmup = v > 1 ? 2 * (p - 1 - stage) + (v - 1) * p : p - 1 - stage;
  if (shape.gpipe) warmup = total;
  warmup = std::min(warmup, total);
  std::vector<Slot> order;
  const auto backward = [&](std::uint32_t k) {
    order.push_back(slot(Pass::kBackward, k));
    if (shape.split) {
      order.push_back(order.back());
      order.back().pass = Pass::kBackwardWeights;
    }
  };
  for (std::uint32_t k = 0; k < warmup; ++k) order.push_back(slot(Pass::kForward, k));
  for (std::uint32_t k = warmup; k < total; ++k) {
    order.push_back(slot(Pass::kForward, k));
    backward(k - warmup);
  }
  for (std::uint32_t k = total - warmup; k < total; ++k) backward(k);
  return order;
}

Op gemm(std::string_view name, double m, double n, double k) {
  return {.name = name, .kind = OpKind::kGemm, .m = m, .n = n, .k = k};
}
Op elementwise(std::string_view name, double bytes) {
  return {.name = name, .kind = OpKind::kElementwise, .bytes = Bytes::b(bytes)};
}

}  // namespace

Op seconds_op(double seconds) { return elementwise("work", seconds); }

Op collective_op(CollectiveKind kind, Axis axis, Bytes bytes, Issue issue) {
  Op op{.name = to_string(kind), .kind = OpKind::kCollective, .bytes = bytes};
  op.collective = kind;
  op.axis = axis;
  op.issue = issue;
  return op;
}

Layout layout_of(const LayoutShape& shape, const Layer& layer) {
  Layout layout{.names = {},
                .stages = {},
                .microbatches = shape.microbatches,
                .samples_per_step = 1.0 * shape.microbatches * shape.degrees.data,
                .tokens_per_sample = 1,
                .model_flops = Flops::flop(1),
                .applied = {}};
  for (std::uint32_t s = 0; s < shape.stages; ++s) {
    Stage stage{.name = fmt::format("stage {}", s),
                .degrees = shape.degrees,
                .first_rank = s * shape.degrees.ranks(),
                .chunks = {},
                .order = order_of(shape, s),
                .states = {2, 2, 12}};
    for (std::uint32_t c = 0; c < shape.chunks; ++c) {
      Layer alike = layer;
      alike.count = shape.layers;
      stage.chunks.push_back({{alike}, (c * shape.stages + s) * shape.layers});
    }
    layout.stages.push_back(std::move(stage));
  }
  return layout;
}

Layout gpt_175b(std::uint32_t pipeline, std::uint32_t tensor, std::uint32_t data,
                std::uint32_t microbatches) {
  constexpr double s = 2048, h = 12288, heads = 96;
  const double t = tensor, u = 2 * s * h;
  const Op sum = collective_op(CollectiveKind::kAllReduce, Axis::kTensor, Bytes::b(u));
  Op attention{.name = "attention", .kind = OpKind::kAttention};
  attention.batch = heads / t;
  attention.m = attention.n = s;
  attention.k = h / heads;
  Layer layer{.name = "decoder", .forward = {}, .backward = {}};
  layer.forward = {elementwise("norm", 2 * u),
                   gemm("qkv", s, 3 * h / t, h),
                   attention,
                   gemm("projection", s, h, h / t),
                   sum,
                   elementwise("dropout", 3 * u),
                   elementwise("norm", 2 * u),
                   gemm("up", s, 4 * h / t, h),
                   elementwise("gelu", 8 * u / t),
                   gemm("down", s, h, 4 * h / t),
                   sum,
                   elementwise("dropout", 3 * u)};
  layer.recompute = layer.forward;
  for (const Op& op : layer.forward) {
    layer.backward.insert(layer.backward.begin(), op);
    if (op.kind == OpKind::kGemm) layer.backward.insert(layer.backward.begin(), op);
  }
  const double parameters = 12 * h * h / t;
  layer.step = {collective_op(CollectiveKind::kAllReduce, Axis::kData, Bytes::b(2 * parameters)),
                elementwise("adam", 46 * parameters)};
  layer.weights = {{12 * h * h, true, false}};
  layer.output = Bytes::b(u);
  Layout layout = layout_of({.stages = pipeline,
                             .degrees = {.data = data, .tensor = tensor},
                             .layers = 96 / pipeline,
                             .microbatches = microbatches},
                            layer);
  Layer embedding{.name = "embedding", .forward = {elementwise("rows", 2 * u)}, .backward = {}};
  embedding.backward = embedding.forward;
  embedding.output = Bytes::b(u);
  layout.stages.front().chunks.front().layers.insert(
      layout.stages.front().chunks.front().layers.begin(), embedding);
  Layer head{.name = "head", .forward = {gemm("logits", s, 51200 / t, h)}, .backward = {}};
  head.backward = {head.forward.front(), head.forward.front()};
  layout.stages.back().chunks.back().layers.push_back(head);
  return layout;
}

Seconds roofline_price(const Op& op) {
  const Seconds compute = flops_of(op) / FlopRate::tflop_per_s(250);
  return std::max(compute, bytes_of(op) / ByteRate::gb_per_s(1500)) + Seconds::us(3);
}

}  // namespace rehearse::test
