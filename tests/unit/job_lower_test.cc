// Jobs on clusters, worked by hand.
#include <utility>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "models/comm/transfer.h"
#include "models/job/calibrated.h"
#include "models/job/lower.h"
#include "models/job/program_ops.h"
#include "models/job/roofline.h"
#include "profiler/ingest/chakra_job.h"
#include "profiler/ingest/chakra_program.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"
#include "sim/program/rank_builder.h"
#include "tests/support/chakra_writer.h"
#include "tests/support/data.h"

namespace rehearse::job {
namespace {

using program::Program;
using program::ProgramOp;
using program::Task;
using test::ChakraOp;

// Every device has a port of 100 GB/s in each direction; 2 us from end to end.
cluster::Cluster star(std::uint32_t devices) {
  auto cluster = cluster::parse_cluster(
      fmt::format("cluster: {{device: h100_sxm5_80, devices_per_node: {}, nodes: 1, intra_node: "
                  "{{kind: nvswitch, rate: 100 GB/s, latency: 2 us}}}}\n",
                  devices),
      "star");
  REQUIRE(cluster);
  return *cluster;
}

Program job_of(const std::vector<std::vector<ChakraOp>>& ranks, const char* groups = "{}") {
  std::vector<std::string> files;
  for (const auto& ops : ranks) files.push_back(test::chakra_file(ops));
  auto job = ingest::read_chakra_job({.prefix = test::write_chakra(files),
                                      .groups = *ingest::parse_comm_groups(groups, "groups")});
  INFO((job ? "" : to_string(job.error())));
  REQUIRE(job);
  return std::move(job->job);
}

struct Ran {
  LoweredJob lowered;
  graph::Timeline timeline;
  double us() const { return timeline.makespan().seconds().us(); }
  double end_us(std::uint32_t rank, std::uint32_t op) const {
    return timeline[OpId(lowered.first_op[rank] + op)].end.seconds().us();
  }
};

Ran run(const Program& job, const cluster::Cluster& cluster, const Rules& rules = {}) {
  Result<LoweredJob> lowered = lower(job, cluster, rules);
  INFO((lowered ? "" : to_string(lowered.error())));
  REQUIRE(lowered);
  Result<graph::Timeline> timeline = engine::run(lowered->graph);
  INFO((timeline ? "" : to_string(timeline.error())));
  REQUIRE(timeline);
  return {std::move(*lowered), std::move(*timeline)};
}

std::string error_of(const Program& job, const cluster::Cluster& cluster) {
  const Result<LoweredJob> lowered = lower(job, cluster, {});
  return lowered ? "no error" : to_string(lowered.error());
}

ChakraOp compute(std::uint64_t id, std::uint64_t us, std::vector<std::uint64_t> after = {}) {
  return {id, "x", test::kCompute, us, std::move(after)};
}
ChakraOp collective(std::uint64_t id, std::int64_t type, std::int64_t bytes,
                    std::vector<std::uint64_t> after = {}, std::string group = {}) {
  return {id,
          "c",
          test::kCollective,
          0,
          std::move(after),
          {{"comm_type", type}, {"comm_size", bytes}},
          std::move(group)};
}
ChakraOp send(std::uint64_t id, std::int64_t to, std::int64_t bytes,
              std::vector<std::uint64_t> after = {}) {
  return {id, "s", test::kSend, 0, std::move(after), {{"comm_dst", to}, {"comm_size", bytes}}};
}
ChakraOp receive(std::uint64_t id, std::int64_t from, std::int64_t bytes,
                 std::vector<std::uint64_t> after = {}) {
  return {id, "r", test::kReceive, 0, std::move(after), {{"comm_src", from}, {"comm_size", bytes}}};
}

TEST_CASE("two ranks: the later one decides when their all-reduce begins") {
  // Rank 0 computes 30 us, rank 1 50 us; then 4 MB are summed: 2 steps of 2 us + 2 MB / 100 GB/s
  // = 22 us, so 44 us; then 10 us. 50 + 44 + 10 = 104 us.
  const Program job =
      job_of({{compute(0, 30), collective(1, 0, 4'000'000, {0}), compute(2, 10, {1})},
              {compute(0, 50), collective(1, 0, 4'000'000, {0}), compute(2, 10, {1})}});
  for (const Fidelity fidelity : {Fidelity::kClosed, Fidelity::kMessage}) {
    const Ran ran = run(job, star(2), {.fidelity = fidelity});
    CHECK(ran.us() == Approx(104));
    CHECK(ran.end_us(0, 1) == Approx(94));
    CHECK(ran.lowered.messages == 4);
    CHECK(ran.lowered.bytes_sent == Approx(8e6));
    const std::vector<RankRange> parts = occupancy(job, ran.lowered, ran.timeline);
    REQUIRE(parts.size() == 2);
    CHECK(parts[0].occupancy.compute.us() == Approx(40));
    CHECK(parts[0].occupancy.bubble.us() == Approx(20));  // for rank 1
    CHECK(parts[0].occupancy.exposed_communication.us() == Approx(44));
    CHECK(parts[1].occupancy.exposed_communication.us() == Approx(44));
    CHECK(parts[0].occupancy.idle.us() == Approx(0).margin(1e-6));
    CHECK(mean(parts).bubble.us() == Approx(10));
    // The path leads through the rank that arrives last, and ends on the first of both.
    const program::PathParts path = path_parts(job, ran.lowered, ran.timeline, {}, {});
    CHECK(path.total() == ran.timeline.makespan());
    CHECK(path.ranks == 2);
    Seconds communication = Seconds::s(0);
    for (const program::PathPart& part : path.parts)
      if (part.kind == program::PartKind::kCommunication) communication += part.time.seconds();
    CHECK(communication.us() == Approx(44));
    CHECK(time_of(ran.lowered.collectives[0], ran.timeline).us() == Approx(44));
  }
}

TEST_CASE("four ranks: two groups concurrently, one collective after another within a group") {
  // Per rank: an all-reduce of 2 MB in a pair (2 (2 + 10) = 24 us) and one of 8 MB among all four
  // (6 (2 + 20) = 132 us), both ready at 0, and a second one of the pair. By closed form the groups
  // do not hinder each other: 24, 48 and 132 us.
  const std::vector<ChakraOp> ops = {collective(0, 0, 2'000'000, {}, "pair"),
                                     collective(1, 0, 8'000'000, {}, "all"),
                                     collective(2, 0, 2'000'000, {}, "pair")};
  const Program job =
      job_of({ops, ops, ops, ops}, R"({"pair": [[0, 1], [2, 3]], "all": [0, 1, 2, 3]})");
  const Ran closed = run(job, star(4), {.fidelity = Fidelity::kClosed});
  CHECK(closed.end_us(0, 0) == Approx(24));
  CHECK(closed.end_us(0, 2) == Approx(48));
  CHECK(closed.end_us(3, 1) == Approx(132));
  // As messages they share the ports of the ranks.
  const Ran messages = run(job, star(4));
  CHECK(messages.end_us(0, 0) > 24);
  CHECK(messages.us() > 132);
  // One stream: 24 + 132 + 24.
  const Ran one = run(job, star(4), {.fidelity = Fidelity::kClosed, .one_stream = true});
  CHECK(one.us() == Approx(180));
  CHECK(run(job, star(4), {.one_stream = true}).us() == Approx(180));
}

TEST_CASE("parts and overhead: every part pays all latencies") {
  // 8 MB on 4 ranks in 4 parts: 4 · 6 messages of 2 us + 1 us + 0.5 MB / 100 GB/s = 8 us: 192 us.
  const std::vector<ChakraOp> ops = {collective(0, 0, 8'000'000)};
  const Program job = job_of({ops, ops, ops, ops});
  const Rules rules{.one_stream = true, .parts = 4, .message_overhead = Seconds::us(1)};
  CHECK(run(job, star(4), rules).us() == Approx(192));
  Rules closed = rules;
  closed.fidelity = Fidelity::kClosed;
  CHECK(run(job, star(4), closed).us() == Approx(192));
  const auto folded = fold(job, star(4), closed);
  REQUIRE(folded);
  REQUIRE(*folded);
  CHECK(engine::run((*folded)->graph)->makespan().seconds().us() == Approx(192));
}

TEST_CASE("a send goes at once, a receive waits, streams of compute are one op at a time") {
  // Rank 0: 10 us, sends 5 MB: 2 + 50 us, at 62 us. Rank 1: receives it and computes 8 us during an
  // op of 65 us that holds its compute until 65: 73 us.
  const Program job = job_of({{compute(0, 10), send(1, 1, 5'000'000, {0})},
                              {compute(0, 65), receive(1, 0, 5'000'000), compute(2, 8, {1})}});
  for (const Fidelity fidelity : {Fidelity::kClosed, Fidelity::kMessage}) {
    const Ran ran = run(job, star(2), {.fidelity = fidelity});
    CHECK(ran.end_us(1, 1) == Approx(62));
    CHECK(ran.us() == Approx(73));
    CHECK(ran.lowered.bytes_sent == 5e6);
  }
  // Two sends that go together share a port, by closed form too: 2 us + 2 · 50 us each.
  const Program two = job_of({{send(0, 1, 5'000'000), send(1, 2, 5'000'000)},
                              {receive(0, 0, 5'000'000)},
                              {receive(0, 0, 5'000'000)}});
  CHECK(run(two, star(3)).us() == Approx(102));
  CHECK(run(two, star(3), {.fidelity = Fidelity::kClosed}).us() == Approx(102));
  // Folded, the two receivers are one.
  const auto folded = fold(two, star(3), {.fidelity = Fidelity::kClosed});
  REQUIRE(folded);
  REQUIRE(*folded);
  CHECK(engine::run((*folded)->graph)->makespan().seconds().us() == Approx(102));
}

TEST_CASE("ranks that a service orders alike fold, others do not") {
  // Both ranks compute 10 us after a service's 5 us; one rank waiting for less is not like the other.
  Program job = job_of({{compute(0, 10)}, {compute(0, 10)}});
  job.programs.resize(1);
  job.program_of = {0, 0};
  program::RankBuilder service;
  for (const double us : {5.0, 1.0})
    service.add(program::ProgramOp{.name = job.names.intern("wait"),
                                   .task = program::Task::kDelay,
                                   .duration = Picoseconds::from(Seconds::us(us)),
                                   .stream = program::kNoStream});
  job.services.push_back(std::move(service).build());
  job.orders = {{{2, 0}, {0, 0}}, {{2, 0}, {1, 0}}};
  const auto folded = fold(job, star(2), {.fidelity = Fidelity::kClosed});
  REQUIRE(folded);
  REQUIRE(*folded);
  CHECK((*folded)->ranks.size() == 1);
  CHECK(engine::run((*folded)->graph)->makespan().seconds().us() == Approx(15));
  job.orders[1].before.op = 1;
  CHECK_FALSE(*fold(job, star(2), {.fidelity = Fidelity::kClosed}));
}

TEST_CASE("other algorithms, and kinds that they do not support") {
  const std::vector<ChakraOp> ops = {collective(0, 0, 8'000'000), collective(1, 6, 4'000'000, {0})};
  const Program job = job_of({ops, ops, ops, ops});
  // Halving and doubling: 4 messages of 2 us and 4, 2, 2, 4 MB: 8 + 120 us; then an all-to-all of 3
  // messages of 1 MB at once: 2 + 3 · 10 us.
  const Rules rules{.algorithms = wherever_possible(Algorithm::kHalvingDoubling)};
  CHECK(run(job, star(4), rules).us() == Approx(128 + 32));
  CHECK(not_done_by(job, Algorithm::kHalvingDoubling) ==
        std::vector<CollectiveKind>{CollectiveKind::kAllToAll});
  CHECK(not_done_by(job, Algorithm::kLinear) ==
        std::vector<CollectiveKind>{CollectiveKind::kAllReduce});
}

TEST_CASE("ops without a duration take the roofline of the device") {
  Program job =
      job_of({{{0, "flops", test::kCompute, 0, {}, {{"num_ops", 3'000'000'000}}},
               {1, "bytes", test::kCompute, 0, {}, {{"num_ops", 1000}, {"tensor_size", 8'000'000}}},
               {2, "load", test::kLoad, 0, {}, {{"tensor_size", 4'000'000}}},
               compute(3, 5)}});
  CHECK(lacks_durations(job));
  CHECK(error_of(job, star(2)) ==
        "op 'flops' of rank 0 has no duration; a device of the catalog, whose rates give one");
  // 3 GFLOP at 1 TFLOP/s: 3 ms; 8 MB at 2 TB/s: 4 us; 4 MB: 2 us; 5 us were given.
  const double share =
      set_durations(job, {.peak = FlopRate::tflop_per_s(1), .memory = ByteRate::gb_per_s(2000)});
  const auto& ops = job.programs[0].ops;
  CHECK(ops[0].duration->seconds().us() == Approx(3000));
  CHECK(ops[1].duration->seconds().us() == Approx(4));
  CHECK(ops[2].duration->seconds().us() == Approx(2));
  CHECK(share == Approx(3006.0 / 3011));
  CHECK_FALSE(lacks_durations(job));
}

TEST_CASE("computing that overlaps a collective takes longer, in every form") {
  // 4 MB among two ranks take 44 us from the beginning. Kernels of 30 and 60 us during it at
  // 1 / 1.25 of their speed: the first ends at 37.5 us; 5.2 us of the second are done at 44 us, the
  // other 54.8 us by 98.8 us.
  const std::vector<ChakraOp> ops = {collective(0, 0, 4'000'000), compute(1, 30),
                                     compute(2, 60, {1})};
  const Program job = job_of({ops, ops});
  for (const Fidelity fidelity : {Fidelity::kClosed, Fidelity::kMessage}) {
    const Ran ran = run(job, star(2), {.fidelity = fidelity, .slowdown = 1.25});
    CHECK(ran.end_us(0, 0) == Approx(44));
    CHECK(ran.end_us(1, 1) == Approx(37.5));
    CHECK(ran.end_us(1, 2) == Approx(98.8));
  }
  const auto folded = fold(job, star(2), {.fidelity = Fidelity::kClosed, .slowdown = 1.25});
  REQUIRE(folded);
  REQUIRE(*folded);
  CHECK(engine::run((*folded)->graph)->makespan().seconds().us() == Approx(98.8));
}

TEST_CASE("one graph takes the prices at each end of their intervals") {
  // On links of a datasheet a time is 0.8 to 1.5 times its value (roofline.h). 1 MB is sent in
  // 12 us, then 4 MB among two ranks take 44 us: 56 us. A kernel of 200 us runs all the while, and
  // loses a fifth of the collective's time: 8.8 us.
  const Program apart =
      job_of({{send(0, 1, 1'000'000), collective(1, 0, 4'000'000, {0})},
              {receive(0, 0, 1'000'000), collective(1, 0, 4'000'000, {0}), compute(2, 200)}});
  const Rules rules{.fidelity = Fidelity::kClosed, .slowdown = 1.25};
  const Ran ran = run(apart, star(2), rules);
  // Folded, the kernels of the test above: 30 us end at 37.5 us at the slower speed, or after
  // 35.2 us of it (28.16 done) at 37.04; then 60 us, slowed until 35.2, 44 or 66 us.
  const std::vector<ChakraOp> ops = {collective(0, 0, 4'000'000), compute(1, 30),
                                     compute(2, 60, {1})};
  const auto folded = fold(job_of({ops, ops}), star(2), rules);
  REQUIRE(folded);
  REQUIRE(*folded);
  struct End {
    Bound bound;
    double collective, kernel, folded;
  };
  for (const End& end : {End{Bound::kLow, 44.8, 207.04, 97.04}, End{Bound::kValue, 56, 208.8, 98.8},
                         End{Bound::kHigh, 84, 213.2, 103.2}}) {
    const Result<graph::Graph> graph = at_bound(ran.lowered, end.bound);
    REQUIRE(graph);
    const auto timeline = engine::run(*graph);
    REQUIRE(timeline);
    CHECK((*timeline)[ran.lowered.op(0, 1)].end.seconds().us() == Approx(end.collective));
    CHECK(timeline->makespan().seconds().us() == Approx(end.kernel));
    const Result<graph::Graph> of_folded = at_bound(**folded, end.bound);
    REQUIRE(of_folded);
    CHECK(engine::run(*of_folded)->makespan().seconds().us() == Approx(end.folded));
  }
}

TEST_CASE("division: two collectives on the same links") {
  // Long: 4 MB, short: 2 MB, two messages each of 2 us and 20 or 10 us, among the same two ranks.
  const std::vector<ChakraOp> ops = {collective(0, 0, 4'000'000, {}, "long"),
                                     collective(1, 0, 2'000'000, {}, "short")};
  const Program job = job_of({ops, ops}, R"({"long": [0, 1], "short": [0, 1]})");
  const auto ends = [&](const LoweredJob& lowered, engine::Division division) {
    const auto timeline = engine::run(lowered.graph, {.division = division});
    REQUIRE(timeline);
    return std::pair((*timeline)[OpId(0)].end.seconds().us(),
                     (*timeline)[OpId(1)].end.seconds().us());
  };
  const auto plain = lower(job, star(2), {});
  const auto grouped = lower(job, star(2), {.grouped = true});
  REQUIRE(plain);
  REQUIRE(grouped);
  // Halves from 2 us: short 22; alone to 24, halves again: long 40, short alone 40 to 42; long 62.
  const auto fair = ends(*plain, engine::Division::kFair);
  CHECK(fair.first == Approx(62));
  CHECK(fair.second == Approx(42));
  // Short first: 2 to 12, long 12 to 14; short 14 to 24, long 24 to 42 and 44 to 64.
  const auto coflow = ends(*grouped, engine::Division::kCoflow);
  CHECK(coflow.first == Approx(64));
  CHECK(coflow.second == Approx(24));
  // In order of leaving: long 0 to 20, short 20 to 30, long 30 to 50, short 50 to 60, and 2 us.
  const auto first_come = ends(*plain, engine::Division::kFirstCome);
  CHECK(first_come.first == Approx(52));
  CHECK(first_come.second == Approx(62));
}

TEST_CASE("first come: sends are served in turn, like messages") {
  // A send of 5 MB at 0, an all-reduce of 2 MB at 1 us. On the way from 0 to 1: 0 to 50 us, then
  // the first message until 60; the second leaves when that has come, at 62, and takes 12 us.
  const Program job =
      job_of({{send(0, 1, 5'000'000), collective(1, 0, 2'000'000, {2}), compute(2, 1)},
              {receive(0, 0, 5'000'000), collective(1, 0, 2'000'000)}});
  const auto lowered = lower(job, star(2), {});
  REQUIRE(lowered);
  const auto timeline = engine::run(lowered->graph, {.division = engine::Division::kFirstCome});
  REQUIRE(timeline);
  CHECK((*timeline)[OpId(0)].end.seconds().us() == Approx(52));
  CHECK(timeline->makespan().seconds().us() == Approx(74));
}

TEST_CASE("closed form: calibrated if the cluster is like the measured one, else its links") {
  // One all-reduce of 64 MiB; per rank, in pieces of the calibration of H100 with NVSwitch.
  const std::vector<ChakraOp> ops = {collective(0, 0, 64 << 20)};
  const Program job = job_of(std::vector<std::vector<ChakraOp>>(8, ops));
  const auto calibrated = comm::calibration_for("h100_sxm5_80");
  REQUIRE(calibrated);
  const auto cost =
      comm::CollectiveCost::resolve(*calibrated, {.kind = CollectiveKind::kAllReduce, .ranks = 8});
  REQUIRE(cost);
  const comm::Price price = cost->at(Bytes::mib(64));
  const auto dgx = cluster::parse_cluster(
      "cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 1}\n", "dgx");
  REQUIRE(dgx);
  const std::pair<Bound, Seconds> bounds[] = {{Bound::kLow, price.time.low},
                                              {Bound::kValue, price.time.value},
                                              {Bound::kHigh, price.time.high}};
  const Ran ran = run(job, *dgx, {.fidelity = Fidelity::kClosed, .calibrated = true});
  CHECK(ran.us() == Approx(price.time.value.us()));
  CHECK(ran.lowered.provenance == price.time.provenance);
  REQUIRE(ran.lowered.pricings.size() == 1);
  CHECK(ran.lowered.pricings[0].calibrated);
  for (const auto& [bound, time] : bounds) {
    const Result<graph::Graph> graph = at_bound(ran.lowered, bound);
    REQUIRE(graph);
    CHECK(engine::run(*graph)->makespan().seconds().us() == Approx(time.us()));
  }
  // Rates that were given are those of another link: 14 steps of 2 us + 8 MiB / 100 GB/s.
  const Ran links = run(job, star(8), {.fidelity = Fidelity::kClosed, .calibrated = true});
  CHECK(links.us() == Approx(14 * (2 + 8 * 1048576 / 100e9 * 1e6)));
  CHECK(links.lowered.provenance == Provenance::kDatasheet);
  REQUIRE(links.lowered.pricings.size() == 1);
  CHECK_FALSE(links.lowered.pricings[0].calibrated);
  CHECK(links.lowered.pricings[0].why == "link type 'intra_node' is not the measured one");
  const auto dgx1 = cluster::parse_cluster(
      "cluster: {device: v100_sxm2_16, devices_per_node: 8, nodes: 1}\n", "dgx1");
  REQUIRE(dgx1);  // some of its pairs have two links
  CHECK(run(job, *dgx1, {.fidelity = Fidelity::kClosed, .calibrated = true})
            .lowered.pricings[0]
            .calibrated);
}

TEST_CASE(
    "closed form: a group has the share of its node's NICs that its ranks have of the devices") {
  // Four nodes with eight NICs of 50 GB/s nominal. One rank of each node: 50 GB/s; all: 400.
  const auto dgx = cluster::load_cluster(test::source_file("examples/clusters/dgx_h100_x4.yaml"));
  REQUIRE(dgx);
  CalibratedCosts costs(*dgx);
  const auto of = [&](std::uint32_t step) {
    std::vector<DeviceId> devices;
    for (std::uint32_t d = 0; d < 32; d += step) devices.push_back(DeviceId(d));
    return *costs.of(CollectiveKind::kAllReduce, devices);
  };
  CHECK(of(8)->source.find("4 nodes over infiniband of 50.0 GB/s") != std::string::npos);
  CHECK(of(1)->source.find("4 nodes over infiniband of 400 GB/s") != std::string::npos);
  CHECK(of(8) == of(8));
  // 1 GiB through one NIC: 6 / 4 of it at 0.9 x 50 GB/s, and little else (latency, filling pipes).
  const double wire_ms = 1.5 * 1073741824 / 45e9 * 1e3;
  const double priced_ms = of(8)->cost.at(Bytes::gib(1)).time.value.ms();
  CHECK(priced_ms > wire_ms);
  CHECK(priced_ms < wire_ms * 1.05);
}

TEST_CASE("the interval widens with kernels that came from datasheets") {
  const program::Occupancy usage{.compute = Seconds::us(60),
                                 .exposed_communication = Seconds::us(40)};
  const Estimate<Seconds> step{Seconds::us(100), Seconds::us(92), Seconds::us(120),
                               Provenance::kExtrapolated};
  const auto modelled = with_slow_kernels(step, usage, 1);
  CHECK(modelled.low.us() == Approx(92));
  CHECK(modelled.high.us() == Approx(120 + 60 * (1 / 0.3 - 1)));
  CHECK(modelled.provenance == Provenance::kDatasheet);
  CHECK(with_slow_kernels(step, usage, 0).provenance == Provenance::kExtrapolated);
}

TEST_CASE("inconsistent ranks are one line") {
  const cluster::Cluster c = star(2);
  CHECK(error_of(job_of({{compute(0, 1)}, {compute(0, 1)}, {compute(0, 1)}}), c) ==
        "3 ranks on a cluster of 2 devices; at least one device per rank");
  CHECK(
      error_of(job_of({{collective(0, 0, 64)}, {collective(0, 7, 64)}}), c) ==
      "process group 'all': its collective 0 is all_reduce of 64 B on rank 0 and reduce_scatter of "
      "64 B on rank 1; members that issue the same collectives in the same order");
  CHECK(error_of(job_of({{collective(0, 0, 64)}, {collective(0, 0, 128)}}), c)
            .find("all_reduce of 64 B on rank 0 and all_reduce of 128 B on rank 1") !=
        std::string::npos);
  CHECK(error_of(job_of({{collective(0, 0, 64), collective(1, 0, 64)}, {collective(0, 0, 64)}}), c)
            .starts_with("process group 'all': rank 1 never issues its collective 1, all_reduce"));
  CHECK(error_of(job_of({{send(0, 1, 64)}, {compute(0, 1)}}), c) ==
        "1 messages from rank 0 to rank 1 with tag 0, and 0 are received; a receive for every "
        "send");
  CHECK(error_of(job_of({{compute(0, 1)}, {receive(0, 0, 64)}}), c) ==
        "1 receives of messages from rank 0 to rank 1 with tag 0, which are never sent; a send for "
        "every receive");
  CHECK(error_of(job_of({{send(0, 1, 64)}, {receive(0, 0, 65)}}), c) ==
        "message 0 from rank 0 to rank 1 with tag 0 has 64 B and its receive 65 B");
  CHECK(error_of(job_of({{send(0, 5, 64)}, {compute(0, 1)}}), c) ==
        "op 's' of rank 0 names rank 5 as its peer; another of the 2 ranks");
  // Each waits for what the other sends only afterwards.
  const std::string cycle = error_of(
      job_of({{receive(0, 1, 64), send(1, 1, 64, {0})}, {receive(0, 0, 64), send(1, 0, 64, {0})}}),
      c);
  CHECK(cycle.find("after itself") != std::string::npos);
}

TEST_CASE("an all_to_all whose messages would fill the memory is refused") {
  Program job = job_of({{collective(0, 6, 64)}});
  job.program_of.assign(5120, 0);
  job.groups_of.assign(5120, {0});
  job.groups[0].members.clear();
  for (std::uint32_t r = 0; r < 5120; ++r) job.groups[0].members.push_back(RankId(r));
  const auto cluster = cluster::parse_cluster(
      "cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 640, inter_node: switch}\n",
      "c");
  REQUIRE(cluster);
  CHECK(error_of(job, *cluster) ==
        "algorithm 'linear' of all_to_all among 5120 ranks; at most 4096 ranks, or "
        "two_dimensional");
}

TEST_CASE("a hand-made ring all-reduce of 8 ranks takes the time of the closed form") {
  const std::string folder = "chakra-et/synthetic_custom_ring_allreduce_8npus_1MB/";
  const auto first = test::shared_data(folder + "custom_allreduce.0.et");
  SKIP_WITHOUT_DATA(first);
  // Ranks 0 to 4 are there. A ring looks alike from everywhere: all share the program of rank 0,
  // with peers moved on, and so do the ranks that are missing.
  Program job;
  const auto read = [&](const std::filesystem::path& path) {
    const auto source = ingest::open_bytes(path);
    REQUIRE(source);
    auto program = ingest::read_chakra_program(**source, path.string(), false, job.names);
    REQUIRE(program);
    return std::move(*program);
  };
  const ingest::ChakraProgram zero_read = read(*first);
  const program::RankProgram& zero = zero_read.program;
  job.programs.push_back(zero);
  for (std::uint32_t r = 0; r < 8; ++r) {
    std::vector<std::uint32_t> peers;
    for (const std::uint32_t peer : zero_read.peers) peers.push_back((peer + r) % 8);
    if (const auto path = test::shared_data(folder + fmt::format("custom_allreduce.{}.et", r))) {
      const ingest::ChakraProgram program = read(*path);
      CHECK(program.program == zero);
      CHECK(program.peers == peers);
    }
    job.program_of.push_back(0);
    job.groups_of.emplace_back();
    std::vector<RankId>& of_rank = job.peers_of.emplace_back();
    for (const std::uint32_t peer : peers) of_rank.push_back(RankId(peer));
  }
  double compute_us = 0;
  for (const ProgramOp& op : zero.ops)
    if (op.task == Task::kCompute) compute_us += op.duration->seconds().us();
  CHECK(compute_us > 0);
  // 14 steps of 2 us + 128 KiB / 100 GB/s, and between them the sums.
  const double ring_us = 14 * (2 + 131072 / 100e9 * 1e6);
  for (const Fidelity fidelity : {Fidelity::kClosed, Fidelity::kMessage}) {
    const Ran ran = run(job, star(8), {.fidelity = fidelity});
    CHECK(ran.us() == Approx(ring_us + compute_us));
    CHECK(ran.lowered.messages == 8 * 14);
    CHECK(ran.lowered.bytes_sent == 8 * 14 * 131072.0);
  }
}

}  // namespace
}  // namespace rehearse::job
