#include "models/compute/measured_ops.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/statistics.h"

namespace rehearse::compute {
namespace {

using workload::Op;
using workload::OpKind;

bool is_matrix(OpKind kind) { return kind == OpKind::kGemm || kind == OpKind::kConvolution; }

/// The properties that must be equal. Extents are whole numbers; the format of memory-bound ops is
/// reflected in their bytes.
std::string key_of(const Op& op) {
  switch (op.kind) {
    case OpKind::kGemm:
    case OpKind::kConvolution:
    case OpKind::kAttention:
      return fmt::format("{} {} {:.0f} {:.0f} {:.0f} {:.0f} {}", static_cast<int>(op.kind),
                         static_cast<int>(op.dtype), op.batch, op.m, op.n, op.k, op.causal);
    case OpKind::kElementwise:
      return fmt::format("{} {:.0f}", static_cast<int>(op.kind), op.bytes.b());
    case OpKind::kNorm:
    case OpKind::kSoftmax:
      return fmt::format("{} {:.0f} {:.0f}", static_cast<int>(op.kind), op.bytes.b(), op.width);
    case OpKind::kGather:
    case OpKind::kCollective:
    case OpKind::kCopy:
      break;
  }
  return "";
}

/// One product may be several convolutions: with large filters, or with many channels. The bytes
/// that they read distinguish them.
bool reads_alike(const Op& measured, const Op& op) {
  if (op.kind != OpKind::kConvolution) return true;
  constexpr double kAlike = 1.3;
  const double is = bytes_of(measured).b();
  for (const double bytes : {op.bytes.b(), bytes_of(op).b()})
    if (bytes > 0 && std::max(is / bytes, bytes / is) < kAlike) return true;
  return false;
}

/// Attention is measured forward; the extents of backward describe twice the work.
bool is_backward(const Op& op) {
  return op.effort != 1 || op.name.find("ackward") != std::string_view::npos;
}

/// Whether operands are still in the cache when a job reaches the operation.
bool finds_operands(const Op& op, const std::optional<Bytes>& l2) {
  return !is_matrix(op.kind) && l2 && bytes_of(op) <= *l2;
}

}  // namespace

void MeasuredOps::add(const Op& op, const OpSample& sample) {
  const std::string key = key_of(op);
  if (key.empty()) return;
  by_key_[key].push_back({op, sample});
  ++count_;
}

std::optional<Estimate<Seconds>> MeasuredOps::find(const Op& op) const {
  // An op of several kernels moves its bytes several times.
  if (op.host || (op.kernels > 1 && !is_matrix(op.kind) && op.kind != OpKind::kAttention))
    return std::nullopt;
  if (op.kind == OpKind::kAttention && is_backward(op)) return std::nullopt;
  const auto found = by_key_.find(key_of(op));
  if (found == by_key_.end()) return std::nullopt;
  std::vector<const Entry*> alike;
  for (const Entry& entry : found->second)
    if (reads_alike(entry.op, op)) alike.push_back(&entry);
  const bool hot = finds_operands(op, l2_);
  std::vector<double> medians;
  for (const Entry* entry : alike)
    if (entry->sample.cold != hot) medians.push_back(entry->sample.median.s());
  if (medians.empty())
    for (const Entry* entry : alike) medians.push_back(entry->sample.median.s());
  if (medians.empty()) return std::nullopt;
  Estimate<Seconds> estimate{Seconds::s(median(medians)), Seconds::s(0), Seconds::s(0),
                             Provenance::kRecorded};
  estimate.low = estimate.high = estimate.value;
  for (const Entry* entry : alike) {
    estimate.low = std::min(estimate.low, entry->sample.p10);
    estimate.high = std::max(estimate.high, entry->sample.p90);
  }
  return estimate;
}

MeasuredOps::Learnt MeasuredOps::learn(const workload::Workload& recorded) {
  std::array<std::vector<double>, std::size(workload::kOpKindNames)> ratios;
  Learnt learnt;
  const auto compare = [&](const std::vector<Op>& ops) {
    for (const Op& op : ops) {
      if (!op.measured || differs_from_measured(op)) continue;
      const std::optional<Estimate<Seconds>> alone = find(op);
      if (!alone) continue;
      ratios[static_cast<std::size_t>(op.kind)].push_back(op.measured->value / alone->value);
      ++learnt.both;
    }
  };
  for (const workload::Layer& layer : recorded.layers) {
    compare(layer.forward);
    compare(layer.backward);
  }
  constexpr double kUnlike = 3;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    if (ratios[i].empty()) continue;
    const double ratio = median(ratios[i]);
    const auto kind = static_cast<OpKind>(i);
    if (ratio <= kUnlike && ratio >= 1 / kUnlike) {
      in_job_[i] = ratio;
      continue;
    }
    learnt.unlike.push_back(kind);
    std::erase_if(by_key_,
                  [&](const auto& entries) { return entries.second.front().op.kind == kind; });
  }
  return learnt;
}

}  // namespace rehearse::compute
