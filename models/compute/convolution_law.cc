#include "models/compute/convolution_law.h"

#include <algorithm>

namespace rehearse::compute {
namespace {

using workload::Op;

enum Direction { kForward, kInputs, kWeights };

/// Rate ÷ that of a product of the same extents, by u: below 0.9 (1 × 1 with a stride), to 1.5
/// (1 × 1), and above.
struct Shares {
  double strided, pointwise, window;

  double of(double u) const { return u < 0.9 ? strided : u < 1.5 ? pointwise : window; }
};

// Fitted to DeepBench: FP32 on six devices, half precision on T4 alone. A window may exceed 1,
// because FFT algorithms save multiplications for large ones.
constexpr Shares kFp32Shares[] = {{0.84, 0.9, 1.2}, {0.42, 0.92, 0.6}, {0.59, 0.72, 1.2}};
constexpr Shares kHalfShares[] = {{0.79, 0.66, 0.86}, {0.31, 0.67, 0.5}, {0.33, 0.36, 0.36}};
constexpr double kFused = 0.83, kInParts = 0.34;
constexpr double kProducts = 36, kResults = 16;  // of a tile of 4 × 4 results

/// An implicit product, with u.
struct Implicit {
  double m, n, k;
  double u = 1;
};

/// Extents as given. Gradients of inputs may come with unfolded inputs as their columns; `folded`
/// has the channels instead.
struct Forms {
  Implicit given, folded;
};

Direction direction_of(const Op& op) {
  if (op.weight_gradient) return kWeights;
  const bool inputs = op.name.find("dgrad") != std::string_view::npos ||
                      op.name.find("input") != std::string_view::npos;
  return inputs ? kInputs : kForward;
}

/// `elements`: of input, weights and result.
Forms forms_of(const Op& op, Direction direction, double elements) {
  Implicit given{.m = op.m, .n = op.n, .k = op.k};
  const double mk = op.m * op.k, mn = op.m * op.n, nk = op.n * op.k;
  if (direction == kWeights) {
    if (const double input = elements - mk - mn; input > 0) given.u = nk / input;
    return {given, given};
  }
  if (const double input = elements - mn - nk; input > 0) {
    given.u = mk / input;
    return {given, given};
  }
  if (const double input = elements - mk - nk; input > 0) given.u = mn / input;
  return {given, {given.m, given.n / given.u, given.k * given.u, given.u}};
}

}  // namespace

double convolution_time(const WaveShape& shape, const WaveDevice& device, Arithmetic arithmetic,
                        const Op& op) {
  const double groups = std::max(op.batch, 1.0), bytes = workload::bytes_of(op).b();
  const double element = workload::bytes_of(op.dtype);
  const Direction direction = direction_of(op);
  const auto [given, folded] = forms_of(op, direction, bytes / element / groups);
  const auto time = [&](double share, const MatrixProduct& product) {
    WaveDevice at = device;
    at.rate *= share;
    return wave_time(shape, at, product);
  };
  const bool fp32 = arithmetic == Arithmetic::kFp32;
  const double share = (fp32 ? kFp32Shares : kHalfShares)[direction].of(given.u);
  double best = time(share, {groups, given.m, given.n, given.k, bytes});
  if (direction == kInputs)
    best = std::min(best, time(share, {groups, folded.m, folded.n, folded.k, bytes}));
  if (!fp32 || groups > 1 || given.u < 6.8 || given.u > 9.6) return best;
  const auto in_parts = [&](double m, double n, double k, double positions, double channels) {
    // Written once and read once.
    const double transformed = 2 * kProducts / kResults * element * positions * channels;
    return time(kInParts, {kProducts, m, n, k, bytes + transformed});
  };
  const auto& [m, n, k, u] = folded;
  if (direction == kWeights)
    return std::min(best, in_parts(m, n / 9, k / kResults, k, m + n / 9));
  best = std::min(best, time(kFused, {1, m, n, k * 4 / 9, bytes}));
  return std::min(best, in_parts(m / kResults, n, k / 9, m, n + k / 9));
}

}  // namespace rehearse::compute
