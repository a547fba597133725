// The law of fused attention: by hand.
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

double milliseconds(const Op& op) {
  return attention_time(device(), Arithmetic::kHalf, kSustained, op) * 1e3;
}

TEST_CASE("a query meets its keys, and the beginning and the end of its block") {
  // 4 · 64 · 2048 · 128 · (1024 + 2048 / 8) = 8.59e10 FLOPs at 0.63 of 100 TFLOP/s.
  CHECK(milliseconds(attention(128)) == Approx(1.3635).epsilon(1e-3));
  // All keys: 2048 + 256 of them.
  Op full = attention(128);
  full.causal = false;
  CHECK(milliseconds(full) == Approx(1.3635 * 2304 / 1280).epsilon(1e-3));
}

TEST_CASE(
    "few blocks take as long as one on every multiprocessor, and single queries split their keys") {
  Op few = attention(128);
  few.batch = 1;
  // 16 blocks of 128 on 100 multiprocessors: as 6.25 heads.
  CHECK(milliseconds(few) == Approx(1.3635 * 6.25 / 64).epsilon(1e-3));
  // A block begins and ends, however few its queries and however divided its keys: 256 of 1280.
  few.m = 1;
  CHECK(milliseconds(few) == Approx(1.3635 * 6.25 / 64 * (1024. / 128 + 256) / 1280).epsilon(1e-3));
}

TEST_CASE("heads take the next size of a kernel, and exponentials weigh more on small ones") {
  CHECK(head_of_kernel(80) == 96);
  CHECK(head_of_kernel(132) == 192);
  CHECK(head_of_kernel(512) == 512);
  // As if heads were 2048 / 64 = 32 larger: (96 + 32) / (128 + 32) of the time with 128.
  CHECK(milliseconds(attention(80)) == Approx(1.3635 * 0.8).epsilon(1e-3));
  CHECK(milliseconds(attention(96)) == milliseconds(attention(80)));
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
