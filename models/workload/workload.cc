#include "models/workload/workload.h"

#include <cmath>
#include <utility>

#include <fmt/core.h>

namespace rehearse::workload {
namespace {

bool has(OpKind kind, Extent extent) {
  switch (kind) {
    case OpKind::kGemm:
    case OpKind::kConvolution:
    case OpKind::kAttention: return extent != Extent::kBytes;
    case OpKind::kGather:
      return extent == Extent::kNone || extent == Extent::kM || extent == Extent::kN ||
             extent == Extent::kK;
    case OpKind::kElementwise:
    case OpKind::kNorm:
    case OpKind::kSoftmax:
    case OpKind::kCollective:
    case OpKind::kCopy: return extent == Extent::kNone || extent == Extent::kBytes;
  }
  return false;
}

bool is_matrix(OpKind kind) {
  return kind == OpKind::kGemm || kind == OpKind::kConvolution || kind == OpKind::kAttention;
}

Status verify(const Layer& layer, const Op& op) {
  const auto wrong = [&](std::string_view what, std::string expected) -> Status {
    return fail(fmt::format("op '{}' of layer '{}' {}", op.name, layer.name, what),
                std::move(expected));
  };
  for (const double extent : {op.batch, op.m, op.n, op.k, op.bytes.b(), op.width, op.kernels})
    if (!(std::isfinite(extent) && extent >= 0))
      return wrong(fmt::format("has an extent of {}", extent), "finite and not negative");
  if (is_matrix(op.kind) && !(op.batch > 0 && op.m > 0 && op.n > 0 && op.k > 0))
    return wrong(fmt::format("is {} × {} × {} × {}", op.batch, op.m, op.n, op.k),
                 "extents above zero");
  if (!has(op.kind, op.samples) || !has(op.kind, op.tensor))
    return wrong("is divided by an extent that it does not have", std::string(to_string(op.kind)));
  return {};
}

void scale_samples(std::vector<Op>& ops, double by) {
  for (Op& op : ops) divide(op, op.samples, 1 / by);
}

}  // namespace

double Layer::parameters() const {
  double sum = 0;
  for (const Weights& w : weights) sum += w.count;
  return sum;
}

double Layer::trained_parameters() const {
  double sum = 0;
  for (const Weights& w : weights) sum += w.frozen ? 0 : w.count;
  return sum;
}

Bytes Layer::saved_bytes() const {
  Bytes sum = Bytes::b(0);
  for (const SavedActivation& k : saved)
    if (!k.transient) sum += k.bytes;
  return sum;
}

std::uint32_t Workload::layer_count() const {
  std::uint32_t sum = 0;
  for (const Layer& layer : layers) sum += layer.count;
  return sum;
}

double Workload::parameters() const {
  double sum = 0;
  for (const Layer& layer : layers) sum += layer.count * layer.parameters();
  return sum;
}

double Workload::trained_parameters() const {
  double sum = 0;
  for (const Layer& layer : layers) sum += layer.count * layer.trained_parameters();
  return sum;
}

Flops Workload::model_flops() const {
  Flops sum = Flops::flop(0);
  for (const Layer& layer : layers) {
    for (const Op& op : layer.forward) sum += layer.count * flops_of(op);
    for (const Op& op : layer.backward) sum += layer.count * flops_of(op);
  }
  return sum;
}

Status verify(const Workload& workload) {
  if (workload.layers.empty()) return fail("a workload without layers");
  for (std::uint32_t i = 0; i < workload.layers.size(); ++i) {
    const Layer& layer = workload.layers[i];
    for (const std::uint32_t input : layer.inputs)
      if (input >= i)
        return fail(fmt::format("layer '{}' takes the output of a later one", layer.name));
  }
  return verify(std::span<const Layer>(workload.layers));
}

Status verify(std::span<const Layer> layers) {
  for (const Layer& layer : layers) {
    if (layer.count == 0) return fail(fmt::format("layer '{}' has a count of zero", layer.name));
    for (const Weights& w : layer.weights)
      if (!(std::isfinite(w.count) && w.count >= 0))
        return fail(fmt::format("layer '{}' has {} parameters", layer.name, w.count));
    for (const SavedActivation& k : layer.saved)
      if (!(std::isfinite(k.bytes.b()) && k.bytes.b() >= 0))
        return fail(
            fmt::format("layer '{}' saves {} bytes of {}", layer.name, k.bytes.b(), k.name));
    for (const std::vector<Op>* ops :
         {&layer.forward, &layer.backward, &layer.recompute, &layer.step})
      for (const Op& op : *ops) TRY(verify(layer, op));
  }
  return {};
}

bool has_convolutions(const Workload& workload) {
  for (const Layer& layer : workload.layers)
    for (const Op& op : layer.forward)
      if (op.kind == OpKind::kConvolution) return true;
  return false;
}

Workload with_samples(Workload workload, double samples) {
  const double by = samples / workload.samples;
  for (Layer& layer : workload.layers) {
    scale_samples(layer.forward, by);
    scale_samples(layer.backward, by);
    scale_samples(layer.recompute, by);
    for (SavedActivation& saved : layer.saved) {
      saved.bytes = saved.bytes * by;
      saved.unsure = saved.unsure * by;
    }
    layer.recomputed = layer.recomputed * by;
    layer.output = layer.output * by;
    layer.whole = layer.whole * by;
  }
  workload.samples = samples;
  return workload;
}

Result<Op> with_tokens(Op op, double from, double to) {
  const double by = from / to;
  if (by == 1 || op.samples == Extent::kNone) return op;
  const auto unknown = [&](std::string_view what) {
    return fail(
        fmt::format("'{}' {}, so that its work with {:g} tokens is unknown", op.name, what, to),
        "layers of a transformer");
  };
  if (op.kind == OpKind::kConvolution) return unknown("is a convolution");
  if (op.kind == OpKind::kAttention) {
    divide(op, Extent::kM, by);
    op.n /= by;
    return op;
  }
  if (op.kind == OpKind::kGemm && op.samples == Extent::kBatch) {
    const std::pair<Extent, double> extents[] = {
        {Extent::kM, op.m}, {Extent::kN, op.n}, {Extent::kK, op.k}};
    int of_tokens = 0;
    for (const auto& [extent, size] : extents)
      if (size == from) {
        divide(op, extent, by);
        ++of_tokens;
      }
    if (of_tokens != 2) return unknown(fmt::format("has {} extents of {:g}", of_tokens, from));
    return op;
  }
  const bool over_tokens = op.kind == OpKind::kSoftmax && op.width == from;
  divide(op, op.samples, by);
  if (op.samples == Extent::kBytes && (op.core || over_tokens)) divide(op, Extent::kBytes, by);
  if (over_tokens) op.width /= by;
  return op;
}

Result<Workload> with_tokens(Workload workload, double tokens) {
  const double from = workload.tokens_per_sample;
  if (!(from > 0))
    return fail("its samples have no tokens", "a model with attention or looked-up embeddings");
  if (tokens == from) return workload;
  const double by = tokens / from;
  for (Layer& layer : workload.layers) {
    for (std::vector<Op>* ops : {&layer.forward, &layer.backward, &layer.recompute})
      for (Op& op : *ops) {
        Result<Op> changed = with_tokens(op, from, tokens);
        if (!changed)
          return fail(fmt::format("layer '{}': {}", layer.name,
                                  changed.error().diagnostics.front().problem),
                      changed.error().diagnostics.front().expected);
        op = *std::move(changed);
      }
    for (SavedActivation& saved : layer.saved) {
      const double factor = saved.core ? by * by : by;
      saved.bytes = saved.bytes * factor;
      saved.unsure = saved.unsure * factor;
    }
    layer.recomputed = layer.recomputed * by;
    layer.output = layer.output * by;
    layer.whole = layer.whole * by;
  }
  workload.tokens_per_sample = tokens;
  return workload;
}

}  // namespace rehearse::workload
