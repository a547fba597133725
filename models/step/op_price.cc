#include "models/step/op_price.h"

#include <cmath>

namespace rehearse::step {

using workload::Op;

namespace {

/// Half of the interval that a prediction alone would have comes on top, as in OpCost::rescale.
Estimate<Seconds> carried_over(const Op& op, const CarriedOver& devices) {
  const Estimate<Seconds> time = devices.from.time(op);
  const Estimate<Seconds> was = devices.from.predicted(op), is = devices.to.predicted(op);
  const double ratio = is.value / was.value;
  // A variant that differs in its memory alone, or an op of which the laws know nothing.
  if (ratio == 1 || !(was.value > Seconds::s(0))) return time;
  return {time.value * ratio, time.low * ratio * std::sqrt(is.low / is.value),
          time.high * ratio * std::sqrt(is.high / is.value), Provenance::kExtrapolated};
}

}  // namespace

Estimate<Seconds> OpPrice::estimate(const Op& op) const {
  if (op.host || !cost_) {
    // Updates on the host. Half of it, twice of it: hosts differ that much.
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
    time = cost_->time(half);
    if (op.kind == workload::OpKind::kGemm) scale *= conditions_.fp8;
  } else {
    time = op.measured && measured_ ? carried_over(op, *measured_) : cost_->time(op);
  }
  time.value = time.value * scale;
  if (!op.measured)
    return {time.value, time.value * conditions_.fastest, time.value * conditions_.slowest,
            time.provenance};
  return {time.value, time.low * scale, time.high * scale, time.provenance};
}

Seconds OpPrice::idle(const Op& op) const {
  return op.host || !cost_ ? Seconds::s(0) : conditions_.idle_per_kernel * op.kernels;
}

}  // namespace rehearse::step
