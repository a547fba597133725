// The convolution law against convolutions worked out by hand.
#include <cmath>

#include <catch2/catch.hpp>

#include "models/compute/convolution_law.h"

namespace rehearse::compute {
namespace {

using workload::Dtype;
using workload::Op;

// As in the tests of the wave law: tiles of 128 × 64 at 5 GFLOP/s, and memory without a limit.
constexpr WaveShape kTiled = {.tiles = {{{128, 64, 0.5, 2e-6}}},
                              .count = 1,
                              .cap = 1,
                              .memory = 0.5,
                              .launch = 3e-6,
                              .smooth = 5};
constexpr WaveDevice kGpu = {.multiprocessors = 100, .rate = 1e12, .memory_rate = 1e16};

constexpr double kPositions = 12800, kIn = 32, kOut = 64;

/// 12,800 positions, 32 channels in, 64 out; `input` positions are read.
Op convolution(double window, double input = kPositions, Dtype dtype = Dtype::kFp32) {
  const double elements = input * kIn + kPositions * kOut + kIn * kOut * window;
  return {.name = "convolution",
          .kind = workload::OpKind::kConvolution,
          .dtype = dtype,
          .m = kPositions,
          .n = kOut,
          .k = kIn * window,
          .bytes = Bytes::b(elements * workload::bytes_of(dtype))};
}

double microseconds(const Op& op, Arithmetic arithmetic = Arithmetic::kFp32,
                    const WaveDevice& device = kGpu) {
  return convolution_time(kTiled, device, arithmetic, op, 1) * 1e6;
}

TEST_CASE("a convolution of single positions is a product at nine tenths of the rate") {
  // One wave of 100 tiles, 2 · 128 · 64 · 32 FLOPs each at 4.5 GFLOP/s.
  CHECK(microseconds(convolution(1)) == Approx(524288 / 4500. + 2 + 3));
  // With a stride of two, four positions are read for one: 0.84.
  CHECK(microseconds(convolution(1, 4 * kPositions)) == Approx(524288 / 4200. + 2 + 3));
}

TEST_CASE("windows of 3 x 3 multiply four ninths in FP32, and all in half precision") {
  // Winograd, fused: one wave of sums over 32 · 9 · 4/9 = 128 at 0.83.
  CHECK(microseconds(convolution(9)) == Approx(2 * 128 * 64 * 128 / 4150. + 2 + 3));
  // 288 summed at 0.9.
  const Op half = convolution(9, kPositions, Dtype::kFp16);
  CHECK(microseconds(half, Arithmetic::kHalf) == Approx(2 * 128 * 64 * 288 / 4500. + 2 + 3));
  // With a stride of two the window is 9 / 4 of what is read: the implicit product at 1.2.
  CHECK(microseconds(convolution(9, 4 * kPositions)) == Approx(2 * 128 * 64 * 288 / 6000. + 2 + 3));
}

TEST_CASE("matrix units convolve windows after a conversion of layout") {
  // 12,800 · (32 + 64) elements of 2 bytes, read and written at half of 100 GB/s: 98.3 us.
  WaveDevice slow = kGpu;
  slow.memory_rate = 1e11;
  const Op half = convolution(9, kPositions, Dtype::kFp16);
  CHECK(microseconds(half, Arithmetic::kHalf, slow) ==
        Approx(2 * 128 * 64 * 288 / 4500. + 2 + 3 + 98.304));
  // None for single positions: 32 summed at 0.5, and 49.2 us to move 2.46 MB during that.
  const Op pointwise = convolution(1, kPositions, Dtype::kFp16);
  const double products = 2 * 128 * 64 * 32 / 2500. + 2, bytes = 49.2339;
  CHECK(microseconds(pointwise, Arithmetic::kHalf, slow) ==
        Approx(3 + std::pow(std::pow(products, 5) + std::pow(bytes, 5), 0.2)));
}

TEST_CASE("channels last need no conversion, and are one product for all images") {
  WaveDevice slow = kGpu;
  slow.memory_rate = 1e11;
  Op window = convolution(9, kPositions, Dtype::kFp16);
  window.channels_last = true;
  const auto with = [](double products, double bytes) {
    return Approx(3 + std::pow(std::pow(products, 5) + std::pow(bytes, 5), 0.2));
  };
  // 288 summed at 0.9; 2.49 MB move at 50 GB/s during that.
  CHECK(microseconds(window, Arithmetic::kHalf, slow) ==
        with(2 * 128 * 64 * 288 / 4500. + 2, window.bytes.b() / 5e4));
  // One position of the window: 32 summed at 0.9 instead of 0.5.
  Op pointwise = convolution(1, kPositions, Dtype::kFp16);
  pointwise.channels_last = true;
  CHECK(microseconds(pointwise, Arithmetic::kHalf, slow) ==
        with(2 * 128 * 64 * 32 / 4500. + 2, pointwise.bytes.b() / 5e4));
  // Ordinary cores read any layout.
  CHECK(microseconds(window) == Approx(microseconds(convolution(9, kPositions, Dtype::kFp16))));
}

TEST_CASE("matrix units at half their rate do not wait for the other limits of a convolution") {
  Op weights = convolution(9, kPositions, Dtype::kFp16);
  weights.channels_last = true;
  weights.weight_gradient = true;
  const double whole = convolution_time(kTiled, kGpu, Arithmetic::kHalf, weights, 1);
  const double halved = convolution_time(kTiled, kGpu, Arithmetic::kHalf, weights, 1, 2);
  // A share of 0.5 becomes 1: less than half of the time is launch and fixed.
  CHECK((halved < 0.6 * whole && halved > 0.5 * whole));
  // FP32 has ordinary cores.
  const Op fp32 = convolution(9);
  CHECK(convolution_time(kTiled, kGpu, Arithmetic::kFp32, fp32, 1, 2) ==
        convolution_time(kTiled, kGpu, Arithmetic::kFp32, fp32, 1));
}

TEST_CASE("images with channels last are padded to tiles") {
  Op image = convolution(9, kPositions, Dtype::kFp16);
  image.k = 3 * 9;
  image.bytes = Bytes::b(2 * (kPositions * (3 + kOut) + 27 * kOut));
  image.channels_last = true;
  CHECK_FALSE(needs_cores(image));
  // 8 · 9 summed at 0.9 of 1 TFLOP/s by 100 tiles.
  CHECK(microseconds(image, Arithmetic::kHalf) == Approx(2 * 128 * 64 * 72 / 4500. + 2 + 3));
  // One channel of a group is no image.
  image.batch = 3;
  CHECK(needs_cores(image));
}

TEST_CASE("channels too few for tiles are convolved on ordinary cores") {
  Op image = convolution(9);
  image.k = 3 * 9;
  CHECK(needs_cores(image));
  // 2 · 12,800 · 64 · 27 FLOPs at 0.7 of 1 TFLOP/s.
  CHECK(microseconds(image) == Approx(2 * 12800 * 64 * 27 / 0.7e6 + 3));
  Op depthwise = image;
  depthwise.name = "convolution dgrad";
  depthwise.batch = 64;
  depthwise.n = 1;
  depthwise.k = 9;
  CHECK(needs_cores(depthwise));
  CHECK(microseconds(depthwise) == Approx(2 * 12800 * 64 * 9 / 0.2e6 + 3));
  CHECK_FALSE(needs_cores(convolution(9)));
}

TEST_CASE("a gradient of inputs takes the same time for each description of its product") {
  Op folded = convolution(9);  // 64 channels of results from 32 of inputs, as a convolution back
  folded.name = "convolution dgrad";
  Op unfolded = folded;
  unfolded.n = kOut * 9;
  unfolded.k = kIn;
  CHECK(microseconds(folded) == Approx(microseconds(unfolded)));
}

TEST_CASE("groups are not cut into transformed tiles") {
  Op depthwise = convolution(9);
  depthwise.batch = 4;
  depthwise.bytes = 4. * depthwise.bytes;
  // Four waves of the implicit product at 1.2.
  CHECK(microseconds(depthwise) == Approx(4 * (2 * 128 * 64 * 288 / 6000. + 2) + 3));
}

}  // namespace
}  // namespace rehearse::compute
