// Kernels on a slice: the worked example of docs/concepts/sharing.md and properties.
#include "models/sharing/kernel_law.h"

#include <random>

#include <catch2/catch.hpp>

namespace rehearse::sharing {
namespace {

KernelSlice two_of_a100() {
  const auto device = cluster::mig_device(**cluster::find_gpu("a100_sxm4_40"));
  REQUIRE(device);
  return kernel_slice(*device, *cluster::find_profile(*device, "2g.10gb"));
}

KernelLaunch blocks(double n) {
  return {.blocks = n, .threads_per_block = 256, .registers_per_thread = 64, .shared_bytes = 0};
}

TEST_CASE("kernel law: the worked example") {
  const KernelSlice slice = two_of_a100();
  const Seconds recorded = Seconds::us(100);
  CHECK(slowdown_on(slice, "sgemm_128x64", recorded, blocks(216)).value == Approx(3.94));
  const Slowdown few = slowdown_on(slice, "sgemm_128x64", recorded, blocks(20));
  CHECK(few.value == 1);
  CHECK(few.low == 1);
  // Data: all bandwidth of the whole GPU, a quarter on the slice; a quarter of it where 27 blocks
  // draw it.
  CHECK(slowdown_on(slice, "vectorized_elementwise", recorded, blocks(4096)).value == Approx(3.94));
  CHECK(slowdown_on(slice, "vectorized_elementwise", recorded, blocks(27)).value == 1);
  // Latency stays.
  CHECK(slowdown_on(slice, "sgemm_128x64", Seconds::us(2), blocks(216)).value == 1);
  // Nothing known of the launch: as many blocks as there are to be had.
  CHECK(slowdown_on(slice, "sgemm_128x64", recorded, std::nullopt).value ==
        Approx(1 + 0.98 * (108.0 / 28 - 1)));
  // 4 blocks of 512 threads side by side: 216 of them are 1 wave on 108 multiprocessors, 2 on 28.
  KernelLaunch large = blocks(216);
  large.threads_per_block = 512;
  large.registers_per_thread = 32;
  CHECK(slowdown_on(slice, "sgemm_128x64", recorded, large).low == Approx(1 + 0.98));
}

TEST_CASE("kernel law: no kernel is faster on a slice, or slower than by its share") {
  const std::uint32_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const char* gpu : {"a30", "a100_sxm4_80", "h100_sxm5_80"}) {
    const auto device = cluster::mig_device(**cluster::find_gpu(gpu));
    REQUIRE(device);
    for (int round = 0; round < 300; ++round) {
      const auto profile = static_cast<std::uint32_t>(random() % device->profiles.size());
      const KernelSlice slice = kernel_slice(*device, profile);
      const KernelLaunch launch = {
          .blocks = 1.0 + static_cast<double>(random() % 5000),
          .threads_per_block = 32.0 * (1 + static_cast<double>(random() % 32)),
          .registers_per_thread = static_cast<double>(random() % 256),
          .shared_bytes = static_cast<double>(random() % 200000)};
      for (const char* kernel : {"ampere_sgemm", "reduce_kernel"}) {
        const Slowdown s = slowdown_on(slice, kernel, Seconds::us(50), launch);
        CHECK(s.low >= 1);
        CHECK(s.low <= s.value);
        CHECK(s.value <= s.high);
        const double fewer = slice.multiprocessors_before / slice.multiprocessors;
        CHECK(s.high <= std::max(fewer + 1, slice.memory) + 1e-9);
      }
    }
  }
}

TEST_CASE("kernel law: the demand of a kernel on a shared GPU") {
  const KernelLaunch quarter{
      .blocks = 27, .threads_per_block = 256, .registers_per_thread = 32, .shared_bytes = 0};
  const KernelUse gemm = use_of("ampere_sgemm", quarter, 108),
                  moves = use_of("reduce_kernel", quarter, 108);
  CHECK(gemm.multiprocessors == Approx(0.25));
  CHECK(gemm.bandwidth == 0);
  CHECK(moves.bandwidth == Approx(0.25));
  CHECK(moves.multiprocessors == Approx(0.125));
  // With blocks for more than there are, and where the launch is not known: the whole.
  CHECK(use_of("ampere_sgemm", KernelLaunch{5000, 256, 32, 0}, 108).multiprocessors == 1);
  CHECK(use_of("reduce_kernel", std::nullopt, 108).bandwidth == 1);
}

TEST_CASE("kernel law: compute kernels are recognised by name") {
  for (const char* name :
       {"ampere_fp16_s16816gemm", "cudnn::Conv2d", "flash_fwd_kernel", "void cutlass::Kernel2"})
    CHECK(computes(name));
  for (const char* name : {"reduce_kernel", "vectorized_elementwise_kernel", ""})
    CHECK_FALSE(computes(name));
}

}  // namespace
}  // namespace rehearse::sharing
