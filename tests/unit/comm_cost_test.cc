// The closed form: worked numbers, what it refuses, what it says of itself, and that it stays sane
// over random inputs.
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include <catch2/catch.hpp>

#include "models/comm/tcp.h"
#include "models/comm/transfer.h"

namespace rehearse::comm {
namespace {

Calibration round_numbers() {
  Calibration c{.device = "h100_sxm5_80",
                .fabric = Fabric::kNvswitch,
                .generation = Generation::kHopper,
                .links = 18};
  c.fitted.envelope = {Bytes::kib(1),
                       Bytes::gib(1),
                       {2, 4, 8},
                       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather}};
  c.ring_widths = {0.1, 0.1, 0.1, 0.1};
  c.pairwise_widths = {0.2, 0.2, 0.2, 0.2};
  c.switched = SwitchedConstants{
      .ll = {Seconds::us(4), Seconds::us(1), Seconds::us(3), ByteRate::gb_per_s(100)},
      .ll128 = {Seconds::us(10), Seconds::us(2), Seconds::us(0), ByteRate::gb_per_s(300)},
      .simple = {Seconds::us(20), Seconds::us(5), ByteRate::gb_per_s(350), ByteRate::gb_per_s(700)},
      .pairwise = Pairwise{
          .small = {Seconds::us(6), Seconds::us(1), Seconds::us(0), ByteRate::gb_per_s(5)},
          .middle = {Seconds::us(13), Seconds::us(0), Seconds::us(0), ByteRate::gb_per_s(200)},
          .large = {Seconds::us(30), Seconds::us(1), ByteRate::gb_per_s(340)}}};
  return c;
}

CollectiveCost cost(CollectiveKind kind, std::uint32_t ranks, const NcclOverrides& o = {},
                    const Calibration& c = round_numbers()) {
  Result<CollectiveCost> resolved =
      CollectiveCost::resolve({.calibration = c}, {.kind = kind, .ranks = ranks}, o);
  INFO((resolved ? "" : to_string(resolved.error())));
  REQUIRE(resolved);
  return *resolved;
}

TEST_CASE("the forms at worked numbers") {
  // LL, all_reduce on 8: 4 + 14 * 1 + ramp (log2(16/4)/3 * 3 = 2) + 16384 * 1.75 / 100e3 = 0.287.
  const CollectiveCost ll = cost(CollectiveKind::kAllReduce, 8);
  CHECK(ll.seconds(16384) == Approx(20.287e-6).epsilon(1e-4));
  CHECK(ll.at(Bytes::b(16384)).protocol == Protocol::kLl);
  // LL128: 10 + 28 + 1e6 * 1.75 / 300e3 = 43.83.
  CHECK(cost(CollectiveKind::kAllReduce, 8,
             {.algorithm = Algorithm::kRing, .protocol = Protocol::kLl128})
            .seconds(1e6) == Approx(43.833e-6).epsilon(1e-4));
  // Simple, all_gather on 4: 20 + 15 + 1e9 * 0.75 / 350e3 + 1e9 / 4 / 700e3 = 35 + 2142.86 +
  // 357.14.
  CHECK(cost(CollectiveKind::kAllGather, 4).seconds(1e9) == Approx(2535e-6).epsilon(1e-5));
  // All-to-all on 4, 1 MB: small 6 + 3 + 50; middle 13 + 3.75; large 30 + 3 + 2.2.
  CHECK(cost(CollectiveKind::kAllToAll, 4).seconds(1e6) == Approx(16.75e-6).epsilon(1e-5));
  // A barrier is an all_reduce of one number: 4 + 14.
  CHECK(cost(CollectiveKind::kBarrier, 8).seconds(0) == Approx(18e-6).epsilon(1e-3));
  CHECK(cost(CollectiveKind::kAllReduce, 1).seconds(1e9) == 0);
}

TEST_CASE("latency and transfer overlap with q") {
  Calibration c = round_numbers();
  c.switched->simple.q = 2;
  // L = 20 + 3 * 5 = 35 us; W = 2500 us for 1 GB: root of the sum of squares.
  CHECK(cost(CollectiveKind::kAllGather, 4, {}, c).seconds(1e9) ==
        Approx(std::hypot(35e-6, 2500e-6)).epsilon(1e-6));
}

TEST_CASE("several nodes: the network carries the bytes that a node sends") {
  const Network network{NetworkKind::kInfiniband, ByteRate::gb_per_s(100), Seconds::us(2)};
  const auto resolved = CollectiveCost::resolve(
      {.calibration = round_numbers()},
      {.kind = CollectiveKind::kAllReduce, .ranks = 16, .nodes = 2, .network = network},
      {.algorithm = Algorithm::kRing, .protocol = Protocol::kSimple});
  REQUIRE(resolved);
  // 28 steps of 5 and 2 of 14 + 2 * 2 + 10 us, 20 us; 8 GB * 30/16 over 0.9 * 100 GB/s, copy
  // 8/16/700.
  const double expected = 20e-6 + 28 * 5e-6 + 2 * 28e-6 + 8e9 * 1.875 / 90e9 + 8e9 / 16 / 700e9;
  CHECK(resolved->seconds(8e9) == Approx(expected).epsilon(1e-6));
  const Price p = resolved->at(Bytes::gb(8));
  CHECK(p.time.provenance == Provenance::kExtrapolated);
  CHECK(p.time.high / p.time.value > 1.2);
}

TEST_CASE("several nodes: NVLink SHARP in each, and a tree between them") {
  Calibration c = round_numbers();
  c.switched->nvls = Nvls{Bytes::mib(32), 8, Seconds::us(70), ByteRate::gb_per_s(460)};
  const auto at = [&](double gb_per_s, std::uint32_t nodes, Bytes size,
                      const NcclOverrides& overrides = {}) {
    const Network network{NetworkKind::kInfiniband, ByteRate::gb_per_s(gb_per_s), Seconds::us(5)};
    const auto resolved = CollectiveCost::resolve({.calibration = c},
                                                  {.kind = CollectiveKind::kAllReduce,
                                                   .ranks = 8 * nodes,
                                                   .nodes = nodes,
                                                   .network = network},
                                                  overrides);
    REQUIRE(resolved);
    return resolved->at(size);
  };
  // Up and down: 70 us in the switch, 18 + 2 * 5 us between nodes, 10 us of waiting. The switches move
  // 1 GB * 14/8 at 0.97 * 460 GB/s, which the NICs of 400 GB/s, once each way, do not limit.
  const Price fast = at(400, 2, Bytes::gb(1));
  CHECK(fast.algorithm == Algorithm::kNvlsTree);
  CHECK(fast.time.value.s() ==
        Approx(2 * (70e-6 + 20.9e-6 + 10e-6 + 10e-6) + 1.75 / 460 / 0.97).epsilon(1e-3));
  CHECK(at(400, 2, Bytes::mib(32)).algorithm != Algorithm::kNvlsTree);  // half of it in each node
  // With more nodes the NICs carry the buffer twice: 2 GB at 0.9 * 100 GB/s.
  const Price slow = at(100, 4, Bytes::gb(1), {.algorithm = Algorithm::kNvlsTree});
  CHECK(slow.time.value.s() == Approx(140e-6 + 4 * 40.9e-6 + 2.0 / 90).epsilon(1e-3));
}

// 128 MiB on 16 A100 with 200 GB/s per node: a tree carries at most 110 / 2 GB/s, 2.4 ms, and a ring
// 170 · 16 / 30 GB/s, 1.5 ms. NCCL's limit of 12 channels, 283 GB/s, would choose the tree.
TEST_CASE("several nodes: no larger all_reduce has a much lower bandwidth") {
  for (const char* device : {"a100_sxm4_80", "h100_sxm5_80"})
    for (const std::uint32_t nodes : {2U, 3U, 8U, 32U})
      for (const double rate : {50.0, 100.0, 200.0, 400.0}) {
        const Network network{.kind = NetworkKind::kInfiniband,
                              .node_rate = ByteRate::gb_per_s(rate),
                              .latency = Seconds::us(5),
                              .nics = 8};
        const auto resolved =
            CollectiveCost::resolve(*calibration_for(device), {.kind = CollectiveKind::kAllReduce,
                                                               .ranks = 8 * nodes,
                                                               .nodes = nodes,
                                                               .network = network});
        REQUIRE(resolved);
        for (double bytes = 1 << 20; bytes < 8e9; bytes *= 2) {
          CAPTURE(device, nodes, rate, bytes);
          CHECK(resolved->seconds(2 * bytes) < 2.2 * resolved->seconds(bytes));
        }
      }
}

TEST_CASE("EFA: every step of a gathering ring waits, and each level of a tree") {
  const auto seconds = [](CollectiveKind kind, Algorithm algorithm, double part = 1) {
    const Network efa{NetworkKind::kEfa, ByteRate::gb_per_s(400) * part,
                      Seconds::us(15),   8 * part,
                      Seconds::s(0),     part};
    const auto resolved = CollectiveCost::resolve(
        {.calibration = round_numbers()},
        {.kind = kind, .ranks = static_cast<std::uint32_t>(32 * part), .nodes = 4, .network = efa},
        {.algorithm = algorithm, .protocol = Protocol::kSimple});
    REQUIRE(resolved);
    return resolved->seconds(8e9);
  };
  // 14 + 2 * 15 + 43 us between nodes; 28 of 31 steps are within them, of 5 us. 0.8 of 400 GB/s.
  CHECK(seconds(CollectiveKind::kAllGather, Algorithm::kRing) ==
        Approx(20e-6 + 28 * 48e-6 + 3 * 87e-6 + 8e9 * 31 / 32 / 320e9 + 8e9 / 32 / 700e9)
            .epsilon(1e-4));
  // All-reduces were not seen to wait: 56 steps of 5 us, 6 between nodes.
  CHECK(seconds(CollectiveKind::kAllReduce, Algorithm::kRing) ==
        Approx(20e-6 + 56 * 5e-6 + 6 * 87e-6 + 8e9 * 2 * 31 / 32 / 320e9 + 8e9 / 32 / 700e9));
  // One device of each node: three steps, and 0.35 of 50 GB/s, because eight groups send at once.
  CHECK(seconds(CollectiveKind::kAllGather, Algorithm::kRing, 1. / 8) ==
        Approx(20e-6 + 3 * 87e-6 + 8e9 * 3 / 4 / 17.5e9 + 8e9 / 4 / 700e9));
  // Tiny messages do not wait, by any protocol: 28 steps of 1 us, 3 of 2.7 + 15 us, 4 us.
  const auto small = CollectiveCost::resolve(
      {.calibration = round_numbers()},
      {.kind = CollectiveKind::kAllGather,
       .ranks = 32,
       .nodes = 4,
       .network = Network{NetworkKind::kEfa, ByteRate::gb_per_s(400), Seconds::us(15)}},
      {.algorithm = Algorithm::kRing, .protocol = Protocol::kLl});
  REQUIRE(small);
  CHECK(small->seconds(1) == Approx(32e-6 + 3 * 17.7e-6).epsilon(1e-4));
  // Those of 64 KiB, a 32nd of 2 MiB, wait half as long: 31 * 21.5 us, and LL's ramp and bytes.
  const double moved = small->seconds(2097152) - small->seconds(1);
  CHECK(moved > 31 * 21.5e-6);
  CHECK(moved < 31 * 21.5e-6 + 40e-6);
}

// A doubled size takes at most twice as long on 64 A100, where NCCL leaves LL too.
TEST_CASE("EFA: times are continuous where NCCL changes its protocol") {
  const Network efa{NetworkKind::kEfa, ByteRate::gb_per_s(50), Seconds::us(10)};
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                    CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
    const auto resolved = CollectiveCost::resolve(
        *calibration_for("a100_sxm4_80"), {.kind = kind, .ranks = 64, .nodes = 8, .network = efa});
    REQUIRE(resolved);
    for (double bytes = 1024; bytes < 3e7; bytes *= 2) {
      CAPTURE(to_string(kind), bytes);
      CHECK(resolved->seconds(2 * bytes) < 2.02 * resolved->seconds(bytes));
    }
  }
}

// 1 GiB on n ranks, k (n - 1) / n = 1.5 or 1.75. The host of L40S copies at 5.16 GB/s with 4 ranks and
// 1.49 with 8, another at 0.47 * 31.5 = 14.8, and PCIe of the fourth generation reaches 0.75 * 31.5 =
// 23.6 from device to device. The second is the median.
TEST_CASE("cards without rows have the median of three kinds of hosts") {
  const auto rate = [](const char* device, std::uint32_t ranks) {
    const auto resolved = CollectiveCost::resolve(
        *calibration_for(device), {.kind = CollectiveKind::kAllReduce, .ranks = ranks});
    REQUIRE(resolved);
    const Estimate<Seconds> time = resolved->at(Bytes::gib(1)).time;
    CHECK(time.provenance >= Provenance::kExtrapolated);
    const double wire = 1.073741824 * 2 * (ranks - 1) / ranks;
    return std::array{wire / time.value.s(), wire / time.high.s(), wire / time.low.s()};
  };
  for (const char* device : {"a10", "a40", "l4"})
    for (const std::uint32_t ranks : {4U, 8U}) {
      CAPTURE(device, ranks);
      CHECK(rate(device, ranks)[0] == Approx(14.81).epsilon(0.01));
      // Both other kinds of hosts are inside.
      CHECK(rate(device, ranks)[1] < (ranks == 4 ? 5.16 : 1.49));
      CHECK(rate(device, ranks)[2] > 23.64);
    }
  // Rows of L40S are of one host: its rate, with both other kinds inside.
  CHECK(rate("l40s", 8)[0] == Approx(1.49).epsilon(0.01));
  CHECK(rate("l40s", 8)[2] > 23.6);
  // Another number of ranks is between its neighbours.
  const double six = rate("l40s", 6)[0];
  CHECK(six < 5.16);
  CHECK(six > 1.49);
}

TEST_CASE("over TCP a ring gets from one flow of a cloud to the whole card") {
  // Two flows of 5 Gbit/s.
  const Estimate<ByteRate> rate = tcp_rate(ByteRate::gbit_per_s(80));
  CHECK(rate.value.gb_per_s() == Approx(1.25));
  CHECK(rate.low.gb_per_s() == Approx(0.625));
  CHECK(rate.high.gb_per_s() == Approx(10));
  // Each card has flows of its own; one that is slower than a flow is all that there is.
  CHECK(tcp_rate(ByteRate::gbit_per_s(80), 4).value.gb_per_s() == Approx(5));
  CHECK(tcp_rate(ByteRate::gbit_per_s(1)).low == tcp_rate(ByteRate::gbit_per_s(1)).high);
  const ByteRate endless = ByteRate::bytes_per_s(std::numeric_limits<double>::infinity());
  CHECK(tcp_rate(endless).value == endless);
  // Eight cards of 200 Gbit/s, with a plug-in or without.
  CHECK(tcp_rate(ByteRate::gbit_per_s(1600), 8).value.gb_per_s() == Approx(100));
  CHECK(tcp_rate(ByteRate::gbit_per_s(1600), 8).low.gb_per_s() == Approx(40));

  const Network network{NetworkKind::kTcp, ByteRate::gb_per_s(10), Seconds::us(2)};
  const auto resolved = CollectiveCost::resolve(
      {.calibration = round_numbers()},
      {.kind = CollectiveKind::kAllReduce, .ranks = 16, .nodes = 2, .network = network},
      {.algorithm = Algorithm::kRing, .protocol = Protocol::kSimple});
  REQUIRE(resolved);
  const Price p = resolved->at(Bytes::gb(8));
  CHECK(p.time.value.s() == Approx(8 * 1.875 / 1.25).epsilon(0.01));
  CHECK(p.time.high / p.time.value > 4);
}

TEST_CASE("several nodes: PAT with one device per node, all_to_all through the NICs") {
  const Network network{NetworkKind::kRoce, ByteRate::gb_per_s(40), Seconds::us(3)};
  const auto at = [&](CollectiveKind kind, std::uint32_t ranks, std::uint32_t nodes) {
    const auto resolved =
        CollectiveCost::resolve({.calibration = round_numbers()},
                                {.kind = kind, .ranks = ranks, .nodes = nodes, .network = network});
    REQUIRE(resolved);
    return resolved->at(Bytes::gb(1));
  };
  // 20 + 3 (14 + 2 * 3 + 10) us; 1 GB * 7/8 over 0.87 * 40 GB/s; copy of an eighth at 700 GB/s.
  const Price forced =
      CollectiveCost::resolve(
          {.calibration = round_numbers()},
          {.kind = CollectiveKind::kAllGather, .ranks = 8, .nodes = 8, .network = network},
          {.algorithm = Algorithm::kPat})
          ->at(Bytes::gb(1));
  CHECK(forced.time.value.s() == Approx(110e-6 + 0.875 / 34.8 + 0.125 / 700));
  // 16 ranks on 2 nodes: 8 send half of 1 GB through 34.8 GB/s; 30 + 15 us, and 3 + 14 for the NIC.
  const Price exchanged = at(CollectiveKind::kAllToAll, 16, 2);
  CHECK(exchanged.protocol == Protocol::kSimple);
  CHECK(exchanged.time.value.s() == Approx(62e-6 + 4.0 / 34.8).epsilon(1e-5));
}

TEST_CASE("several nodes: each message of an all_to_all occupies the NIC") {
  // 512 A100 on 64 nodes, eight NICs of 200 Gbit/s each.
  Group group{.kind = CollectiveKind::kAllToAll, .ranks = 512, .nodes = 64};
  group.network = Network{NetworkKind::kInfiniband, ByteRate::gb_per_s(200), Seconds::us(3), 8};
  const Calibrated a100 = *calibration_for("a100_sxm4_80");
  const auto price = [&](Bytes size, std::optional<Algorithm> algorithm = {}) {
    return CollectiveCost::resolve(a100, group, {.algorithm = algorithm})->at(size);
  };
  const Price free = price(Bytes::mib(1));
  group.network->message_cost = Seconds::us(13.7);
  // A rank sends 504 messages to other nodes by the NIC of its own.
  CHECK((price(Bytes::mib(1)).time.value - free.time.value).us() == Approx(504 * 13.7));
  // NCCL posts the messages of both at once.
  CHECK(price(Bytes::mib(1), Algorithm::kLinear).time.value == price(Bytes::mib(1)).time.value);
  CHECK(price(Bytes::mib(1), Algorithm::kLinear).algorithm == Algorithm::kLinear);
  // In two dimensions it sends 63 of eight times the size, and all bytes go through NVLink too.
  CHECK(price(Bytes::mib(1), Algorithm::kTwoDimensional).time.value <
        price(Bytes::mib(1)).time.value / 5);
  CHECK(price(Bytes::gib(8), Algorithm::kTwoDimensional).time.value >
        price(Bytes::gib(8)).time.value);
  // What a message costs is known to a factor of three.
  const Estimate<Seconds> time = price(Bytes::mib(1)).time;
  CHECK(time.high.us() > 3 * 504 * 13.7);
  CHECK(time.low.us() < 504 * 13.7 / 3 + free.time.value.us());
}

TEST_CASE("the hybrid cube mesh: rings by counting, not by the number of ranks") {
  // Edge-disjoint directed rings on the links of a DGX-1V; measured bus bandwidth of 2, 4, 6, 8
  // ranks is 22.6, 85.3, 45.8, 134.9 GB/s: 1, 4, 2, 6 times 22.5.
  const std::uint32_t expected[] = {1, 2, 4, 0, 2, 4, 6};
  for (std::uint32_t n = 2; n <= 8; ++n) CHECK(cube_mesh_rings(n) == expected[n - 2]);
  const Calibrated v100 = *calibration_for("v100_sxm2_16");
  const auto price = [&](std::uint32_t n) {
    return CollectiveCost::resolve(v100, {.kind = CollectiveKind::kAllReduce, .ranks = n})
        ->at(Bytes::mib(512));
  };
  const double measured[] = {22.6, 85.3, 45.8, 134.9};
  for (std::uint32_t i = 0; i < 4; ++i) {
    const double n = 2.0 * (i + 1);
    const double bus = 512 * 1.048576e-3 * 2 * (n - 1) / n / price(2 * (i + 1)).time.value.s();
    CHECK(bus == Approx(measured[i]).epsilon(0.07));
  }
  // Five: no ring of NVLinks, so nearly anything may happen.
  CHECK(price(5).time.high / price(5).time.low > 4);
  CHECK(price(5).time.provenance == Provenance::kExtrapolated);
}

// Two p3dn.24xlarge over EFA of 100 Gbit/s: nccl-tests took 151 us for 1 KiB and 59.0 ms for 256 MiB. The
// ring of 16 ranks takes 28 steps within nodes, and two between them; the NIC decides on large buffers:
// 2 · 15/16 · 256 MiB / (0.8 · 12.5 GB/s) = 50.3 ms.
TEST_CASE("rings of V100 leave their nodes once") {
  const Network efa{NetworkKind::kEfa, ByteRate::gb_per_s(12.5), Seconds::us(20)};
  const Result<CollectiveCost> cost = CollectiveCost::resolve(
      *calibration_for("v100_sxm2_32"),
      {.kind = CollectiveKind::kAllReduce, .ranks = 16, .nodes = 2, .network = efa});
  REQUIRE(cost);
  const Price small = cost->at(Bytes::kib(1)), large = cost->at(Bytes::mib(256));
  CHECK(small.time.value.us() == Approx(151).epsilon(0.1));
  CHECK(large.time.value.ms() == Approx(50.3).epsilon(0.01));
  for (const auto& [price, measured] : {std::pair{small, 151e-6}, {large, 59.0e-3}})
    CHECK((price.time.low.s() < measured && measured < price.time.high.s()));
  CHECK(large.time.provenance >= Provenance::kExtrapolated);
}

TEST_CASE("without measurements intervals widen and provenance degrades") {
  const auto relative = [](const Price& p) { return p.time.high / p.time.value - 1; };
  const Price inside = cost(CollectiveKind::kAllReduce, 8).at(Bytes::mib(1));
  CHECK(inside.time.provenance == Provenance::kInterpolated);
  CHECK(relative(inside) == Approx(0.1));
  CHECK(inside.time.low * 1.1 / inside.time.value == Approx(1));
  const Price between = cost(CollectiveKind::kAllReduce, 6).at(Bytes::mib(64));
  CHECK(relative(between) > relative(inside));
  const Price beyond = cost(CollectiveKind::kAllReduce, 16).at(Bytes::mib(64));
  CHECK(beyond.time.provenance == Provenance::kExtrapolated);
  CHECK(relative(beyond) > relative(between));
  CHECK(cost(CollectiveKind::kAllReduce, 8).at(Bytes::gib(8)).time.provenance ==
        Provenance::kExtrapolated);
  CHECK(cost(CollectiveKind::kBroadcast, 8).at(Bytes::mib(1)).time.provenance ==
        Provenance::kExtrapolated);
  CHECK(cost(CollectiveKind::kReduceScatter, 8).at(Bytes::mib(1)).time.provenance ==
        Provenance::kExtrapolated);
}

// Machines of one kind differ: those of the shipped calibrations are some of them, and one's own
// calibration is that of the machine itself.
TEST_CASE("other machines than the measured one are mostly slower") {
  Calibrated h100 = *calibration_for("h100_sxm5_80");
  const auto at_64_kib = [&] {
    return CollectiveCost::resolve(h100, {.kind = CollectiveKind::kAllReduce, .ranks = 8})
        ->at(Bytes::kib(64))
        .time;
  };
  const Estimate<Seconds> other = at_64_kib();
  h100.machines = {};
  const Estimate<Seconds> own = at_64_kib();
  CHECK(other.value == own.value);
  CHECK(other.high / other.value > 2.5);  // Azure's virtual machines: 2.4 times
  CHECK(other.low / other.value > 0.7);
  CHECK(own.high / own.value < 1.2);
}

// Four A100, pairs with bridges: half of the start-up of an all_reduce, and its rate.
TEST_CASE("halves of an all_reduce over bridges come from it") {
  const Calibrated a100 = *calibration_for("a100_pcie_80");
  const auto seconds = [&](CollectiveKind kind, double bytes) {
    return CollectiveCost::resolve(a100, {.kind = kind, .ranks = 4})->seconds(bytes);
  };
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter})
    for (const double bytes : {4096.0, 33554432.0})
      CHECK(seconds(kind, bytes) == Approx(seconds(CollectiveKind::kAllReduce, bytes) / 2));
}

TEST_CASE("cases without data are refused with the reason") {
  const auto refused = [](const char* device, const Group& group, const NcclOverrides& o = {}) {
    const auto resolved = CollectiveCost::resolve(*calibration_for(device), group, o);
    REQUIRE_FALSE(resolved);
    return to_string(resolved.error());
  };
  CHECK(
      refused("l40s", {.kind = CollectiveKind::kBroadcast, .ranks = 4}).find("through the host") !=
      std::string::npos);
  CHECK(refused("a100_pcie_80", {.kind = CollectiveKind::kAllToAll, .ranks = 4}).find("bridges") !=
        std::string::npos);
  CHECK(refused("h100_sxm5_80", {.kind = CollectiveKind::kAllReduce, .ranks = 16, .nodes = 2})
            .find("need a network") != std::string::npos);
  CHECK(refused("h100_sxm5_80", {.kind = CollectiveKind::kAllReduce, .ranks = 9, .nodes = 2})
            .find("evenly") != std::string::npos);
  CHECK(refused("a100_sxm4_80", {.kind = CollectiveKind::kAllReduce, .ranks = 8},
                {.algorithm = Algorithm::kNvls})
            .find("does not support this combination") != std::string::npos);
  CHECK(refused("h100_sxm5_80", {.kind = CollectiveKind::kAllToAll, .ranks = 8},
                {.protocol = Protocol::kLl})
            .find("does not support a choice") != std::string::npos);
  CHECK(
      refused("v100_sxm2_16", {.kind = CollectiveKind::kAllReduce, .ranks = 9}).find("8 devices") !=
      std::string::npos);
}

TEST_CASE(
    "random inputs: positive, finite, inside their interval, more bytes never cost less of one "
    "protocol") {
  const std::uint64_t seed = 4711;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  const auto& shipped = shipped_calibrations();
  std::size_t priced = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const Calibration& c = shipped[random() % shipped.size()];
    Group group{.kind = static_cast<CollectiveKind>(random() % 8),
                .ranks = static_cast<std::uint32_t>(2 + random() % 15)};
    if (random() % 3 == 0) {
      group.nodes = static_cast<std::uint32_t>(2 + random() % 6);
      group.ranks *= group.nodes;
      group.network = Network{static_cast<NetworkKind>(random() % kNetworkNames.size()),
                              ByteRate::gb_per_s(1 + static_cast<double>(random() % 800)),
                              Seconds::us(static_cast<double>(random() % 50))};
    }
    const auto resolved = CollectiveCost::resolve({.calibration = c}, group);
    if (!resolved) continue;
    ++priced;
    std::optional<Price> last;
    for (double bytes = 1 + static_cast<double>(random() % 4096); bytes < 1e12; bytes *= 3.7) {
      const Price p = resolved->at(Bytes::b(bytes));
      INFO(c.device << " " << to_string(group.kind) << " " << group.ranks << " " << bytes);
      REQUIRE(std::isfinite(p.time.value.s()));
      REQUIRE(p.time.low > Seconds::s(0));
      REQUIRE(p.time.low <= p.time.value);
      REQUIRE(p.time.value <= p.time.high);
      if (last && last->protocol == p.protocol && last->algorithm == p.algorithm)
        REQUIRE(p.time.value >= last->time.value);
      last = p;
    }
  }
  CHECK(priced > 1000);
}

TEST_CASE("the root of the size counts to the largest measured size, from there the rate stays") {
  // all_reduce of S on 2 ranks sends S: at 350 GB/s, 20 us of fill:
  // 64 MiB: 191.74 us + sqrt(20 us x 191.74 us) = 61.93 us.
  Calibration c = round_numbers();
  c.switched->simple = {.rate = ByteRate::gb_per_s(350), .fill = Seconds::us(20)};
  c.fitted.envelope = {.from = Bytes::kib(1), .to = Bytes::mib(64)};
  const auto cost =
      CollectiveCost::resolve({.calibration = c}, {.kind = CollectiveKind::kAllReduce, .ranks = 2});
  REQUIRE(cost);
  CHECK(cost->seconds(67108864) == Approx(191.74e-6 + 61.93e-6).epsilon(1e-4));
  CHECK(cost->seconds(4 * 67108864.0) == Approx(4 * cost->seconds(67108864)));
}

}  // namespace
}  // namespace rehearse::comm
