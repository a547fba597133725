// The law of fused attention: by hand.
#include <cmath>

#include <catch2/catch.hpp>

#include "models/compute/attention_law.h"
#include "models/compute/op_cost.h"

namespace rehearse::compute {
namespace {

using workload::Op;
using workload::OpKind;

constexpr double kSustained = 100e12;

/// 2048 FLOPs per multiprocessor and clock.
DeviceFacts device() {
  DeviceFacts facts;
  facts.multiprocessors = 100;
  facts.boost_hz = 1e9;
  facts.peaks[static_cast<std::size_t>(Arithmetic::kHalf)] = FlopRate::tflop_per_s(204.8);
  return facts;
}

Op attention(double size) {
  return {.name = "",
          .kind = OpKind::kAttention,
          .batch = 64,
          .m = 2048,
          .n = 2048,
          .k = size,
          .causal = true};
}

constexpr AttentionConstants kLaw{.share = 1,
                                  .exponentials = 1,
                                  .fixed = 1000,
                                  .memory = 1,
                                  .overlap = 2,
                                  .families = {{{1, 10e-6}, {0.625, 4e-6}, {0.4, 0}}},
                                  .blackwell = {0.2, 1e-6}};

double milliseconds(const Op& op, const AttentionFamily& family = {1, 0, 0.5}, double moved = 0) {
  return attention_time(device(), kLaw, family, kSustained, moved, op) * 1e3;
}

TEST_CASE("blocks of queries share the multiprocessors, and half of the longest one shows") {
  // A key: 4 · 128 · 128 FLOPs at 1,000 per clock of a multiprocessor, and 128 / 16 exponentials:
  // 73.536 clocks. A block: (2048 + 128) / 2 keys and 1000 clocks. 64 · 16 blocks on 100
  // multiprocessors, and half of one with all 2048 keys.
  const double key = 65.536 + 8;
  const double causal = 10.24 * (1088 * key + 1000) + 0.5 * (2048 * key + 1000);
  CHECK(milliseconds(attention(128)) == Approx(causal * 1e-6));
  CHECK(causal * 1e-6 == Approx(0.9053).epsilon(1e-4));
  Op full = attention(128);
  full.causal = false;
  CHECK(milliseconds(full) == Approx(10.74 * (2048 * key + 1000) * 1e-6));
  // Kernels that need half of the clocks of a key, and the start of a slower clock.
  CHECK(milliseconds(attention(128), {0.5, 10e-6, 0.5}) ==
        Approx((10.24 * (544 * key + 1000) + 0.5 * (1024 * key + 1000) + 17e3) * 1e-6));
  // Operands move while blocks compute: √(0.9053² + 1.2²) ms.
  CHECK(milliseconds(attention(128), {1, 0, 0.5}, 1.2e-3) ==
        Approx(std::hypot(causal * 1e-6, 1.2)));
}

TEST_CASE("single queries wait for memory, and idle multiprocessors divide their keys") {
  // Decoding: 16 rows a block, 8.192 + 1 clocks a key. 8 blocks of 65,536 keys on 100
  // multiprocessors are cut into 25 parts; each waits 3 µs, and all 25 are merged.
  Op one = attention(128);
  one.batch = 8;
  one.m = 1;
  one.n = 65536;
  one.causal = false;
  const AttentionFamily family{1, 0, 0, {.block = 3e-6, .merge = 2e-6, .part = 0.1e-6}};
  const double key = (8.192 + 1) * 1e-9;
  const double all = 0.08 * (65536 * key + 3e-6), chain = 65536 / 25. * key + 3e-6;
  CHECK(milliseconds(one, family) ==
        Approx((std::hypot(all, chain) + 1.7 * (2e-6 + 25 * 0.1e-6)) * 1e3));
  // More blocks than fit at once divide nothing.
  Op many = one;
  many.batch = 250;
  const double undivided = 65536 * key + 3e-6;
  CHECK(milliseconds(many, family) == Approx(std::hypot(2.5 * undivided, undivided) * 1e3));
  // A short sequence has no tile to divide.
  Op brief = one;
  brief.n = 100;
  const double tile = 128 * key + 3e-6;
  CHECK(milliseconds(brief, family) == Approx(std::hypot(0.08 * tile, tile) * 1e3));
}

TEST_CASE("FlashAttention-2 waits for each key, and divides keys only where heads share them") {
  Op one = attention(128);
  one.batch = 8;
  one.n = 65536;
  one.causal = false;
  const AttentionFamily family{1, 0, 0, {.block = 0, .key = 20e-9}};
  one.m = 1;
  CHECK(milliseconds(one, family) == Approx(65536 * 20e-6).epsilon(0.01));
  one.m = 4;
  const double all = 0.08 * 65536 * 9.192e-9, chain = 65536 / 25. * 20e-9;
  CHECK(milliseconds(one, family) == Approx(std::hypot(all, chain) * 1e3));
}

TEST_CASE("heads take the next size of a kernel") {
  CHECK(head_of_kernel(80) == 96);
  CHECK(head_of_kernel(132) == 192);
  CHECK(head_of_kernel(512) == 512);
  CHECK(milliseconds(attention(96)) == milliseconds(attention(80)));
}

TEST_CASE("a device before Hopper runs FlashAttention-2, a later one the mean of all") {
  DeviceFacts facts = device();
  facts.architecture = "ampere_ga100";
  CHECK(family_of(facts, kLaw, {}).start == 10e-6);
  CHECK(family_of(facts, kLaw, AttentionKernels::kTensorRt).start == 4e-6);
  facts.architecture = "hopper_gh100";
  CHECK(family_of(facts, kLaw, {}).factor == Approx(std::cbrt(0.25)));
  CHECK(family_of(facts, kLaw, {}).start == 0);
  // Kernels for asynchronous units were rewritten for Blackwell.
  CHECK(family_of(facts, kLaw, AttentionKernels::kAsynchronous).factor == 0.4);
  facts.architecture = "blackwell_gb100";
  CHECK(family_of(facts, kLaw, AttentionKernels::kAsynchronous).factor == 0.2);
  CHECK(family_of(facts, kLaw, {}).factor == Approx(std::cbrt(0.125)));
}

TEST_CASE("kernels that are named have a narrower interval") {
  const Result<OpCost> any = OpCost::on("h100_sxm5_80", {});
  const Result<OpCost> named =
      OpCost::on("h100_sxm5_80", {.attention_kernels = AttentionKernels::kAsynchronous});
  REQUIRE((any && named));
  const auto width = [](const Estimate<Seconds>& e) { return (e.high - e.low) / e.value; };
  CHECK(named->predicted(attention(128)).value < any->predicted(attention(128)).value);
  CHECK(width(named->predicted(attention(128))) < width(any->predicted(attention(128))));
}

TEST_CASE("a share that is given holds for every length") {
  const Result<OpCost> cost = OpCost::on("a100_sxm4_80", {.attention = 0.4});
  REQUIRE(cost);
  const double once = cost->predicted(attention(128)).value.s();
  Op longer = attention(128);
  longer.m = longer.n = 4096;
  CHECK(cost->predicted(longer).value.s() / once == Approx(4).epsilon(0.01));
}

}  // namespace
}  // namespace rehearse::compute
