#include "models/workload/op.h"

#include "sim/base/check.h"

namespace rehearse::workload {

Flops flops_of(const Op& op) {
  switch (op.kind) {
    case OpKind::kGemm:
    case OpKind::kConvolution:
      return Flops::flop(2 * op.batch * op.m * op.n * op.k);
    case OpKind::kAttention:  // scores and their product with the values
      return Flops::flop(4 * op.batch * op.m * op.n * op.k);
    case OpKind::kElementwise:
    case OpKind::kNorm:
    case OpKind::kSoftmax:
    case OpKind::kGather:
    case OpKind::kCollective:
    case OpKind::kCopy:
      break;
  }
  return Flops::flop(0);
}

namespace {

// The two extents that samples do not stretch. Of a convolution that does not say which one they
// do, `bytes` holds everything.
double weights_of(const Op& op) {
  switch (op.samples) {
    case Extent::kM:
      return op.batch * op.n * op.k;
    case Extent::kN:
      return op.batch * op.m * op.k;
    case Extent::kK:
      return op.batch * op.m * op.n;
    case Extent::kNone:
    case Extent::kBatch:
    case Extent::kBytes:
      break;
  }
  return 0;
}

}  // namespace

Bytes bytes_of(const Op& op) {
  const double element = bytes_of(op.dtype);
  switch (op.kind) {
    case OpKind::kGemm:
      return Bytes::b(element * op.batch * (op.m * op.k + op.k * op.n + op.m * op.n));
    case OpKind::kAttention:  // queries, keys, values, result
      return Bytes::b(element * op.batch * op.k * (2 * op.m + 2 * op.n));
    case OpKind::kGather:
      return Bytes::b(2 * element * op.m * op.n);
    case OpKind::kConvolution:
      return op.bytes + Bytes::b(element * weights_of(op));
    case OpKind::kElementwise:
    case OpKind::kNorm:
    case OpKind::kSoftmax:
    case OpKind::kCollective:
    case OpKind::kCopy:
      break;
  }
  return op.bytes;
}

void divide(Op& op, Extent extent, double by) {
  REHEARSE_CHECK(by > 0);
  switch (extent) {
    case Extent::kNone:
      return;
    case Extent::kBatch:
      op.batch /= by;
      break;
    case Extent::kM:
      op.m /= by;
      break;
    case Extent::kN:
      op.n /= by;
      break;
    case Extent::kK:
      op.k /= by;
      break;
    case Extent::kBytes:
      break;
  }
  // Explicit bytes are those of the whole op and follow any extent.
  op.bytes = op.bytes / by;
}

}  // namespace rehearse::workload
