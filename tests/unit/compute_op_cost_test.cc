// What an op costs, end to end: recordings, provenance, divisions, refusals.
#include <cmath>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "models/compute/op_cost.h"
#include "models/compute/transfer.h"
#include "sim/cluster/partition.h"

namespace rehearse::compute {
namespace {

using workload::Dtype;
using workload::Op;
using workload::OpKind;

Op gemm(double m, double n, double k, Dtype dtype = Dtype::kBf16) {
  return {.name = "gemm", .kind = OpKind::kGemm, .dtype = dtype, .m = m, .n = n, .k = k};
}

OpCost on(std::string_view device, const Sustained& sustained = {}) {
  Result<OpCost> cost = OpCost::on(device, sustained);
  REQUIRE(cost);
  return *cost;
}

TEST_CASE("a device that is not known and an impossible share are refused") {
  CHECK_FALSE(OpCost::on("quantum", {}));
  CHECK(to_string(OpCost::on("a100_sxm4_40:3g.20g", {}).error()) ==
        "a100_sxm4_40 has no profile '3g.20g'; did you mean '3g.20gb'?");
  CHECK(to_string(OpCost::on("t4", {.memory = 1.5}).error()) ==
        "sustained memory 1.5 is out of range; a number from 0.1 to 1");
}

TEST_CASE(
    "an op on a partition takes at least as long as on the whole device, and at most by its "
    "slices") {
  for (const char* gpu : {"a100_sxm4_80", "h100_sxm5_80", "b200_sxm_180"}) {
    const OpCost whole = on(gpu);
    const auto device = cluster::mig_device(**cluster::find_gpu(gpu));
    REQUIRE(device);
    for (std::uint32_t p = 0; p < device->profiles.size(); ++p) {
      const OpCost slice = on(fmt::format("{}:{}", gpu, device->profile(p).name));
      const cluster::DeviceShare share = cluster::share_of(*device, p);
      const double least = std::min(share.multiprocessors, share.bandwidth);
      for (const Op& op : {gemm(8192, 8192, 8192), gemm(64, 64, 64), gemm(16384, 128, 4096),
                           gemm(4096, 4096, 4096, Dtype::kFp32)}) {
        INFO(gpu << ":" << device->profile(p).name << " " << op.m << " " << op.n);
        const double slower = slice.time(op).value / whole.time(op).value;
        CHECK(slower > 0.9);
        CHECK(slower < 1.35 / least);
      }
      // A large product takes as much longer as there are fewer multiprocessors.
      const double large =
          slice.time(gemm(8192, 8192, 8192)).value / whole.time(gemm(8192, 8192, 8192)).value;
      CHECK(large == Approx(1 / share.multiprocessors).epsilon(0.15));
      CHECK(slice.time(gemm(8192, 8192, 8192)).provenance == Provenance::kExtrapolated);
    }
  }
}

TEST_CASE("a partition of all slices costs as much as the whole GPU") {
  // MIG takes no multiprocessors of an H100.
  const OpCost whole = on("h100_sxm5_80"), all = on("h100_sxm5_80:7g.80gb");
  Op norm{.name = "", .kind = OpKind::kNorm, .bytes = Bytes::mb(64), .width = 4096};
  Op attention{.name = "", .kind = OpKind::kAttention, .batch = 64, .m = 2048, .n = 2048, .k = 128};
  for (const Op& op : {gemm(4096, 4096, 4096), gemm(128, 4096, 512),
                       gemm(512, 512, 512, Dtype::kFp32), norm, attention})
    CHECK(all.time(op).value / whole.time(op).value == Approx(1).epsilon(1e-9));
}

TEST_CASE("batch norm takes two elements per multiprocessor and clock, or the time of its bytes") {
  // 10⁹ elements: 10⁹ / (2 · 132 · 1.98 GHz) = 1.91 ms in either format, where 4 GB take 1.3 ms.
  Op half{.name = "", .kind = OpKind::kNorm, .dtype = Dtype::kFp16, .bytes = Bytes::gb(2)};
  Op full = half;
  workload::set_format(full, Dtype::kFp32);
  const OpCost h100 = on("h100_sxm5_80");
  CHECK(h100.time(half).value.ms() == Approx(1.913).epsilon(0.005));
  CHECK(h100.time(full).value == h100.time(half).value);
  // Slower memory decides.
  const OpCost a10 = on("a10");
  Op elementwise = full;
  elementwise.kind = OpKind::kElementwise;
  CHECK(a10.time(full).value == a10.time(elementwise).value);
}

TEST_CASE("every device of the catalog has a finite cost for every kind of op") {
  Op norm{.name = "", .kind = OpKind::kNorm, .bytes = Bytes::mb(64), .width = 4096};
  Op softmax = norm, elementwise = norm;
  softmax.kind = OpKind::kSoftmax;
  elementwise.kind = OpKind::kElementwise;
  Op attention{.name = "", .kind = OpKind::kAttention, .batch = 64, .m = 2048, .n = 2048, .k = 128};
  Op gather{.name = "", .kind = OpKind::kGather, .m = 4096, .n = 1024, .k = 50000};
  for (const cluster::Gpu& gpu : cluster::gpus()) {
    const OpCost cost = on(gpu.name);
    for (const Op& op :
         {gemm(4096, 4096, 4096), gemm(4096, 4096, 4096, Dtype::kFp32), gemm(1, 8, 8, Dtype::kFp8),
          norm, softmax, elementwise, attention, gather}) {
      const Estimate<Seconds> t = cost.time(op);
      INFO(gpu.name << " " << to_string(op.kind));
      CHECK(t.value.s() > 0);
      CHECK(t.value < Seconds::s(10));
      CHECK(t.low <= t.value);
      CHECK(t.value <= t.high);
    }
  }
}

TEST_CASE("a product is never faster than the peak of its device") {
  for (const char* device :
       {"a100_sxm4_80", "h100_sxm5_80", "l40s", "v100_sxm2_16", "mi300x", "t4", "rtx4090"})
    for (const Dtype dtype : {Dtype::kFp32, Dtype::kTf32, Dtype::kBf16, Dtype::kFp8}) {
      const DeviceFacts facts = facts_of(**cluster::find_gpu(device));
      const Op op = gemm(16384, 16384, 16384, dtype);
      const Seconds least = workload::flops_of(op) / facts.peak(arithmetic_of(facts, dtype));
      CHECK(on(device).time(op).value >= least * 0.97);
    }
}

TEST_CASE("provenance names the source of the constants") {
  CHECK(on("a100_sxm4_80").time(gemm(4096, 4096, 4096)).provenance == Provenance::kInterpolated);
  CHECK(on("a100_sxm4_80").time(gemm(1e6, 65536, 65536)).provenance == Provenance::kExtrapolated);
  CHECK(on("a100_pcie_80").time(gemm(4096, 4096, 4096)).provenance == Provenance::kExtrapolated);
  CHECK(on("k80").time(gemm(4096, 4096, 4096, Dtype::kFp32)).provenance == Provenance::kDatasheet);
  Op recorded = gemm(64, 64, 64);
  recorded.measured = {Seconds::ms(3), Seconds::ms(2), Seconds::ms(4), Provenance::kRecorded};
  CHECK(on("k80").time(recorded).value == Seconds::ms(3));
  CHECK(on("k80").predicted(recorded).value != Seconds::ms(3));
}

TEST_CASE("a product has the interval of the unit that computes it") {
  const auto above = [](const char* device, double rows, Dtype dtype) {
    const Estimate<Seconds> t = on(device).predicted(gemm(rows, 16384, 16384, dtype));
    return t.high / t.value;
  };
  const auto typical = [](OpClass kind) {
    return shipped_calibrations().front().widths[static_cast<std::size_t>(kind)]->high;
  };
  // None of them has rows. K80 has no matrix units, so it computes half precision in FP32.
  CHECK(above("a10g", 16384, Dtype::kBf16) == Approx(typical(OpClass::kUnitGemm)));
  CHECK(above("a10g", 16384, Dtype::kFp32) == Approx(typical(OpClass::kGemm)));
  CHECK(above("k80", 16384, Dtype::kFp32) == Approx(typical(OpClass::kEarlyGemm)));
  CHECK(above("k80", 16384, Dtype::kFp16) == Approx(typical(OpClass::kEarlyGemm)));
  CHECK(above("a10g", 1, Dtype::kBf16) == Approx(typical(OpClass::kThinUnitGemm)));
  CHECK(above("a10g", 1, Dtype::kFp32) == Approx(typical(OpClass::kThinGemm)));
}

TEST_CASE("a recording follows its extents by the ratio of two predictions") {
  const OpCost cost = on("a100_sxm4_80");
  const Estimate<Seconds> measured = {Seconds::ms(2), Seconds::ms(1.9), Seconds::ms(2.1),
                                      Provenance::kRecorded};
  const Op whole = gemm(8192, 4096, 4096);
  CHECK(cost.rescale(measured, whole, whole).value == measured.value);
  CHECK(cost.rescale(measured, whole, whole).provenance == Provenance::kRecorded);
  Op half = whole;
  workload::divide(half, workload::Extent::kM, 2);
  const Estimate<Seconds> scaled = cost.rescale(measured, whole, half);
  CHECK(scaled.value / measured.value ==
        Approx(cost.predicted(half).value / cost.predicted(whole).value));
  CHECK(scaled.value / measured.value == Approx(0.5).margin(0.08));
  CHECK(scaled.high / scaled.value > measured.high / measured.value);
  CHECK(scaled.provenance == Provenance::kInterpolated);
}

TEST_CASE("a recording is carried over to another device by the ratio of two predictions") {
  const OpCost h100 = on("h100_sxm5_80"), mi300x = on("mi300x");
  const Estimate<Seconds> measured = {Seconds::ms(2), Seconds::ms(1.9), Seconds::ms(2.1),
                                      Provenance::kRecorded};
  for (const Op& op : {gemm(8192, 4096, 4096),
                       Op{.name = "", .kind = OpKind::kElementwise, .bytes = Bytes::gb(1)}}) {
    const Estimate<Seconds> was = h100.predicted(op), is = mi300x.predicted(op);
    const Estimate<Seconds> there = mi300x.carried(measured, op, h100);
    CHECK(there.value.s() == Approx(2e-3 * (is.value / was.value)));
    // Too short by the error here, or by the opposite one there; vendors share none.
    const double below = std::hypot(std::log(is.value / is.low), std::log(was.high / was.value));
    const double above = std::hypot(std::log(is.high / is.value), std::log(was.value / was.low));
    CHECK(there.low.s() == Approx(there.value.s() * 0.95 * std::exp(-below)));
    CHECK(there.high.s() == Approx(there.value.s() * 1.05 * std::exp(above)));
    CHECK(there.provenance == Provenance::kExtrapolated);
    // There and back.
    CHECK(h100.carried(there, op, mi300x).value.s() == Approx(2e-3));
    CHECK(h100.carried(measured, op, h100).provenance == Provenance::kRecorded);
  }
  // Half of the error of one prediction, within a vendor.
  const Op product = gemm(8192, 4096, 4096);
  const Estimate<Seconds> on_a100 = on("a100_sxm4_80").carried(measured, product, h100);
  const Estimate<Seconds> by_law = on("a100_sxm4_80").predicted(product);
  CHECK(on_a100.high.s() ==
        Approx(on_a100.value.s() * 1.05 * std::sqrt(by_law.high / by_law.value)));
  // What memory bounds goes by the rates, 5300 and 3350 GB/s.
  const Op move{.name = "", .kind = OpKind::kElementwise, .bytes = Bytes::gb(1)};
  CHECK(mi300x.carried(measured, move, h100).value.ms() == Approx(2 * 3350. / 5300).epsilon(0.01));
}

TEST_CASE("each sustained factor scales only its own operations") {
  const Op product = gemm(8192, 8192, 8192);
  const Op move{.name = "", .kind = OpKind::kElementwise, .bytes = Bytes::gb(2)};
  const OpCost plain = on("a100_sxm4_80"), slow = on("a100_sxm4_80", {.gemm = 1.2});
  CHECK(slow.time(product).value / plain.time(product).value == Approx(1.2));
  CHECK(slow.time(move).value == plain.time(move).value);
  const Op single = gemm(8192, 8192, 8192, Dtype::kFp32);
  CHECK(slow.time(single).value == plain.time(single).value);
  // 2 GB at 0.5 of 2039 GB/s.
  CHECK(on("a100_sxm4_80", {.memory = 0.5}).time(move).value.s() ==
        Approx(2e9 / (0.5 * 2039e9)).epsilon(0.01));
}

TEST_CASE("causal attention counts half, and its gradient follows the given share") {
  Op full{.name = "", .kind = OpKind::kAttention, .batch = 128, .m = 4096, .n = 4096, .k = 128};
  Op causal = full;
  causal.causal = true;
  const OpCost cost = on("a100_sxm4_80", {.attention = 0.35});
  // 4 · 128 · 4096² · 128 = 1.0995e12 FLOPs at 0.35 of 312 TFLOP/s: 10.07 ms.
  CHECK(cost.time(full).value.ms() == Approx(10.07).epsilon(0.001));
  CHECK(cost.time(causal).value.ms() == Approx(5.035).epsilon(0.002));
}

TEST_CASE("a cost from given calibrations uses only these") {
  std::vector<Calibration> typical = {shipped_calibrations().front()};
  const Result<OpCost> alone = OpCost::on("h100_sxm5_80", {}, typical);
  REQUIRE(alone);
  CHECK(alone->predicted(gemm(8192, 8192, 8192)).provenance == Provenance::kDatasheet);
  CHECK(on("h100_sxm5_80").predicted(gemm(8192, 8192, 8192)).provenance ==
        Provenance::kInterpolated);
}

TEST_CASE("the power rule limits cards of little power, by the energy of their process") {
  const auto share = [](const char* device) {
    return power_share(facts_of(**cluster::find_gpu(device)), Arithmetic::kFp32);
  };
  // 70 W / (8.1 TFLOP/s · 17.3 pJ), and 250 W / (19.5 TFLOP/s · 15.2 pJ).
  CHECK(share("t4") == Approx(0.4995).epsilon(0.001));
  CHECK(share("a100_pcie_40") == Approx(0.8435).epsilon(0.001));
  for (const char* device : {"v100_pcie_32", "a100_pcie_80", "h100_sxm5_80", "p100_pcie_16"})
    CHECK(share(device) > 0.95);
}

TEST_CASE("a card with more power sustains more of the same chip, up to its peak") {
  const auto seconds = [](const char* device) {
    return on(device).predicted(gemm(8192, 8192, 8192, Dtype::kFp32)).value.s();
  };
  // 300 W where its rows are of a card with 250 W: the share rises from 0.8435 to 1.
  CHECK(seconds("a100_pcie_40") / seconds("a100_pcie_80") == Approx(1 / 0.8435).epsilon(0.02));
}

TEST_CASE("a limit of power replaces the loss of kernels, and does not multiply it") {
  // 300 W / (312 TFLOP/s · 1.19 pJ) is 0.81; kernels of the chip reach 0.87 where power allows.
  // Measured: 252.9 TFLOP/s (max-matmul-flops, A100 PCIe).
  const double seconds = on("a100_pcie_80").predicted(gemm(2048, 5120, 6144)).value.s();
  CHECK(seconds == Approx(2. * 2048 * 5120 * 6144 / 252.9e12).epsilon(0.1));
}

TEST_CASE("a card whose matrix units run at half their rate reaches their peak") {
  const auto spare = [](const char* device) {
    return spare_share(facts_of(**cluster::find_gpu(device)));
  };
  // 71.2 TFLOP/s of 82 multiprocessors at 1,695 MHz are 512 FLOP per clock, and 154.8 of 84 at 1,800
  // MHz are 1,024.
  CHECK(spare("rtx3090") == Approx(2).epsilon(0.01));
  for (const char* device : {"rtx_a6000", "a100_sxm4_80", "h100_sxm5_80", "mi250x", "p4"})
    CHECK(spare(device) == 1);
  const auto share = [](const char* device, Dtype dtype) {
    const DeviceFacts facts = facts_of(**cluster::find_gpu(device));
    const Op op = gemm(8192, 8192, 8192, dtype);
    const Seconds least = workload::flops_of(op) / facts.peak(arithmetic_of(facts, dtype));
    return least / on(device).predicted(op).value;
  };
  CHECK(share("rtx3090", Dtype::kFp16) > 0.97);
  CHECK(share("rtx_a6000", Dtype::kFp16) < 0.93);
  // Ordinary cores are not halved.
  CHECK(share("rtx3090", Dtype::kFp32) < 0.85);
}

TEST_CASE("a chip without rows has the shape of its generation") {
  // P4 has no table, nor has another GP104: long rows cost it what they cost P100.
  const auto seconds = [](const OpCost& cost, double k) {
    return cost.predicted(gemm(8192, 8192, k, Dtype::kFp32)).value.s();
  };
  const OpCost p4 = on("p4"), p100 = on("p100_pcie_16");
  CHECK(p4.sources().front().find("p100_pcie_16") != std::string::npos);
  CHECK(seconds(p4, 32768) / seconds(p4, 4096) ==
        Approx(seconds(p100, 32768) / seconds(p100, 4096)).epsilon(0.05));
  CHECK(seconds(p4, 32768) > 1.5 * 8 * seconds(p4, 4096));
  CHECK(p4.predicted(gemm(8192, 8192, 4096, Dtype::kFp32)).provenance == Provenance::kDatasheet);
}

}  // namespace
}  // namespace rehearse::compute
