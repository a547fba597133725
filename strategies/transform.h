// Transforms: the entries of the list in lay_out.cc. Each is a pure function that rewrites the
// workload of one rank, or the layout of the whole job.
#pragma once

#include "models/workload/layout.h"
#include "sim/base/result.h"
#include "strategies/plan.h"

namespace rehearse::strategies {

/// The part of the plan that a rank of a stage needs to rewrite its workload.
struct RankSetting {
  const Training* training;
  const Plan* plan;
  workload::Degrees degrees;
  Recompute recompute;
  double microbatch;  ///< samples per rank and pipeline slot
  /// As in workload::Stage.
  std::uint32_t first_rank = 0, together = 1;
};

/// Activations and weights: 8-bit operands are stored with 16 bits.
constexpr double stored_bytes(workload::Dtype dtype) {
  return dtype == workload::Dtype::kFp8 ? 2 : workload::bytes_of(dtype);
}

constexpr bool is_matrix(const workload::Op& op) {
  return op.kind == workload::OpKind::kGemm || op.kind == workload::OpKind::kConvolution ||
         op.kind == workload::OpKind::kAttention;
}

/// Elements of the first operand and of the result of a matrix product or a gather.
constexpr double input_elements(const workload::Op& op) { return op.batch * op.m * op.k; }
constexpr double output_elements(const workload::Op& op) { return op.batch * op.m * op.n; }

inline workload::Op collective(std::string_view name, CollectiveKind kind, workload::Axis axis,
                               double bytes, workload::Issue issue = workload::Issue::kInline) {
  return {.name = name,
          .kind = workload::OpKind::kCollective,
          .bytes = Bytes::b(bytes),
          .collective = kind,
          .axis = axis,
          .issue = issue};
}

/// An op that reads and writes `bytes`.
inline workload::Op traffic(std::string_view name, double bytes) {
  return {.name = name, .kind = workload::OpKind::kElementwise, .bytes = Bytes::b(bytes)};
}

/// Scales recorded per-step work by the parameters left after sharding; `before` is their
/// number in the recording.
inline void follow_parameters(workload::Layer& layer, double before) {
  const double now = layer.parameters();
  if (now == before || now == 0) return;
  for (workload::Op& op : layer.step) workload::divide(op, workload::Extent::kBytes, before / now);
}

/// Embedding and head: if layers repeat, a separate first and last layer. They are
/// additional to the layers that pipeline stages share evenly, and are not recomputed.
inline bool is_extra(const workload::Workload& w, std::size_t layer) {
  if (layer != 0 && layer + 1 != w.layers.size()) return false;
  if (w.layers.size() < 2 || w.layers[layer].count != 1) return false;
  for (const workload::Layer& l : w.layers)
    if (l.count > 1) return true;
  return false;
}

}  // namespace rehearse::strategies
