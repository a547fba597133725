#include "strategies/step/op_price.h"

#include <algorithm>

namespace rehearse::step {

using workload::Op;

Estimate<Seconds> OpPrice::estimate(const Op& op) const {
  if (op.host && op.measured) return *op.measured;
  if (op.host || !cost_) {
    // The memory rate of updates on the host. Hosts differ by a factor of two in both directions.
    constexpr ByteRate kHostMemory = ByteRate::gb_per_s(50);
    const Seconds time = bytes_of(op) / kHostMemory;
    Estimate<Seconds> update = {time, time * 0.5, time * 2, Provenance::kDatasheet};
    // The drives read what comes next, and write what is done, while the host updates.
    if (nvme_rate_)
      update = mapped(update, [&](Seconds s) { return std::max(s, op.nvme / *nvme_rate_); });
    return update;
  }
  // Training in FP8 pays for scaling and casting, and keeps attention in half precision: a share of
  // the half-precision time, not the time of the bare product.
  const bool fp8 = op.dtype == workload::Dtype::kFp8;
  double scale = conditions_.scale;
  Estimate<Seconds> time{Seconds::s(0), Seconds::s(0), Seconds::s(0), Provenance::kRecorded};
  if (fp8 && !op.measured) {
    Op half = op;
    half.dtype = workload::Dtype::kBf16;
    time = cost_->time(half);
    if (op.kind == workload::OpKind::kGemm) scale *= conditions_.fp8;
  } else {
    // A measurement on this device is better than a recording on another.
    const std::optional<Estimate<Seconds>> alone =
        op.measured && measured_ ? cost_->measured(op) : std::nullopt;
    time = alone ? *alone
           : op.measured && measured_
               ? measured_->to.carried(measured_->from.time(op), op, measured_->from)
               : cost_->time(op);
  }
  time = time * scale;
  if (op.measured) return time;
  Estimate<Seconds> job = {time.value, time.value * conditions_.fastest,
                           time.value * conditions_.slowest, time.provenance};
  // Conditions are fitted to matrix products; the laws are less certain about convolutions.
  if (op.kind == workload::OpKind::kConvolution) {
    job.low = std::min(job.low, time.low);
    job.high = std::max(job.high, time.high);
  }
  return job;
}

Seconds OpPrice::idle(const Op& op) const {
  return op.host || !cost_ ? Seconds::s(0) : conditions_.idle_per_kernel * op.kernels;
}

}  // namespace rehearse::step
