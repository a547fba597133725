// Kernels that memory bounds, against passes worked out by hand.
#include <catch2/catch.hpp>

#include "models/compute/memory_law.h"

namespace rehearse::compute {
namespace {

/// 10 multiprocessors of 2048 threads, 1 MB of L2.
DeviceFacts made_device() {
  DeviceFacts facts{.name = "made", .vendor = "nvidia", .architecture = "volta_gv100"};
  facts.multiprocessors = 10;
  facts.l2 = Bytes::mb(1);
  return facts;
}

constexpr MemoryConstants kPlain = {
    .norm_cache = 1, .softmax_cache = 1, .norm_sweep = 0, .softmax_sweep = 0};

RowKernel rows(double count, double width) {
  return {.bytes = 2 * count * width * 4, .width = width, .element = 4};
}

TEST_CASE("a norm reads its rows again where the cache does not hold them") {
  // 10 · 2048 / 128 = 160 rows at once. Of 512 elements: 0.33 MB, 0.033 above 0.3 of 0.9 to 1.2.
  CHECK(norm_passes(made_device(), kPlain, rows(1e6, 512)) ==
        Approx(1 + 0.5 * (160 * 512 * 4e-6 - 0.3) / 0.9));
  // Of 4096: 2.6 MB, all lost. Of 256: held.
  CHECK(norm_passes(made_device(), kPlain, rows(1e6, 4096)) == 1.5);
  CHECK(norm_passes(made_device(), kPlain, rows(1e6, 256)) == 1);
  // Twenty rows in all stay, however wide.
  CHECK(norm_passes(made_device(), kPlain, rows(20, 2048)) == 1);
}

TEST_CASE("softmax holds a row of 1024 in registers, and reads a longer one twice more or once") {
  CHECK(softmax_passes(made_device(), kPlain, rows(1e6, 1024)) == 1);
  // 8192 elements: blocks of 512 threads, 40 rows of 32 KiB: 1.31 of the cache; (1.31 - 0.6) / 1.
  CHECK(softmax_passes(made_device(), kPlain, rows(1e6, 8192)) ==
        Approx(1 + (40 * 8192 * 4e-6 - 0.6)));
  CHECK(softmax_passes(made_device(), kPlain, rows(1e6, 65536)) == 2);
}

TEST_CASE("a last sweep that is partly idle costs its share") {
  MemoryConstants c = kPlain;
  c.norm_sweep = 1;
  // 640 elements are 1.25 sweeps of 128 threads with four each: two, 1.6 times. 160 rows of 2560 B
  // are 0.41 MB.
  CHECK(norm_passes(made_device(), c, rows(1e6, 640)) ==
        Approx((1 + 0.5 * (0.4096 - 0.3) / 0.9) * 1.6));
}

TEST_CASE("without a width or a cache, nothing is cached") {
  CHECK(norm_passes(made_device(), kPlain, rows(1e6, 0)) == 1.5);
  DeviceFacts none = made_device();
  none.l2.reset();
  CHECK(norm_passes(none, kPlain, rows(1e6, 256)) == 1.5);
}

}  // namespace
}  // namespace rehearse::compute
