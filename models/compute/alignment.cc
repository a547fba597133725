#include "models/compute/alignment.h"

#include <algorithm>
#include <cmath>

namespace rehearse::compute {
namespace {

using workload::Extent;

constexpr double kLoad = 16, kLoadAmd = 4;
// A100: 0.55 to 0.62 of the rate with 4 or 8 bytes. With 2, 0.29 where columns are odd, and 0.18 of
// that of batches, whose operands are odd too.
constexpr double kNarrow = 0.58, kNarrowest = 0.3, kNarrowestBatch = 0.18;
/// The share of the peak of H100 that Ampere's instructions reach: 132 · 1980 MHz on H100 and
/// 108 · 1410 MHz on A100, at 989 and 312 TFLOP/s.
constexpr double kOlder = 0.54;

/// Bytes to which rows of this length are aligned, up to 16.
double alignment(double length, double element) {
  if (length != std::floor(length)) return kLoad;
  double bytes = element;
  while (bytes < kLoad && std::fmod(length * element, 2 * bytes) == 0) bytes *= 2;
  return bytes;
}

}  // namespace

double aligned_share(const DeviceFacts& facts, Arithmetic arithmetic, const workload::Op& op) {
  const bool units = (arithmetic == Arithmetic::kHalf && facts.half_in_matrix_units) ||
                     arithmetic == Arithmetic::kTf32;
  if (!units) return 1;
  const Extent samples = op.samples == Extent::kNone ? Extent::kM : op.samples;
  const double element = workload::bytes_of(op.dtype);
  double bytes = kLoad;
  if (samples != Extent::kM) bytes = std::min(bytes, alignment(op.m, element));
  if (samples != Extent::kN) bytes = std::min(bytes, alignment(op.n, element));
  if (samples != Extent::kK) bytes = std::min(bytes, alignment(op.k, element));
  if (bytes >= (facts.vendor == "amd" ? kLoadAmd : kLoad)) return 1;
  const bool newer =
      facts.architecture.starts_with("hopper") || facts.architecture.starts_with("blackwell");
  const double narrowest = op.batch > 1 ? kNarrowestBatch : kNarrowest;
  return (bytes < 4 ? narrowest : kNarrow) * (newer ? kOlder : 1);
}

}  // namespace rehearse::compute
