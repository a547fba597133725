#include "models/workload/layer_builder.h"

#include <utility>

#include <fmt/core.h>

namespace rehearse::workload {

std::string_view LayerBuilder::named(std::string_view name, std::string_view part) {
  return names_[names_.intern(part.empty() ? std::string(name) : fmt::format("{}.{}", name, part))];
}

Op LayerBuilder::op(std::string_view name, OpKind kind) const {
  // Only products with weight matrices use 8 bits.
  return Op{.name = name, .kind = kind, .dtype = dtype_ == Dtype::kFp8 ? Dtype::kBf16 : dtype_};
}

Op LayerBuilder::accumulation(std::string_view name, double parameters, bool tensor, bool expert) {
  Op add = op(named(name, "accumulate"), OpKind::kElementwise);
  add.bytes = Bytes::b(accumulation_bytes(dtype_) * parameters);
  add.tensor = tensor ? Extent::kBytes : Extent::kNone;
  add.expert = expert;
  add.weight_gradient = true;
  return add;
}

// Casts operands to 8 bits: they are read at their stored width and written once.
void LayerBuilder::cast(const Linear& piece, std::vector<Op>& gradients) {
  const double tokens = piece.tokens * (piece.experts > 0 ? piece.experts : 1);
  Op to_fp8 = op(named(piece.name, "cast"), OpKind::kElementwise);
  to_fp8.samples = Extent::kBytes;
  to_fp8.bytes = Bytes::b(tokens * piece.in * (element() + 1));
  to_fp8.tensor = piece.split == Split::kRows ? Extent::kBytes : Extent::kNone;
  if (piece.casts_input) layer_.forward.push_back(to_fp8);
  to_fp8.name = named(piece.name, "cast_gradient");
  to_fp8.bytes = Bytes::b(tokens * piece.out * (element() + 1));
  to_fp8.tensor = piece.split == Split::kColumns ? Extent::kBytes : Extent::kNone;
  gradients.push_back(to_fp8);
}

void LayerBuilder::linear(const Linear& piece) {
  const bool expert = piece.experts > 0;
  const double batch = expert ? piece.experts : 1;
  std::vector<Op> gradients;
  if (dtype_ == Dtype::kFp8) cast(piece, gradients);

  const auto matrix = [&](std::string_view part, double m, double n, double k) {
    Op gemm = op(named(piece.name, part), OpKind::kGemm);
    gemm.dtype = dtype_;
    gemm.batch = batch;
    gemm.m = m;
    gemm.n = n;
    gemm.k = k;
    gemm.expert = expert;
    return gemm;
  };
  const auto by = [&](Extent columns, Extent rows) {
    return piece.split == Split::kNone      ? Extent::kNone
           : piece.split == Split::kColumns ? columns
                                            : rows;
  };
  Op product = matrix("", piece.tokens, piece.out, piece.in);
  product.samples = Extent::kM;
  product.tensor = by(Extent::kN, Extent::kK);
  layer_.forward.push_back(product);

  if (!piece.first) {
    Op dgrad = matrix("dgrad", piece.tokens, piece.in, piece.out);
    dgrad.samples = Extent::kM;
    dgrad.tensor = by(Extent::kK, Extent::kN);
    gradients.push_back(dgrad);
  }
  Op wgrad = matrix("wgrad", piece.in, piece.out, piece.tokens);
  wgrad.samples = Extent::kK;
  wgrad.tensor = by(Extent::kN, Extent::kM);
  wgrad.weight_gradient = true;
  gradients.push_back(wgrad);
  const double parameters = batch * piece.in * piece.out;
  const bool divided = piece.split != Split::kNone;
  if (piece.accumulated && !fused_accumulation_)
    gradients.push_back(accumulation(piece.name, parameters, divided, expert));
  backward_.push_back(std::move(gradients));

  if (piece.has_matrix) weights(parameters, divided, expert);
  // Partial sums get their bias once, after the reduction.
  if (piece.bias) weights(batch * piece.out, piece.split == Split::kColumns, expert);
}

void LayerBuilder::convolution(const Convolution& piece) {
  const auto one = [&](std::string_view part, double m, double n, double k, Extent samples) {
    Op conv = op(named("convolution", part), OpKind::kConvolution);
    conv.batch = piece.groups;
    conv.m = m;
    conv.n = n;
    conv.k = k;
    conv.bytes = piece.moved;
    conv.samples = samples;
    conv.channels_last = piece.channels_last;
    return conv;
  };
  const double in = piece.in / piece.groups;
  const double out = piece.out / piece.groups;
  layer_.forward.push_back(one("", piece.positions, out, in * piece.kernel, Extent::kM));
  std::vector<Op> gradients;
  // As many products as forward, whatever the stride.
  if (!piece.first)
    gradients.push_back(one("dgrad", piece.positions, in, out * piece.kernel, Extent::kM));
  gradients.push_back(one("wgrad", out, in * piece.kernel, piece.positions, Extent::kK));
  gradients.back().weight_gradient = true;
  backward_.push_back(std::move(gradients));
  weights(piece.out * in * piece.kernel + (piece.bias ? piece.out : 0), false);
}

void LayerBuilder::traffic(const Traffic& piece) {
  Op moving = op(named(piece.name, ""), piece.kind);
  moving.bytes = piece.forward;
  moving.width = piece.width;
  moving.kernels = piece.kernels;
  moving.samples = Extent::kBytes;
  moving.tensor = piece.tensor ? Extent::kBytes : Extent::kNone;
  moving.core = piece.core;
  if (piece.forward.b() > 0) layer_.forward.push_back(moving);
  if (piece.backward.b() <= 0) return;
  moving.name = named(piece.name, "backward");
  moving.bytes = piece.backward;
  moving.kernels = piece.kernels_backward;
  backward_.push_back({moving});
}

void LayerBuilder::product(std::string_view name, double batch, double m, double n, double k) {
  const auto matrix = [&](std::string_view part, double rows, double columns, double summed) {
    Op gemm = op(named(name, part), OpKind::kGemm);
    gemm.batch = batch;
    gemm.m = rows;
    gemm.n = columns;
    gemm.k = summed;
    gemm.samples = Extent::kBatch;
    gemm.tensor = Extent::kBatch;
    gemm.core = true;
    return gemm;
  };
  layer_.forward.push_back(matrix("", m, n, k));
  backward_.push_back({matrix("left", m, k, n), matrix("right", k, n, m)});
}

void LayerBuilder::attention(double batch, double queries, double keys, double head_size,
                             bool causal) {
  Op fused = op(named("attention", ""), OpKind::kAttention);
  fused.batch = batch;
  fused.m = queries;
  fused.n = keys;
  fused.k = head_size;
  fused.causal = causal;
  fused.samples = Extent::kBatch;
  fused.tensor = Extent::kBatch;
  fused.core = true;
  layer_.forward.push_back(fused);
  fused.name = named("attention", "backward");
  fused.batch *= 2;
  fused.effort = 1.45;
  fused.kernels = 3;  // the dot product of outputs and gradients before, the conversion after
  backward_.push_back({fused});
}

void LayerBuilder::lookup(std::string_view name, double tokens, double width, double rows) {
  Op gather = op(named(name, ""), OpKind::kGather);
  gather.m = tokens;
  gather.n = width;
  gather.k = rows;
  gather.samples = Extent::kM;
  gather.tensor = Extent::kK;
  layer_.forward.push_back(gather);
  // Each rank adds the gradients of the rows it holds.
  gather.name = named(name, "wgrad");
  gather.tensor = Extent::kM;
  gather.weight_gradient = true;
  backward_.push_back({gather, accumulation(name, rows * width, true, false)});
  weights(rows * width, true);
}

void LayerBuilder::weights(double count, bool tensor, bool expert) {
  for (Weights& w : layer_.weights)
    if (w.tensor == tensor && w.expert == expert) {
      w.count += count;
      return;
    }
  layer_.weights.push_back({.count = count, .tensor = tensor, .expert = expert});
}

Layer LayerBuilder::finish(std::string name, std::uint32_t count, Bytes output) {
  layer_.name = std::move(name);
  layer_.count = count;
  layer_.output = output;
  for (std::size_t i = backward_.size(); i-- > 0;)
    layer_.backward.insert(layer_.backward.end(), backward_[i].begin(), backward_[i].end());
  backward_.clear();
  return std::exchange(layer_, Layer{});
}

}  // namespace rehearse::workload
