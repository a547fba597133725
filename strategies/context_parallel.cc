#include <fmt/core.h>

#include "strategies/transforms.h"

namespace rehearse::strategies {
namespace {

using workload::Axis, workload::Extent, workload::Issue, workload::Layer, workload::Op,
    workload::OpKind;

/// The elements that attention reads and writes, for the samples on all ranks of the group.
struct Flow {
  double queries = 0;
  double keys_and_values = 0;
  double result = 0;
};

Flow flow_of(const std::vector<Op>& forward, double kv_share) {
  Flow flow;
  bool first = true;
  for (const Op& op : forward) {
    if (!op.core || !is_matrix(op)) continue;
    if (op.kind == OpKind::kAttention) {
      flow.queries += op.batch * op.m * op.k;
      flow.keys_and_values += 2 * op.batch * op.n * op.k * kv_share;
      flow.result += op.batch * op.m * op.k;
    } else if (first) {  // scores
      flow.queries += op.batch * op.m * op.k;
      flow.keys_and_values += op.batch * op.n * op.k * kv_share;
    } else {  // their product with the values
      flow.keys_and_values += op.batch * op.n * op.k * kv_share;
      flow.result += op.batch * op.m * op.n;
    }
    if (op.kind != OpKind::kAttention) first = !first;
  }
  return flow;
}

Op around(double bytes) {
  Op op = collective("keys and values around", CollectiveKind::kAllGather, Axis::kContext, bytes,
                     Issue::kOverlapNext);
  op.samples = op.tensor = Extent::kBytes;
  op.core = true;
  return op;
}

Op exchange(std::string_view name, double bytes) {
  Op op = collective(name, CollectiveKind::kAllToAll, Axis::kContext, bytes);
  op.samples = op.tensor = Extent::kBytes;
  op.core = true;
  return op;
}

/// The rank with the last part of the sequence has 2 - 1/c times the mean of causal attention, and
/// the others wait for it.
double busiest(bool balanced, double c) { return balanced ? 1 : 2 - 1 / c; }

std::vector<Op> by_ring(const std::vector<Op>& ops, double c, double kv_share, bool balanced) {
  std::vector<Op> result;
  for (Op op : ops) {
    if (!op.core) {
      workload::divide(op, op.samples, c);
    } else if (op.kind == OpKind::kAttention) {
      // Backward counts twice the batch, because gradients of keys and values are sent too.
      result.push_back(around(stored_bytes(op.dtype) * 2 * op.batch * op.n * op.k * kv_share));
      workload::divide(op, Extent::kM, c);
      if (op.causal) op.effort *= busiest(balanced, c);
    } else {
      workload::divide(op, op.samples, c);
    }
    result.push_back(op);
  }
  return result;
}

/// `before` and `after` are the bytes of one rank, counting everything that it sends.
std::vector<Op> by_exchange(const std::vector<Op>& ops, double c, double before, double after) {
  std::vector<Op> result;
  std::size_t first = ops.size(), last = 0;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops[i].core && is_matrix(ops[i])) {
      first = std::min(first, i);
      last = i;
    }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (i == first) result.push_back(exchange("tokens to heads", before));
    Op op = ops[i];
    workload::divide(op, op.samples, c);
    result.push_back(op);
    if (first < ops.size() && i == last) result.push_back(exchange("heads to tokens", after));
  }
  return result;
}

}  // namespace

Result<workload::Workload> context_parallel(workload::Workload workload,
                                            const RankSetting& setting) {
  const double c = setting.degrees.context;
  const bool ring = setting.plan->context_exchange == ContextExchange::kRing;
  double heads = 0, kv_heads = 0;
  for (const workload::Workload::Divisor& divisor : workload.divided_by_tensor) {
    if (divisor.name == "heads") heads = divisor.count;
    if (divisor.name == "kv_heads") kv_heads = divisor.count;
  }
  const double kv_share = heads > 0 && kv_heads > 0 ? kv_heads / heads : 1;
  for (Layer& layer : workload.layers) {
    if (ring) {
      for (const Op& op : layer.forward)
        if (op.core && op.kind == OpKind::kGemm)
          return fail(fmt::format("context {} by ring around unfused attention of layer '{}'",
                                  setting.degrees.context, layer.name),
                      "fused attention", "nearest: context_exchange all_to_all");
      const bool balanced = setting.plan->context_balanced;
      layer.forward = by_ring(layer.forward, c, kv_share, balanced);
      layer.backward = by_ring(layer.backward, c, kv_share, balanced);
      layer.recompute = by_ring(layer.recompute, c, kv_share, balanced);
    } else {
      const Flow flow = flow_of(layer.forward, kv_share);
      const double element = stored_bytes(setting.training->dtype) / c;
      const double in = element * (flow.queries + flow.keys_and_values);
      const double out = element * flow.result;
      layer.forward = by_exchange(layer.forward, c, in, out);
      layer.backward = by_exchange(layer.backward, c, out, in);
      layer.recompute = by_exchange(layer.recompute, c, in, out);
    }
    for (workload::SavedActivation& saved : layer.saved) saved.bytes = saved.bytes / c;
    layer.output = layer.output / c;
  }
  return workload;
}

}  // namespace rehearse::strategies
