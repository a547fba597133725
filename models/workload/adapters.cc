#include "models/workload/adapters.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "models/workload/layer_builder.h"

namespace rehearse::workload {
namespace {

/// Operator records of PEFT's adapter in forward, relative to the 171 of a Llama layer
/// (docs/concepts/host.md): 8 for each of two linear modules on three dimensions, 2 for dropout, and one
/// each for the cast, the scale and the addition.
constexpr double kAdapterHostWork = 21.0 / 171;

bool is_linear(const Op& op) { return op.kind == OpKind::kGemm && !op.core; }

/// Writes the ops of one adapter, in addition to those of the product that it adapts.
class Adapter {
 public:
  Adapter(NamePool& names, const Op& product, double rank)
      : names_(names),
        w_(product),
        rank_(rank),
        by_columns_(product.tensor == Extent::kN),
        by_rows_(product.tensor == Extent::kK) {
    if (w_.dtype == Dtype::kFp8) w_.dtype = Dtype::kBf16;
  }

  std::vector<Op> forward() const {
    return {product("lora_a", w_.m, rank_, w_.k, by_rows_ ? Extent::kK : Extent::kNone),
            product("lora_b", w_.m, w_.n, rank_, by_columns_ ? Extent::kN : Extent::kNone),
            passes("lora_add", 5, w_.n, by_columns_, 2)};
  }

  /// `accumulated`: gradients are added to those of earlier microbatches by ops of their own.
  std::vector<Op> backward(bool accumulated) const {
    std::vector<Op> ops = {
        passes("lora_scale", 2, w_.n, by_columns_, 1),
        product("lora_b.dgrad", w_.m, rank_, w_.n, by_columns_ ? Extent::kK : Extent::kNone),
        gradient("lora_b.wgrad", rank_, w_.n, by_columns_ ? Extent::kN : Extent::kNone)};
    if (accumulated) ops.push_back(accumulation("lora_b.accumulate", rank_ * w_.n, by_columns_));
    ops.push_back(
        product("lora_a.dgrad", w_.m, w_.k, rank_, by_rows_ ? Extent::kN : Extent::kNone));
    ops.push_back(gradient("lora_a.wgrad", w_.k, rank_, by_rows_ ? Extent::kM : Extent::kNone));
    if (accumulated) ops.push_back(accumulation("lora_a.accumulate", w_.k * rank_, by_rows_));
    ops.push_back(passes("lora_sum_gradients", 3, w_.k, by_rows_, 1));
    return ops;
  }

  void add_parameters(Layer& layer) const {
    layer.weights.push_back(
        {.count = w_.batch * w_.k * rank_, .tensor = by_rows_, .expert = w_.expert});
    layer.weights.push_back(
        {.count = w_.batch * rank_ * w_.n, .tensor = by_columns_, .expert = w_.expert});
    layer.saved.push_back({.name = "adapter", .bytes = stored(rank_)});
  }

  bool by_rows() const { return by_rows_; }

 private:
  std::string_view named(std::string_view part) const {
    return names_[names_.intern(fmt::format("{}.{}", w_.name, part))];
  }
  /// Of one vector of `width` per token.
  Bytes stored(double width) const {
    return Bytes::b(w_.batch * w_.m * width * bytes_of(w_.dtype));
  }

  Op product(std::string_view part, double m, double n, double k, Extent tensor) const {
    Op op = w_;
    op.name = named(part);
    op.m = m;
    op.n = n;
    op.k = k;
    op.tensor = tensor;
    return op;
  }
  Op gradient(std::string_view part, double in, double out, Extent tensor) const {
    Op op = product(part, in, out, w_.m, tensor);
    op.samples = Extent::kK;
    op.weight_gradient = true;
    return op;
  }
  Op passes(std::string_view part, double count, double width, bool tensor, double kernels) const {
    return {.name = named(part),
            .kind = OpKind::kElementwise,
            .dtype = w_.dtype,
            .bytes = stored(width) * count,
            .kernels = kernels,
            .samples = Extent::kBytes,
            .tensor = tensor ? Extent::kBytes : Extent::kNone};
  }
  Op accumulation(std::string_view part, double parameters, bool tensor) const {
    return {.name = named(part),
            .kind = OpKind::kElementwise,
            .dtype = w_.dtype,
            .bytes = Bytes::b(accumulation_bytes(w_.dtype) * w_.batch * parameters),
            .tensor = tensor ? Extent::kBytes : Extent::kNone,
            .expert = w_.expert,
            .weight_gradient = true};
  }

  NamePool& names_;
  Op w_;
  double rank_;
  bool by_columns_;
  bool by_rows_;
};

/// The adapters of a layer, in the order of forward; an entry per product, absent for the others.
std::vector<std::optional<Adapter>> adapters_of(NamePool& names, const Layer& layer, double rank,
                                                Adapted targets) {
  const auto scores = std::find_if(layer.forward.rbegin(), layer.forward.rend(),
                                   [](const Op& op) { return op.core; });
  std::vector<std::optional<Adapter>> adapters;
  bool attention = scores != layer.forward.rend();  // up to the first product after the scores
  const bool block = attention;
  for (const Op& op : layer.forward) {
    if (!is_linear(op)) continue;
    const bool wanted = targets == Adapted::kAll || attention == (targets == Adapted::kAttention);
    adapters.emplace_back();
    if (block && wanted) adapters.back().emplace(names, op, rank);
    if (attention && &op > &*scores) attention = false;
  }
  return adapters;
}

/// Writes the matrix of a product as operands have it: the constants of its blocks, then the matrix.
Op dequantize(NamePool& names, const Op& product) {
  const double parameters = product.batch * product.n * product.k;
  const double operand = product.dtype == Dtype::kFp8 ? 2 : bytes_of(product.dtype);
  return {.name = names[names.intern(fmt::format("{}.dequantize", product.name))],
          .kind = OpKind::kElementwise,
          .dtype = product.dtype,
          .bytes = Bytes::b(parameters * (kNf4Bytes + operand)),
          .kernels = 2,
          .tensor = product.tensor == Extent::kNone ? Extent::kNone : Extent::kBytes,
          .expert = product.expert};
}

/// Stores the matrices of the products in 4 bits, each as weights of its own. A matrix of another layer
/// is not among the weights of this one.
void quantize(Layer& layer) {
  for (const Op& op : layer.forward) {
    if (!is_linear(op)) continue;
    const double count = op.batch * op.n * op.k;
    const bool divided = op.tensor != Extent::kNone;
    const auto held = std::ranges::find_if(layer.weights, [&](const Weights& w) {
      return !w.nf4 && w.expert == op.expert && w.tensor == divided && w.count >= count;
    });
    if (held == layer.weights.end()) continue;
    Weights matrix = *held;
    matrix.count = count;
    matrix.nf4 = true;
    held->count -= count;
    layer.weights.push_back(matrix);
  }
}

/// Forward with the adapters after their products. `names`: null unless matrices are in 4 bits.
void extend_forward(Layer& layer, const std::vector<std::optional<Adapter>>& adapters,
                    NamePool* names) {
  std::vector<Op> forward;
  auto adapter = adapters.begin();
  for (const Op& op : layer.forward) {
    if (names && is_linear(op)) forward.push_back(dequantize(*names, op));
    forward.push_back(op);
    if (!is_linear(op) || !*adapter++) continue;
    const std::vector<Op> added = (*(adapter - 1))->forward();
    forward.insert(forward.end(), added.begin(), added.end());
  }
  layer.forward = std::move(forward);
}

/// Backward without the gradients of weights, and with those of the adapters. Products of one input
/// leave the gradients of that input one after another, which tensor parallelism sums at once:
/// adapters go in front of all of them. Those of a product that is divided by rows follow it, since
/// it gathers the gradient that they take.
void rewrite_backward(Layer& layer, const std::vector<std::optional<Adapter>>& adapters,
                      NamePool* names) {
  std::vector<Op> backward;
  std::size_t first = 0;  // of the products that leave gradients of one input
  std::optional<Op> last;
  auto adapter = adapters.rbegin();
  for (std::size_t i = 0; i < layer.backward.size(); ++i) {
    const Op& op = layer.backward[i];
    if (!op.weight_gradient) {
      if (is_linear(op)) {
        if (!last || op.m != last->m || op.n != last->n || op.batch != last->batch)
          first = backward.size();
        last = op;
        if (names)
          backward.insert(backward.begin() + static_cast<std::ptrdiff_t>(first),
                          dequantize(*names, op));
      } else if (op.kind != OpKind::kElementwise) {
        last.reset();
      }
      backward.push_back(op);
    } else if (is_linear(op) && adapter != adapters.rend() && *adapter++) {
      const Adapter& added = **(adapter - 1);
      const bool accumulated = i + 1 < layer.backward.size() &&
                               layer.backward[i + 1].weight_gradient &&
                               layer.backward[i + 1].kind == OpKind::kElementwise;
      const std::vector<Op> ops = added.backward(accumulated);
      backward.insert(
          added.by_rows() ? backward.end() : backward.begin() + static_cast<std::ptrdiff_t>(first),
          ops.begin(), ops.end());
    }
  }
  layer.backward = std::move(backward);
}

/// Drops the inputs of frozen products from what is saved.
void drop_inputs(Layer& layer, const std::vector<std::optional<Adapter>>& adapters) {
  std::size_t product = 0;
  for (const Op& op : layer.forward) {
    if (!is_linear(op)) continue;
    if (!adapters[product++])
      for (SavedActivation& saved : layer.saved)
        if (saved.taken_by == op.name) saved.bytes = saved.bytes * (1 - saved.for_weights);
  }
}

bool is_recorded(const Workload& workload) {
  const auto measured = [](const Op& op) { return op.measured.has_value(); };
  return std::ranges::any_of(workload.layers, [&](const Layer& layer) {
    return std::ranges::any_of(layer.forward, measured);
  });
}

}  // namespace

Result<Workload> with_adapters(Workload workload, std::uint32_t rank, Adapted targets,
                               Frozen frozen) {
  if (is_recorded(workload))
    return fail("the work of a recording cannot be taken apart",
                "0, and a recording of the adapted model");
  bool adapted = false;
  for (Layer& layer : workload.layers) {
    const auto adapters = adapters_of(workload.names, layer, rank, targets);
    const bool in_4_bits = frozen == Frozen::kNf4 &&
                           std::ranges::any_of(layer.forward, [](const Op& op) { return op.core; });
    if (in_4_bits) quantize(layer);
    NamePool* const names = in_4_bits ? &workload.names : nullptr;
    drop_inputs(layer, adapters);
    extend_forward(layer, adapters, names);
    rewrite_backward(layer, adapters, names);
    for (Weights& w : layer.weights) w.frozen = true;
    for (const std::optional<Adapter>& adapter : adapters)
      if (adapter) {
        adapter->add_parameters(layer);
        if (layer.host_work > 0) layer.host_work += kAdapterHostWork;
        adapted = true;
      }
  }
  if (!adapted)
    return fail(fmt::format("a model without {} has no matrix to adapt",
                            targets == Adapted::kFeedForward ? "feed-forward parts" : "attention"),
                "0");
  return workload;
}

}  // namespace rehearse::workload
