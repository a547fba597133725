#include "models/compute/convolution_law.h"

#include <algorithm>
#include <cmath>

namespace rehearse::compute {
namespace {

using workload::Op;

/// Windows divided by strides above this reach over several positions.
constexpr double kWindow = 1.5;

enum Direction { kForward, kInputs, kWeights };

/// Below this, a window of 1 × 1 has a stride.
constexpr double kStrided = 0.9;

/// Rate ÷ that of a product of the same extents, by u.
struct Shares {
  double strided, pointwise, window;

  double of(double u) const { return u < kStrided ? strided : u < kWindow ? pointwise : window; }
};

// Fitted to DeepBench on six devices. A window may exceed 1, because FFT algorithms save
// multiplications for large ones.
constexpr Shares kFp32Shares[] = {{0.84, 0.9, 1.2}, {0.42, 0.92, 0.6}, {0.59, 0.72, 1.2}};
// Matrix units, by direction: channels last, or converted to it; and positions of a 1 × 1 window with
// channels first, which are a small product for each image. Fitted to DeepBench in half precision
// on T4, and to kernels of recorded trainings in TF32 on A100 and H100.
constexpr double kChannelsLast[] = {0.9, 0.8, 0.5};
constexpr double kByImage[] = {0.5, 0.45, 0.3};
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

/// Channels in, of a group, that are no multiple of what a tile loads.
bool has_few_channels(const Op& op) {
  const double in = direction_of(op) == kForward ? op.k : op.n;
  return in == std::floor(in) && std::fmod(in, kChannels) != 0;
}

/// Channels after padding ÷ before. An image has three, or one.
double padding_of(const Op& op) {
  const double in = direction_of(op) == kForward ? op.k : op.n;
  return kChannels / (std::fmod(in, 3) == 0 ? 3 : 1);
}

}  // namespace

bool needs_cores(const Op& op) {
  return has_few_channels(op) && !(op.channels_last && op.batch <= 1);
}

double convolution_time(const WaveShape& shape, const WaveDevice& device, Arithmetic arithmetic,
                        const Op& op, double converted, double spare) {
  const double groups = std::max(op.batch, 1.0), bytes = workload::bytes_of(op).b();
  const double element = workload::bytes_of(op.dtype);
  const Direction direction = direction_of(op);
  const double memory = shape.memory * device.memory_rate;
  if (arithmetic == Arithmetic::kFp32 && has_few_channels(op))
    return shape.launch * pace(shape, device.clock) +
           std::max(workload::flops_of(op).flop() / (kDirect[direction] * device.rate),
                    bytes / memory);
  auto [given, folded] = forms_of(op, direction, bytes / element / groups);
  if (has_few_channels(op)) (direction == kForward ? given.k : given.n) *= padding_of(op);
  const auto time = [&](double share, const MatrixProduct& product) {
    WaveDevice at = device;
    at.rate *= share;
    return wave_time(shape, at, product);
  };
  const bool fp32 = arithmetic == Arithmetic::kFp32;
  const bool by_image = !op.channels_last && given.u >= kStrided && given.u < kWindow;
  const double share =
      fp32 ? kFp32Shares[direction].of(given.u)
           : std::min(1.0, spare * (by_image ? kByImage : kChannelsLast)[direction]);
  double best = time(share, {groups, given.m, given.n, given.k, bytes});
  if (direction == kInputs)
    best = std::min(best, time(share, {groups, folded.m, folded.n, folded.k, bytes}));
  if (!fp32 && !op.channels_last && !by_image) {
    const double weights = groups * given.n * (direction == kWeights ? given.m : given.k);
    best += 2 * converted * (bytes - weights * element) / memory;  // read and written
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
