// The operations of a re-plan of a recording, as shapes to measure.
#include <algorithm>
#include <cmath>

#include "cli/calibrate/op_timings.h"

namespace rehearse::cli {
namespace {

using bench::NamedExtents, bench::Shape, workload::Dtype, workload::Op, workload::OpKind;

/// A double as a whole number above zero; nothing if it is not one.
std::optional<std::uint64_t> whole(double value) {
  const double rounded = std::round(value);
  if (!(rounded >= 1) || rounded > 1e13 || std::abs(value - rounded) > 1e-6 * rounded)
    return std::nullopt;
  return static_cast<std::uint64_t>(rounded);
}

std::optional<Shape> made(std::string_view op, const std::vector<std::string_view>& names,
                          const std::vector<double>& values, std::string_view dtype,
                          std::string_view layout = {}) {
  NamedExtents extents;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::optional<std::uint64_t> value = whole(values[i]);
    if (!value) return std::nullopt;
    extents.emplace_back(names[i], *value);
  }
  Result<Shape> shape = bench::make_shape(op, extents, dtype, layout);
  if (!shape) return std::nullopt;
  return std::move(*shape);
}

/// Elementwise kernels do not multiply: TF32 operands are FP32, FP8 ones half precision.
std::string_view stored_as(Dtype dtype) {
  if (dtype == Dtype::kTf32) return "fp32";
  return dtype == Dtype::kFp8 ? "bf16" : workload::to_string(dtype);
}

/// A convolution as a product, as its operation describes it.
struct Product {
  std::string_view op;
  std::string_view dtype;
  double groups, positions, filters, summed;  ///< of a group; as forward has them
  double samples;

  static Product of(const Op& op, double samples) {
    const bool weight = op.weight_gradient,
               forward = op.name.find("backward") == std::string_view::npos;
    return {.op = weight    ? "conv_weight"
                  : forward ? "conv"
                            : "conv_input",
            .dtype = workload::to_string(op.dtype),
            .groups = op.batch,
            .positions = weight ? op.k : op.m,
            .filters = weight    ? op.m
                       : forward ? op.n
                                 : op.k,
            .summed = forward ? op.k : op.n,
            .samples = samples};
  }
};

/// The shape of a convolution with square image, square filter of this side, and this many elements
/// read as images. Exactly one pair of stride and padding fits, or none.
std::optional<Shape> with_filter(const Product& p, double filter, double image) {
  const double channels = p.groups * p.summed / (filter * filter);
  const double side = std::sqrt(image / channels / p.samples),
               out_side = std::sqrt(p.positions / p.samples);
  if (!whole(channels) || !whole(side) || !whole(out_side)) return std::nullopt;
  for (const double stride : {1., 2., 3., 4.})
    for (double padding = 0; padding <= filter / 2; ++padding) {
      const double fits = std::floor((std::round(side) + 2 * padding - filter) / stride) + 1;
      if (fits != std::round(out_side)) continue;
      NamedExtents extents = {{"padding", static_cast<std::uint64_t>(padding)}};
      for (const auto& [extent, value] : std::initializer_list<std::pair<std::string_view, double>>{
               {"images", p.samples},
               {"channels", channels},
               {"height", side},
               {"width", side},
               {"filters", p.groups * p.filters},
               {"filter_height", filter},
               {"filter_width", filter},
               {"stride", stride},
               {"groups", p.groups}})
        if (const std::optional<std::uint64_t> number = whole(value))
          extents.emplace_back(extent, *number);
      if (Result<Shape> shape = bench::make_shape(p.op, extents, p.dtype, "nchw"))
        return std::move(*shape);
    }
  return std::nullopt;
}

/// The shape of a convolution: the bytes that the operation reads in addition to its product
/// determine the size of its filter.
std::optional<Shape> convolution_of(const Op& op, double samples) {
  const Product p = Product::of(op, samples);
  // The elements of image and result, and in most cases of the filter.
  const double all = op.bytes.b() / bytes_of(op.dtype) - p.groups * p.filters * p.positions;
  for (const double image : {all - p.groups * p.filters * p.summed, all})
    for (const double filter : {1., 2., 3., 4., 5., 7., 9., 11.})
      if (std::optional<Shape> found = with_filter(p, filter, image)) return found;
  return std::nullopt;
}

class Collector {
 public:
  void add(std::optional<Shape> shape) {
    if (shape && std::ranges::find(replan_.shapes, *shape) == replan_.shapes.end())
      replan_.shapes.push_back(std::move(*shape));
  }

  void add_variants(const Op& op, double samples, bool backward) {
    if (op.communicates() || op.host) return;
    if (op.kind == OpKind::kAttention && backward) {  // measured forward alone
      ++replan_.without_shape;
      return;
    }
    if (op.kind == OpKind::kConvolution) {
      const std::optional<Shape> recorded = convolution_of(op, samples);
      if (!recorded) {
        ++replan_.without_shape;
        return;
      }
      for (const double factor : {1.0, 0.5, 2.0, 4.0}) {
        Shape shape = *recorded;
        const std::optional<std::uint64_t> images = whole(samples * factor);
        if (!images) continue;
        shape.extents.front() = *images;
        add(std::move(shape));
      }
      return;
    }
    if (!shape_of(op, samples)) {
      ++replan_.without_shape;
      return;
    }
    for (const double degree : {1., 2., 4., 8.}) {
      if (degree > 1 && op.tensor == workload::Extent::kNone) break;
      for (const double factor : {1.0, 0.5, 2.0, 4.0}) {
        if (factor != 1 && op.samples == workload::Extent::kNone) break;
        Op variant = op;
        divide(variant, op.tensor, degree);
        divide(variant, op.samples, 1 / factor);
        std::optional<Shape> shape = shape_of(variant, samples * factor);
        if (shape && shape->op == "gemm" && backward)
          shape->layout = op.weight_gradient ? "tn" : "nn";
        if (shape && shape->dtype == "fp8") shape->layout = "nt";
        add(std::move(shape));
      }
    }
  }

  void add_collective(std::string_view op, double bytes, Dtype dtype) {
    add(made(op, {"bytes"}, {std::round(bytes)}, stored_as(dtype)));
  }

  Replan take() { return std::move(replan_); }

 private:
  Replan replan_;
};

/// The format of most matrix work.
Dtype dtype_of(const workload::Workload& recorded) {
  Dtype dtype = Dtype::kFp32;
  double most = 0;
  for (const workload::Layer& layer : recorded.layers)
    for (const Op& op : layer.forward)
      if (const double flops = flops_of(op).flop() * layer.count; flops > most) {
        most = flops;
        dtype = op.dtype;
      }
  return dtype;
}

}  // namespace

std::optional<Shape> shape_of(const Op& op, double samples) {
  const std::string_view dtype = workload::to_string(op.dtype), stored = stored_as(op.dtype);
  const double element = stored == "fp32" ? 4 : 2;
  switch (op.kind) {
    case OpKind::kGemm:
      return made("gemm", {"m", "n", "k", "batch"}, {op.m, op.n, op.k, op.batch}, dtype);
    case OpKind::kConvolution: return convolution_of(op, samples);
    case OpKind::kAttention: {
      const double batch = whole(op.batch / samples) ? samples : 1;
      return made("attention", {"batch", "heads", "queries", "keys", "head_size"},
                  {batch, op.batch / batch, op.m, op.n, op.k}, stored,
                  op.causal ? "causal" : "full");
    }
    case OpKind::kElementwise:
      if (op.kernels > 1) return std::nullopt;
      return made("elementwise", {"elements", "inputs"}, {op.bytes.b() / (2 * element), 1}, stored);
    case OpKind::kNorm:
    case OpKind::kSoftmax:
      if (!(op.width >= 1) || op.kernels > 1) return std::nullopt;
      return made(op.kind == OpKind::kNorm ? "norm" : "softmax", {"rows", "width"},
                  {op.bytes.b() / (2 * element * op.width), op.width}, stored);
    case OpKind::kGather:
    case OpKind::kCollective:
    case OpKind::kCopy: break;
  }
  return std::nullopt;
}

Replan replan_shapes(const workload::Workload& recorded) {
  Collector collector;
  for (const workload::Layer& layer : recorded.layers) {
    for (const Op& op : layer.forward) collector.add_variants(op, recorded.samples, false);
    for (const Op& op : layer.backward) collector.add_variants(op, recorded.samples, true);
  }
  const Dtype dtype = dtype_of(recorded);
  const double element = bytes_of(dtype) == 4 ? 4 : 2;
  // Buckets of gradients as in PyTorch and Megatron, and all gradients at once.
  constexpr double kBucket = 25.0 * 1024 * 1024;
  const double gradients = recorded.parameters() * element;
  for (const double bytes : {kBucket, 4 * kBucket, gradients})
    if (bytes > 0 && bytes <= std::max(gradients, kBucket))
      for (const std::string_view op : {"all_reduce", "reduce_scatter", "all_gather"})
        collector.add_collective(op, bytes, dtype);
  // The sums of tensor parallelism in each layer.
  for (const workload::Layer& layer : recorded.layers)
    if (layer.output > Bytes::b(0) && !layer.forward.empty())
      for (const double factor : {1.0, 0.5, 2.0, 4.0})
        collector.add_collective("all_reduce", layer.output.b() * factor, dtype);
  return collector.take();
}

}  // namespace rehearse::cli
