#include "models/compute/convolution_law.h"

#include <algorithm>
#include <cmath>

namespace rehearse::compute {
namespace {

using workload::Op;

/// Windows divided by strides above this reach over several positions.
constexpr double kWindow = 1.5;

enum Direction { kForward, kInputs, kWeights };

/// Rate ÷ that of a product of the same extents, by u: below 0.9 (1 × 1 with a stride), to 1.5
/// (1 × 1), and above.
struct Shares {
  double strided, pointwise, window;

  double of(double u) const { return u < 0.9 ? strided : u < kWindow ? pointwise : window; }
};

// Fitted to DeepBench on six devices. A window may exceed 1, because FFT algorithms save
// multiplications for large ones.
constexpr Shares kFp32Shares[] = {{0.84, 0.9, 1.2}, {0.42, 0.92, 0.6}, {0.59, 0.72, 1.2}};
// Matrix units: one share for all but three cases. Fitted to DeepBench in half precision on T4 and
// to a recorded VGG-13 and ResNet-50 in TF32 on H100, which count alike.
constexpr double kUnits = 0.9;
constexpr Shares kUnitShares[] = {
    {kUnits, kUnits, kUnits}, {0.26, kUnits, kUnits}, {0.27, 0.27, 0.49}};
/// Ordinary cores, by direction, where channels are too few for tiles: DeepBench's convolutions of
/// 1 and 3 channels on six devices.
constexpr double kDirect[] = {0.7, 0.2, 0.28};
/// Channels that a tile's loads need.
constexpr double kChannels = 8;
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

bool has_few_channels(const Op& op) {
  const double in = direction_of(op) == kForward ? op.k : op.n;
  return in == std::floor(in) && std::fmod(in, kChannels) != 0;
}

double convolution_time(const WaveShape& shape, const WaveDevice& device, Arithmetic arithmetic,
                        const Op& op) {
  const double groups = std::max(op.batch, 1.0), bytes = workload::bytes_of(op).b();
  const double element = workload::bytes_of(op.dtype);
  const Direction direction = direction_of(op);
  const double memory = shape.memory * device.memory_rate;
  if (has_few_channels(op))
    return shape.launch * pace(shape, device.clock) +
           std::max(workload::flops_of(op).flop() / (kDirect[direction] * device.rate),
                    bytes / memory);
  const auto [given, folded] = forms_of(op, direction, bytes / element / groups);
  const auto time = [&](double share, const MatrixProduct& product) {
    WaveDevice at = device;
    at.rate *= share;
    return wave_time(shape, at, product);
  };
  const bool fp32 = arithmetic == Arithmetic::kFp32;
  const double share = (fp32 ? kFp32Shares : kUnitShares)[direction].of(given.u);
  double best = time(share, {groups, given.m, given.n, given.k, bytes});
  if (direction == kInputs)
    best = std::min(best, time(share, {groups, folded.m, folded.n, folded.k, bytes}));
  if (!fp32 && given.u >= kWindow) {
    const double weights = groups * given.n * (direction == kWeights ? given.m : given.k);
    best += (bytes - weights * element) / memory;  // half of them, both ways
  }
  if (!fp32 || groups > 1 || given.u < 6.8 || given.u > 9.6) return best;
  const auto in_parts = [&](double m, double n, double k, double positions, double channels) {
    // Written once and read once.
    const double transformed = 2 * kProducts / kResults * element * positions * channels;
    return time(kInParts, {kProducts, m, n, k, bytes + transformed});
  };
  const auto& [m, n, k, u] = folded;
  if (direction == kWeights) return std::min(best, in_parts(m, n / 9, k / kResults, k, m + n / 9));
  best = std::min(best, time(kFused, {1, m, n, k * 4 / 9, bytes}));
  return std::min(best, in_parts(m / kResults, n, k / 9, m, n + k / 9));
}

}  // namespace rehearse::compute
