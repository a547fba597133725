// The wave law against products worked out by hand.
#include <catch2/catch.hpp>

#include "models/compute/wave_law.h"

namespace rehearse::compute {
namespace {

// 100 multiprocessors of 1 TFLOP/s in all: 10 GFLOP/s each. One tile of 128 × 64 at half the rate.
constexpr WaveShape kSingleTile = {.tiles = {{{128, 64, 0.5, 2e-6}}},
                                   .count = 1,
                                   .cap = 1,
                                   .memory = 0.5,
                                   .launch = 3e-6,
                                   .smooth = 5};
constexpr WaveDevice kSlowMemory = {.multiprocessors = 100, .rate = 1e12, .memory_rate = 1e12};

TEST_CASE("a product takes whole waves of its tiles") {
  // 1280 × 640: 10 · 10 tiles, one wave. A tile is 2 · 128 · 64 · 32 = 524288 FLOPs at 5 GFLOP/s:
  // 104.86 us, and 2 us fixed, 3 us launch.
  const MatrixProduct one{.batch = 1, .m = 1280, .n = 640, .k = 32, .bytes = 0};
  CHECK(wave_time(kSingleTile, kSlowMemory, one) == Approx((104.8576 + 2 + 3) * 1e-6));
  // One row more: 11 · 10 tiles, two waves.
  MatrixProduct two = one;
  two.m = 1281;
  CHECK(wave_time(kSingleTile, kSlowMemory, two) == Approx((2 * 106.8576 + 3) * 1e-6));
  // A batch of ten: 1000 tiles, ten waves.
  MatrixProduct ten = one;
  ten.batch = 10;
  CHECK(wave_time(kSingleTile, kSlowMemory, ten) == Approx((10 * 106.8576 + 3) * 1e-6));
}

TEST_CASE("a tile may be transposed") {
  // 640 × 1280 is the same product transposed.
  const MatrixProduct upright{.batch = 1, .m = 1280, .n = 640, .k = 32, .bytes = 0};
  const MatrixProduct aside{.batch = 1, .m = 640, .n = 1280, .k = 32, .bytes = 0};
  CHECK(wave_time(kSingleTile, kSlowMemory, upright) == wave_time(kSingleTile, kSlowMemory, aside));
}

TEST_CASE("few tiles with a long sum are cut along it") {
  // One tile, k = 8192. Uncut: 2 · 8192 · 8192 = 134.2 MFLOP at 5 GFLOP/s: 26.84 ms. In 8 parts,
  // one wave still: 3355.44 us + 2 us + 8 parts of 8 · 128 · 64 bytes at 0.5 TB/s, 1.049 us; + 3.
  const MatrixProduct deep{.batch = 1, .m = 128, .n = 64, .k = 8192, .bytes = 0};
  CHECK(wave_time(kSingleTile, kSlowMemory, deep) ==
        Approx((3355.4432 + 2 + 8 * 0.131072 + 3) * 1e-6));
  // Kernels of matrix units are cut in up to 32, and another kernel adds the parts: 1 us.
  WaveShape units = kSingleTile;
  units.clock = 1e9;
  units.cut = 1e-6;
  CHECK(wave_time(units, kSlowMemory, deep) ==
        Approx((838.8608 + 2 + 1 + 32 * 0.131072 + 3) * 1e-6));
}

TEST_CASE("an element of the sum takes a least time, and times follow the clock") {
  // The one wave of 32 elements at 10 us each, where its FLOPs take 3.28 us each.
  WaveShape steps = kSingleTile;
  steps.step = 10e-6;
  const MatrixProduct one{.batch = 1, .m = 1280, .n = 640, .k = 32, .bytes = 0};
  CHECK(wave_time(steps, kSlowMemory, one) == Approx((320 + 2 + 3) * 1e-6));
  // At twice the clock to which the times refer, half of them; the rate is the device's.
  steps.clock = 1e9;
  WaveDevice fast = kSlowMemory;
  fast.clock = 2e9;
  CHECK(wave_time(steps, fast, one) == Approx((160 + 1 + 1.5) * 1e-6));
  steps.step = 0;
  CHECK(wave_time(steps, fast, one) == Approx((104.8576 + 1 + 1.5) * 1e-6));
}

TEST_CASE("memory joins by a smooth maximum") {
  // The one wave of 106.8576 us with an equally long transfer: times 2^(1/5).
  const MatrixProduct both{.batch = 1, .m = 1280, .n = 640, .k = 32, .bytes = 0.5e12 * 106.8576e-6};
  CHECK(wave_time(kSingleTile, kSlowMemory, both) ==
        Approx((106.8576 * 1.148698354997035 + 3) * 1e-6));
}

TEST_CASE("the cap holds where tiles would be faster") {
  WaveShape shape = kSingleTile;
  shape.cap = 0.25;
  const MatrixProduct one{.batch = 1, .m = 1280, .n = 640, .k = 32, .bytes = 0};
  CHECK(wave_time(shape, kSlowMemory, one) == Approx(2.0 * 1280 * 640 * 32 / 0.25e12 + 3e-6));
}

TEST_CASE("long rows slow a product that has many of them") {
  WaveDevice pascal = kSlowMemory;
  pascal.reread = {.from = 4096, .extra = 2};
  // 12800 × 12800 has 6400 rows by m n / (m + n): x = 8192 / 4096 · 6400 / 7160, x⁴ = 10.2138.
  const MatrixProduct many{.batch = 1, .m = 12800, .n = 12800, .k = 8192, .bytes = 0};
  CHECK((wave_time(kSingleTile, pascal, many) - 3e-6) /
            (wave_time(kSingleTile, kSlowMemory, many) - 3e-6) ==
        Approx(1 + 2 * 10.2138 / 11.2138).epsilon(0.001));
  // 16 rows and more hardly notice.
  const MatrixProduct few{.batch = 1, .m = 12800, .n = 16, .k = 8192, .bytes = 0};
  CHECK(wave_time(kSingleTile, pascal, few) < 1.001 * wave_time(kSingleTile, kSlowMemory, few));
}

}  // namespace
}  // namespace rehearse::compute
