#include "models/step/work.h"

#include <algorithm>

namespace rehearse::step {
namespace {

using workload::Layer;
using workload::Op;

/// Sums over the ops of a phase.
struct Phase {
  Seconds time = Seconds::s(0), low = Seconds::s(0), high = Seconds::s(0);
  Seconds idle = Seconds::s(0);
  Seconds device = Seconds::s(0);  ///< of `time`, what kernels take
  double kernels = 0;
  Flops flops = Flops::flop(0);
  std::array<Seconds, 4> by_provenance = {Seconds::s(0), Seconds::s(0), Seconds::s(0),
                                          Seconds::s(0)};
};

Phase phase_of(const std::vector<Op>& ops, const OpPrice& price) {
  Phase phase;
  for (const Op& op : ops) {
    if (op.communicates()) continue;
    const Estimate<Seconds> time = price.estimate(op);
    phase.time += time.value;
    phase.low += time.low;
    phase.high += time.high;
    phase.idle += price.idle(op);
    if (!op.host) {
      phase.device += time.value;
      phase.kernels += op.kernels;
    }
    phase.flops += flops_of(op);
    phase.by_provenance[static_cast<std::size_t>(time.provenance)] += time.value;
  }
  return phase;
}

}  // namespace

Estimate<Seconds> OpPrice::estimate(const Op& op) const {
  if (op.host) {
    // Offloaded updates. Half of it, twice of it: hosts differ that much.
    constexpr ByteRate kHostMemory = ByteRate::gb_per_s(50);
    const Seconds time = bytes_of(op) / kHostMemory;
    return {time, time * 0.5, time * 2, Provenance::kDatasheet};
  }
  // Training in FP8 pays for scaling and casting, and keeps attention in half precision: a share of
  // the half-precision time, not the time of the bare product.
  const bool fp8 = op.dtype == workload::Dtype::kFp8;
  double scale = conditions_.scale;
  Estimate<Seconds> time{Seconds::s(0), Seconds::s(0), Seconds::s(0), Provenance::kRecorded};
  if (fp8 && !op.measured) {
    Op half = op;
    half.dtype = workload::Dtype::kBf16;
    time = cost_.time(half);
    if (op.kind == workload::OpKind::kGemm) scale *= conditions_.fp8;
  } else {
    time = cost_.time(op);
  }
  time.value = time.value * scale;
  if (!op.measured) {
    Estimate<Seconds> job = {time.value, time.value * conditions_.fastest,
                             time.value * conditions_.slowest, time.provenance};
    // Conditions are fitted to products; of convolutions the laws know less than that.
    if (op.kind == workload::OpKind::kConvolution) {
      job.low = std::min(job.low, time.low * scale);
      job.high = std::max(job.high, time.high * scale);
    }
    return job;
  }
  return {time.value, time.low * scale, time.high * scale, time.provenance};
}

Seconds OpPrice::idle(const Op& op) const {
  return op.host ? Seconds::s(0) : conditions_.idle_per_kernel * op.kernels;
}

Work work_of(const workload::Layout& layout, const OpPrice& price, const Conditions& conditions) {
  Work work;
  Seconds total = Seconds::s(0), low = Seconds::s(0), high = Seconds::s(0);
  std::array<Seconds, 4> by_provenance = {Seconds::s(0), Seconds::s(0), Seconds::s(0),
                                          Seconds::s(0)};
  const double ranks = layout.ranks();
  for (const workload::Stage& stage : layout.stages) {
    const double share = stage.degrees.ranks() / ranks;
    std::vector<double> passes(stage.chunks.size(), 0);
    for (const workload::Slot& slot : stage.order)
      if (slot.pass == workload::Pass::kForward) passes[slot.chunk] += 1;
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      for (const Layer& layer : stage.chunks[c].layers) {
        const auto add = [&](const std::vector<Op>& ops, double times, Seconds& part,
                             Flops& flops) {
          const Phase phase = phase_of(ops, price);
          times *= layer.count * share;
          part += phase.time * times;
          flops += phase.flops * times;
          total += phase.time * times;
          low += phase.low * times;
          high += phase.high * times;
          for (std::size_t p = 0; p < by_provenance.size(); ++p)
            by_provenance[p] += phase.by_provenance[p] * times;
          const Seconds host = conditions.host_per_kernel * phase.kernels;
          work.launch += std::max(phase.idle, host - phase.device) * times;
        };
        Flops none = Flops::flop(0);
        add(layer.forward, passes[c], work.compute, work.model);
        add(layer.backward, passes[c], work.compute, work.model);
        add(layer.recompute, passes[c], work.recompute, work.recomputed);
        add(layer.step, 1, work.optimizer, none);
      }
    }
  }
  if (total > Seconds::s(0)) {
    work.fastest = low / total;
    work.slowest = high / total;
    for (std::size_t p = 0; p < by_provenance.size(); ++p) {
      work.share_by_provenance[p] = by_provenance[p] / total;
      // What a hundredth of the time rests on does not mark the whole.
      if (work.share_by_provenance[p] > 0.01) work.provenance = static_cast<Provenance>(p);
    }
  }
  return work;
}

}  // namespace rehearse::step
