// NCCL's choice at points computed by hand from its constants (models/comm/nccl_tuning.h).
#include <random>

#include <catch2/catch.hpp>

#include "models/comm/nccl_choice.h"

namespace rehearse::comm {
namespace {

constexpr double kMib = 1048576;

NcclSetup node(Generation generation, double graph, double channels, std::uint32_t ranks) {
  return {.generation = generation, .graph_rate = graph, .channels = channels, .ranks = ranks};
}
NcclSetup a100(std::uint32_t ranks) { return node(Generation::kAmpere, 240e9, 12, ranks); }

TEST_CASE("the ring that NCCL's search finds") {
  // 12 links of 20 GB/s: 6 channels of 40 fill them, and are split in two.
  const RingGraph a = search_ring(Generation::kAmpere, 12, 20e9);
  CHECK(a.rate == Approx(240e9));
  CHECK(a.channels == 12);
  // 18 links of 20.6: 370.8; 6 channels of 60 are within 5 %.
  CHECK(search_ring(Generation::kHopper, 18, 20.6e9).rate == Approx(360e9));
  // 18 links of 40.1: 8 channels of 90.
  CHECK(search_ring(Generation::kBlackwell, 18, 40.1e9).rate == Approx(720e9));
  // H800, 8 links: 164.8; 60 gives 120, 50 gives 150, 40 gives 160.
  CHECK(search_ring(Generation::kHopper, 8, 20.6e9).rate == Approx(160e9));
}

TEST_CASE("all_reduce on two A100 goes from LL to Simple at 1 MiB") {
  // LL     6.6 + 2 * 0.6 = 7.8 us and 87.7 GB/s; Simple 8.4 + 2 * 3.4 = 15.2 us and 240 GB/s.
  // 512 KiB: 7.8 + 5.98 = 13.78 against 15.2 + 2.18 = 17.38. 1 MiB: 19.76 against 19.57.
  const NcclTuning tuning(a100(2), CollectiveKind::kAllReduce);
  const NcclChoice below = *tuning.choose(kMib / 2), at = *tuning.choose(kMib);
  CHECK(below.protocol == Protocol::kLl);
  CHECK(below.nominal_time == Approx(13.78e-6).epsilon(1e-3));
  CHECK(at.protocol == Protocol::kSimple);
  CHECK(at.nominal_time == Approx(19.57e-6).epsilon(1e-3));
  CHECK(at.algorithm == Algorithm::kRing);
}

TEST_CASE("all_reduce on eight A100 passes through LL128") {
  // 4 MiB over 8 ranks, ratio 8/14: LL 15.0 + 83.7 = 98.7; LL128 14 + 14 * 1.9 + 33.2 = 73.8;
  // Simple 8.4 + 14 * 3.4 + 30.6 = 86.6.
  const NcclTuning tuning(a100(8), CollectiveKind::kAllReduce);
  const NcclChoice choice = *tuning.choose(4 * kMib);
  CHECK(choice.protocol == Protocol::kLl128);
  CHECK(choice.nominal_time == Approx(73.8e-6).epsilon(1e-3));
}

TEST_CASE("tree is not chosen on one node, and its bandwidth is corrected by size") {
  for (double bytes = 64; bytes < 4e9; bytes *= 2)
    CHECK(NcclTuning(a100(8), CollectiveKind::kAllReduce).choose(bytes)->algorithm ==
          Algorithm::kRing);
  // Simple, 1 MiB: factor 0.5 (entry 14); 6.8... base 8.4 + 2 * 7 * 4.0 = 64.4 us;
  // 0.92 * 240 = 220.8 GB/s on the wire, half of it per time, times 0.5: 55.2 GB/s -> 19.0 us.
  const NcclTuning tree(a100(8), CollectiveKind::kAllReduce,
                        {.algorithm = Algorithm::kTree, .protocol = Protocol::kSimple});
  CHECK(tree.choose(kMib)->nominal_time == Approx((64.4 + 1048576 / 55.2e3) * 1e-6).epsilon(1e-3));
}

TEST_CASE("several nodes: tree for small and ring for large sizes, by the row of the host") {
  NcclSetup setup = node(Generation::kHopper, 360e9, 12, 64);
  setup.nodes = 8;
  setup.network_rate = 50e9;
  setup.network_latency = 1e-6;
  const NcclTuning tuning(setup, CollectiveKind::kAllReduce);
  CHECK(tuning.choose(1024)->algorithm == Algorithm::kTree);
  CHECK(tuning.choose(8e9)->algorithm == Algorithm::kRing);
}

TEST_CASE("two nodes: NCCL counts the bytes that a tree moves within them") {
  // Two p4d.24xlarge, 50 GB/s of NICs each. Ring: 50 GB/s, 16 / 30 of it per time: 26.7 GB/s. Tree:
  // 0.92 of twice 50 GB/s, half of it per time, less a tenth for the size: 41.4 GB/s.
  NcclSetup setup = a100(16);
  setup.nodes = 2;
  setup.network_rate = 50e9;
  setup.network_latency = 20e-6;
  CHECK(NcclTuning(setup, CollectiveKind::kAllReduce).choose(kMib * 512)->algorithm ==
        Algorithm::kTree);
  // On three nodes the NICs count for both.
  setup.ranks = 24;
  setup.nodes = 3;
  CHECK(NcclTuning(setup, CollectiveKind::kAllReduce).choose(kMib * 512)->algorithm ==
        Algorithm::kRing);
}

TEST_CASE("algorithms and protocols are available as in NCCL") {
  const auto none = [](const NcclSetup& s, CollectiveKind k, NcclOverrides o) {
    return !NcclTuning(s, k, o).choose(kMib);
  };
  CHECK(none(a100(8), CollectiveKind::kAllGather, {.algorithm = Algorithm::kTree}));
  CHECK(none(a100(8), CollectiveKind::kBroadcast, {.algorithm = Algorithm::kTree}));
  CHECK(none(a100(8), CollectiveKind::kAllReduce, {.algorithm = Algorithm::kNvls}));
  CHECK(none(a100(8), CollectiveKind::kAllGather, {.algorithm = Algorithm::kPat}));
  CHECK(none(a100(8), CollectiveKind::kAllReduce, {.algorithm = Algorithm::kCollnetChain}));
  CHECK(none(a100(8), CollectiveKind::kAllToAll, {}));
  CHECK(none(a100(1), CollectiveKind::kAllReduce, {}));
  NcclSetup pci = a100(4);
  pci.nvlink = false;
  CHECK(none(pci, CollectiveKind::kAllReduce, {.protocol = Protocol::kLl128}));
  NcclSetup spread = a100(4);
  spread.nodes = 4;
  spread.network_rate = 25e9;
  CHECK_FALSE(none(spread, CollectiveKind::kAllGather, {.algorithm = Algorithm::kPat}));
  CHECK(none(spread, CollectiveKind::kAllReduce, {.algorithm = Algorithm::kPat}));
}

TEST_CASE("NVLS is chosen from its calibrated size on") {
  NcclSetup setup = node(Generation::kHopper, 360e9, 12, 8);
  setup.nvls_from = 32 * kMib;
  const NcclTuning tuning(setup, CollectiveKind::kAllReduce);
  CHECK(tuning.choose(31 * kMib)->algorithm == Algorithm::kRing);
  CHECK(tuning.choose(32 * kMib)->algorithm == Algorithm::kNvls);
  // By name, at every size.
  const NcclTuning forced(setup, CollectiveKind::kAllReduce, {.algorithm = Algorithm::kNvls});
  CHECK(forced.choose(1024)->algorithm == Algorithm::kNvls);
}

TEST_CASE("the choice is the cheapest that overrides allow") {
  const std::uint64_t seed = 20260611;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 500; ++trial) {
    NcclSetup setup = a100(2U << random() % 5);
    setup.generation = static_cast<Generation>(random() % 4);
    setup.graph_rate = 1e9 * static_cast<double>(10 + random() % 900);
    if (random() % 2) {
      setup.nodes = 2;
      setup.network_rate = 1e9 * static_cast<double>(1 + random() % 400);
      setup.network_latency = 1e-6;
    }
    const auto kind = random() % 2 ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter;
    const double bytes = static_cast<double>(1ULL << (random() % 34));
    const NcclChoice best = *NcclTuning(setup, kind).choose(bytes);
    for (const Protocol p : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
      const auto forced = NcclTuning(setup, kind, {.protocol = p}).choose(bytes);
      if (!forced) continue;
      CHECK(forced->protocol == p);
      CHECK(forced->nominal_time >= best.nominal_time);
    }
  }
}

}  // namespace
}  // namespace rehearse::comm
