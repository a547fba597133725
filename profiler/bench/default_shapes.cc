#include "profiler/bench/default_shapes.h"

#include "sim/base/check.h"

namespace rehearse::bench {
namespace {

using Extent = std::uint64_t;

class List {
 public:
  void add(std::string_view op, const NamedExtents& extents, std::string_view dtype = {},
           std::string_view layout = {}) {
    Result<Shape> shape = make_shape(op, extents, dtype, layout);
    REHEARSE_CHECK(shape, "a shape of our own is wrong: {}", to_string(shape.error()));
    shapes_.push_back(std::move(*shape));
  }
  std::vector<Shape> take() { return without_repeats(shapes_); }

 private:
  std::vector<Shape> shapes_;
};

/// Linear layers of a transformer of width 4096, whole and divided by tensor parallelism.
void add_products(List& list) {
  constexpr Extent kWidth = 4096, kInner = 4 * kWidth;
  for (const Extent tokens : {1, 16, 128, 512, 2048, 8192}) {
    list.add("gemm", {{"m", tokens}, {"n", 3 * kWidth}, {"k", kWidth}});
    list.add("gemm", {{"m", tokens}, {"n", kWidth}, {"k", kWidth}});
    list.add("gemm", {{"m", tokens}, {"n", kInner}, {"k", kWidth}});
    list.add("gemm", {{"m", tokens}, {"n", kWidth}, {"k", kInner}});
  }
  for (const Extent degree : {2, 4, 8}) {
    list.add("gemm", {{"m", 2048}, {"n", kInner / degree}, {"k", kWidth}});
    list.add("gemm", {{"m", 2048}, {"n", kWidth}, {"k", kInner / degree}});
  }
  list.add("gemm", {{"m", 2048}, {"n", kWidth}, {"k", kInner}}, "bf16", "nn");
  list.add("gemm", {{"m", kInner}, {"n", kWidth}, {"k", 2048}}, "bf16", "tn");
  for (const std::string_view dtype : {"bf16", "fp16", "tf32", "fp32", "fp8"})
    for (const Extent side : {1024, 4096, 8192})
      list.add("gemm", {{"m", side}, {"n", side}, {"k", side}}, dtype);
  list.add("gemm", {{"m", 2048}, {"n", 2048}, {"k", 128}, {"batch", 32}});
}

/// Layers of ResNet-50.
void add_convolutions(List& list) {
  struct Layer {
    Extent channels, side, filters, filter, stride, padding;
  };
  constexpr Layer kLayers[] = {{3, 224, 64, 7, 2, 3},   {64, 56, 64, 1, 1, 0},
                               {64, 56, 64, 3, 1, 1},   {128, 28, 128, 3, 1, 1},
                               {256, 14, 256, 3, 1, 1}, {512, 7, 512, 3, 1, 1},
                               {256, 56, 512, 1, 2, 0}, {1024, 14, 256, 1, 1, 0}};
  const auto add = [&](std::string_view op, const Layer& l, Extent images) {
    list.add(op, {{"images", images},
                  {"channels", l.channels},
                  {"height", l.side},
                  {"width", l.side},
                  {"filters", l.filters},
                  {"filter_height", l.filter},
                  {"filter_width", l.filter},
                  {"stride", l.stride},
                  {"padding", l.padding}});
  };
  for (const Layer& layer : kLayers) {
    for (const Extent images : {32, 64, 128}) add("conv", layer, images);
    for (const std::string_view op : {"conv_input", "conv_weight"}) add(op, layer, 64);
  }
}

void add_attention(List& list) {
  for (const Extent tokens : {512, 1024, 2048, 4096, 8192})
    for (const Extent heads : {4, 8, 16, 32})
      if (heads == 32 || tokens == 2048)
        list.add("attention", {{"batch", 1},
                               {"heads", heads},
                               {"queries", tokens},
                               {"keys", tokens},
                               {"head_size", 128}});
  for (const Extent batch : {4, 8, 16, 32})
    list.add("attention",
             {{"batch", batch}, {"heads", 16}, {"queries", 512}, {"keys", 512}, {"head_size", 64}},
             "bf16", "full");
}

void add_elementwise(List& list) {
  for (const Extent power : {16, 20, 22, 24, 26, 28})
    for (const Extent inputs : {1, 2})
      list.add("elementwise", {{"elements", Extent{1} << power}, {"inputs", inputs}});
  for (const std::string_view op : {"reduction", "norm", "softmax"})
    for (const Extent width : {1024, 4096, 8192}) list.add(op, {{"rows", 8192}, {"width", width}});
}

void add_copies(List& list) {
  for (const std::string_view way :
       {"h2d_pinned", "h2d_pageable", "d2h_pinned", "d2h_pageable", "d2d", "peer"})
    for (const Extent power : {12, 16, 20, 23, 26})
      list.add("copy", {{"bytes", Extent{1} << power}}, "bytes", way);
  for (const Extent power : {12, 20, 28}) list.add("set", {{"bytes", Extent{1} << power}});
}

void add_collectives(List& list) {
  for (const std::string_view op :
       {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"})
    for (const Extent power : {10, 16, 20, 24, 28}) list.add(op, {{"bytes", Extent{1} << power}});
}

}  // namespace

std::vector<Shape> default_shapes(Family family) {
  List list;
  switch (family) {
    case Family::kGemm:
      add_products(list);
      break;
    case Family::kConv:
      add_convolutions(list);
      break;
    case Family::kAttention:
      add_attention(list);
      break;
    case Family::kElementwise:
      add_elementwise(list);
      break;
    case Family::kCopy:
      add_copies(list);
      break;
    case Family::kCollective:
      add_collectives(list);
      break;
  }
  return list.take();
}

}  // namespace rehearse::bench
