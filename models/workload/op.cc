#include "models/workload/op.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "sim/base/check.h"

namespace rehearse::workload {

Flops flops_of(const Op& op) {
  switch (op.kind) {
    case OpKind::kGemm:
    case OpKind::kConvolution: return Flops::flop(2 * op.batch * op.m * op.n * op.k);
    case OpKind::kAttention:  // scores and their product with the values
      return Flops::flop(4 * op.batch * op.m * op.n * op.k);
    case OpKind::kElementwise:
    case OpKind::kNorm:
    case OpKind::kSoftmax:
    case OpKind::kGather:
    case OpKind::kCollective:
    case OpKind::kCopy: break;
  }
  return Flops::flop(0);
}

namespace {

// The two extents that samples do not scale. For a convolution whose scaled extent is not stated,
// `bytes` holds everything.
double weights_of(const Op& op) {
  switch (op.samples) {
    case Extent::kM: return op.batch * op.n * op.k;
    case Extent::kN: return op.batch * op.m * op.k;
    case Extent::kK: return op.batch * op.m * op.n;
    case Extent::kNone:
    case Extent::kBatch:
    case Extent::kBytes: break;
  }
  return 0;
}

}  // namespace

std::size_t OpHash::operator()(const Op& op) const {
  std::uint64_t hash = std::hash<std::string_view>{}(op.name) ^ static_cast<std::uint64_t>(op.kind);
  for (const double extent : {op.batch, op.m, op.n, op.k, op.bytes.b(), op.kernels,
                              op.measured ? op.measured->value.s() : 0}) {
    hash = (hash ^ std::bit_cast<std::uint64_t>(extent)) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

Bytes bytes_of(const Op& op) {
  const double element = bytes_of(op.dtype);
  switch (op.kind) {
    case OpKind::kGemm:
      return Bytes::b(element * op.batch * (op.m * op.k + op.k * op.n + op.m * op.n));
    case OpKind::kAttention:  // queries, keys, values, result; a copy into a cache
      return Bytes::b(element * op.batch * op.k * (2 * op.m + 2 * op.n)) + op.bytes;
    case OpKind::kGather: return Bytes::b(2 * element * op.m * op.n);
    case OpKind::kConvolution: return op.bytes + Bytes::b(element * weights_of(op));
    case OpKind::kElementwise:
    case OpKind::kNorm:
    case OpKind::kSoftmax:
    case OpKind::kCollective:
    case OpKind::kCopy: break;
  }
  return op.bytes;
}

namespace {

constexpr double kRounding = 1e-9;  // of an extent, relative

double quotient(double extent, double by) {
  const double exact = extent / by, whole = std::round(exact);
  return std::abs(exact - whole) <= kRounding * whole ? whole : exact;
}

bool equal(double a, double b) { return std::abs(a - b) <= kRounding * std::max(a, b); }

}  // namespace

void divide(Op& op, Extent extent, double by) {
  REHEARSE_CHECK(by > 0);
  if (extent == Extent::kNone) return;
  if (op.measured && !op.measured_for) op.measured_for = extents_of(op);
  switch (extent) {
    case Extent::kNone: return;
    case Extent::kBatch: op.batch = quotient(op.batch, by); break;
    case Extent::kM: op.m = quotient(op.m, by); break;
    case Extent::kN: op.n = quotient(op.n, by); break;
    case Extent::kK: op.k = quotient(op.k, by); break;
    case Extent::kBytes: break;
  }
  // Explicit bytes are those of the whole op and scale with any extent.
  op.bytes = op.bytes / by;
}

void set_format(Op& op, Dtype dtype) {
  if (op.measured && !op.measured_for) op.measured_for = extents_of(op);
  op.bytes = op.bytes * (bytes_of(dtype) / bytes_of(op.dtype));
  op.dtype = dtype;
}

Extents extents_of(const Op& op) { return {op.batch, op.m, op.n, op.k, op.bytes, op.dtype}; }

bool differs_from_measured(const Op& op) {
  if (!op.measured_for) return false;
  const Extents& was = *op.measured_for;
  return !(equal(op.batch, was.batch) && equal(op.m, was.m) && equal(op.n, was.n) &&
           equal(op.k, was.k) && equal(op.bytes.b(), was.bytes.b()) && op.dtype == was.dtype);
}

Op as_measured(Op op) {
  if (!op.measured_for) return op;
  op.batch = op.measured_for->batch;
  op.m = op.measured_for->m;
  op.n = op.measured_for->n;
  op.k = op.measured_for->k;
  op.bytes = op.measured_for->bytes;
  op.dtype = op.measured_for->dtype;
  op.measured_for.reset();
  return op;
}

}  // namespace rehearse::workload
