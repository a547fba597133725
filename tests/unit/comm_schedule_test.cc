#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "sim/engine/engine.h"
#include "tests/support/closed_time.h"
#include "tests/support/share_received.h"
#include "tests/support/star.h"

namespace rehearse::comm {
namespace {

using cluster::PointToPoint;
using Kind = CollectiveKind;

const PointToPoint kPath{Seconds::us(2), ByteRate::gb_per_s(50)};
constexpr double kSize = 12'600'000;  // divides by all rank counts below

/// The end of the last op when the schedule alone runs on a star. Each flow on a port of its own
/// with a quarter of the rate where `own_lanes`.
double message_us(const Schedule& schedule, engine::Division division, bool own_flows = false) {
  graph::GraphBuilder builder;
  std::shared_ptr<const std::vector<graph::FlowRoute>> routes;
  test::Star star(builder, schedule.flows->members(), kPath);
  if (own_flows) {
    auto apart = std::make_shared<std::vector<graph::FlowRoute>>();
    for (std::size_t i = 0; i < schedule.flows->flows().size(); ++i) {
      const CapacityId edge = builder.add(
          graph::Capacity{.name = builder.intern("edge"), .rate = kPath.rate.bytes_per_s() / 4});
      apart->push_back(
          {builder.add(graph::Demand{.capacities = {edge}}), Picoseconds::from(kPath.latency)});
    }
    routes = apart;
  } else {
    routes = star.routes(*schedule.flows);
  }
  test::add_transfer(builder, schedule.flows, routes, kSize);
  const Result<graph::Graph> graph = std::move(builder).build();
  REQUIRE(graph);
  const Result<graph::Timeline> timeline = engine::run(*graph, {.division = division});
  REQUIRE(timeline);
  return timeline->makespan().seconds().us();
}

struct Case {
  Kind kind;
  Algorithm algorithm;
  Arrangement group;
  double steps;     ///< longest chain, worked out by hand
  double sent;      ///< by rank 0, as a share of the size
  double received;  ///< by rank 0
};

// Sizes: all_reduce, broadcast and reduce count the buffer of a rank; reduce_scatter and all_gather
// the whole over all ranks; all_to_all what one rank sends to all, itself included.
const std::vector<Case> kCases = {
    // 2 (n-1) steps of S/n
    {Kind::kAllReduce, Algorithm::kRing, {8, 8}, 14, 14.0 / 8, 14.0 / 8},
    {Kind::kAllReduce, Algorithm::kRing, {7, 7}, 12, 12.0 / 7, 12.0 / 7},
    {Kind::kReduceScatter, Algorithm::kRing, {5, 5}, 4, 4.0 / 5, 4.0 / 5},
    {Kind::kAllGather, Algorithm::kRing, {6, 6}, 5, 5.0 / 6, 5.0 / 6},
    // a pipeline of n-1 hops and 8 chunks: 4 + 8 - 1 steps; rank 0 is the root
    {Kind::kBroadcast, Algorithm::kRing, {5, 5}, 11, 1, 0},
    {Kind::kReduce, Algorithm::kRing, {5, 5}, 11, 0, 1},
    {Kind::kBarrier, Algorithm::kRing, {4, 4}, 6, 0, 0},
    {Kind::kSendRecv, Algorithm::kRing, {2, 2}, 1, 1, 0},
    // reduce half of S up and back twice: S/2 (1 + 1/n) per step, in two steps
    {Kind::kAllReduce, Algorithm::kNvls, {8, 8}, 2, 9.0 / 8, 9.0 / 8},
    {Kind::kAllGather, Algorithm::kNvls, {4, 4}, 1, 5.0 / 8, 5.0 / 8},
    // distances 1, 2, 4, 8 of 10: shares 1, 2, 4 and 2 tenths
    {Kind::kAllGather, Algorithm::kPat, {10, 1}, 4, 0.9, 0.9},
    {Kind::kReduceScatter, Algorithm::kPat, {8, 1}, 3, 7.0 / 8, 7.0 / 8},
    // 1/2 + 1/4 + 1/8, twice
    {Kind::kAllReduce, Algorithm::kHalvingDoubling, {8, 8}, 6, 14.0 / 8, 14.0 / 8},
    // 6 = 4 + 2: rank 0 first gets the buffer of rank 4 and at the end sends it the result
    {Kind::kAllReduce, Algorithm::kHalvingDoubling, {6, 6}, 6, 1.5 + 1, 1.5 + 1},
    {Kind::kReduceScatter, Algorithm::kHalvingDoubling, {4, 4}, 2, 0.75, 0.75},
    {Kind::kAllGather, Algorithm::kHalvingDoubling, {4, 4}, 2, 0.75, 0.75},
    {Kind::kAllToAll, Algorithm::kPairwise, {6, 6}, 5, 5.0 / 6, 5.0 / 6},
    {Kind::kAllToAll, Algorithm::kLinear, {6, 6}, 1, 5.0 / 6, 5.0 / 6},
    // 3 nodes of 4: 3 messages of S/4 within at once, then 2 of S/3 between
    {Kind::kAllToAll, Algorithm::kTwoDimensional, {12, 4}, 2, 0.75 + 2.0 / 3, 0.75 + 2.0 / 3},
    // 3 of S/4, 2 x 2 of S/12, 3 of S/4
    {Kind::kAllReduce, Algorithm::kHierarchical, {12, 4}, 10, 1.5 + 4.0 / 12, 1.5 + 4.0 / 12},
    {Kind::kAllReduce, Algorithm::kCollnetDirect, {12, 4}, 7, 1.5 + 0.25, 1.5 + 0.25},
    // 6 workers, 2 servers: each worker sends S and gets S
    {Kind::kAllReduce, Algorithm::kParameterServer, {8, 8, 2}, 2, 1, 1},
    {Kind::kReduce, Algorithm::kParameterServer, {8, 8, 2}, 1, 1, 0},
    {Kind::kBroadcast, Algorithm::kParameterServer, {8, 8, 2}, 1, 0, 1},
};

std::string name_of(const Case& c) {
  return fmt::format("{} {} among {}", to_string(c.algorithm), to_string(c.kind), c.group.ranks);
}

TEST_CASE("each algorithm sends the bytes and takes the steps of its definition") {
  for (const Case& c : kCases) {
    INFO(name_of(c));
    const Result<Schedule> s = schedule(c.kind, c.algorithm, c.group);
    REQUIRE(s);
    CHECK(s->local.count + s->across.count == Approx(c.steps));
    CHECK(s->flows->share_sent(0) == Approx(c.sent));
    CHECK(test::share_received(*s->flows, 0) == Approx(c.received));
    double sent = 0, received = 0;
    for (std::uint32_t r = 0; r < c.group.ranks; ++r) {
      sent += s->flows->share_sent(r);
      received += test::share_received(*s->flows, r);
    }
    CHECK(sent == Approx(received));
  }
}

TEST_CASE("the closed form is the time of the messages without contention") {
  for (const Case& c : kCases) {
    INFO(name_of(c));
    const Result<Schedule> s = schedule(c.kind, c.algorithm, c.group);
    REQUIRE(s);
    const double closed = test::closed_time(*s, Bytes::b(kSize), kPath).us();
    // Instants are whole picoseconds.
    CHECK(message_us(*s, engine::Division::kFair) == Approx(closed).epsilon(1e-9).margin(1e-4));
    // Many messages at once on one port are contention, and then who comes first matters.
    if (c.algorithm != Algorithm::kLinear && c.algorithm != Algorithm::kTwoDimensional &&
        c.algorithm != Algorithm::kParameterServer)
      CHECK(message_us(*s, engine::Division::kFirstCome) ==
            Approx(closed).epsilon(1e-9).margin(1e-4));
  }
}

TEST_CASE("double binary trees: every rank sends up and down, few are inner nodes of both") {
  for (const std::uint32_t n : {2U, 3U, 4U, 7U, 8U, 13U, 16U, 33U}) {
    INFO(n);
    const Result<Schedule> s = schedule(Kind::kAllReduce, Algorithm::kTree, {n, 1, 0, 4});
    REQUIRE(s);
    double most = 0, all = 0;
    for (std::uint32_t r = 0; r < n; ++r) {
      most = std::max(most, s->flows->share_sent(r));
      all += s->flows->share_sent(r);
    }
    // Each of the two trees has n-1 edges, with half of S up and half down.
    CHECK(all == Approx(2.0 * (n - 1)));
    // Inner in one (three flows of S/2 out), leaf in the other (one); roots and odd n a little
    // more.
    CHECK(most <= 2.5);
    const double closed = test::closed_time(*s, Bytes::b(kSize), kPath).us();
    CHECK(message_us(*s, engine::Division::kFair, true) == Approx(closed).epsilon(1e-9));
    // On ports that flows share an idle flow's part is used by the others.
    CHECK(message_us(*s, engine::Division::kFair) <= closed * (1 + 1e-9));
  }
}

// Four ranks on each of two nodes: S (1 + 1/4) by NVLink as in kNvls, and alongside S/4 through the NIC
// in each direction, which has a fifth of the bytes and of the rate.
TEST_CASE("a tree of NVLink SHARP sends within nodes and between them at once") {
  const Result<Schedule> s = schedule(Kind::kAllReduce, Algorithm::kNvlsTree, {8, 4});
  REQUIRE(s);
  CHECK(s->local.count == 2);
  CHECK(s->busy == Approx(1.25));
  REQUIRE(s->parts);
  double within = 0, between = 0;
  for (std::size_t i = 0; i < s->flows->flows().size(); ++i) {
    const graph::MessageFlow& flow = s->flows->flows()[i];
    if (flow.from != 0) continue;
    const bool leaves = flow.to >= 4;
    (leaves ? between : within) += flow.share * flow.count;
    CHECK((*s->parts)[i] == Approx(leaves ? 0.2 : 1));
  }
  CHECK(within == Approx(1.25));
  CHECK(between == Approx(0.25));
}

TEST_CASE("an uneven all-to-all takes at least what its busiest port needs") {
  // Rank 0 sends 0.5 to 1 and 0.25 to 2; rank 2 sends 0.5 to 1: the port into 1 carries 1.0.
  const Schedule s = uneven_all_to_all({{0, 0.5, 0.25}, {0, 0, 0}, {0, 0.5, 0}});
  CHECK(s.local.share == 1.0);
  CHECK(s.flows->messages() == 3);
  const double closed = test::closed_time(s, Bytes::b(kSize), kPath).us();
  CHECK(message_us(s, engine::Division::kFair) == Approx(closed));
}

TEST_CASE("an unsupported case of an algorithm is an error that names the alternatives") {
  const auto message = [](const Result<Schedule>& s) {
    return s ? std::string() : to_string(s.error());
  };
  CHECK(message(schedule(Kind::kAllToAll, Algorithm::kRing, {4, 4})) ==
        "algorithm 'ring' does not support all_to_all; pairwise, linear or two_dimensional");
  CHECK(message(schedule(Kind::kAllReduce, Algorithm::kNvls, {8, 4})) ==
        "algorithm 'nvls' stays within a node; ranks of one node");
  CHECK(message(schedule(Kind::kAllGather, Algorithm::kNvlsTree, {8, 4})) ==
        "algorithm 'nvls_tree' does not support all_gather; all_reduce");
  CHECK(message(schedule(Kind::kAllReduce, Algorithm::kRing, {6, 4})) ==
        "a group of 6 ranks, 4 per node, in 8 chunks, is not valid; at least 2 ranks, as many on "
        "every node, and at least one chunk");
  CHECK(message(schedule(Kind::kReduceScatter, Algorithm::kHalvingDoubling, {6, 6})) ==
        "halving_doubling of reduce_scatter among 6 ranks; a power of two");
  CHECK(message(schedule(Kind::kAllReduce, Algorithm::kParameterServer, {4, 4, 4})) ==
        "4 parameter servers among 4 ranks; at least one server and one worker");
}

}  // namespace
}  // namespace rehearse::comm
