#include <catch2/catch.hpp>

#include "models/comm/interference.h"
#include "sim/engine/engine.h"
#include "tests/support/graph_text.h"

namespace rehearse::comm {
namespace {

/// One device: kernels of 10 us on two streams, and a collective of 4 us that starts at 2 us.
graph::Graph device() {
  return *graph::parse_graph(R"(rehearse-graph 1
server 0 "stream 0"
server 1 "stream 1"
server 2 "communication"
demand 1 server 0
demand 2 server 1
demand 3 server 2
op 0 "a" compute 10000000ps on 1
op 1 "b" compute 10000000ps on 2
op 2 "before" delay 2000000ps
op 3 "all_reduce" communication 4000000ps on 3 after 2
)",
                             "test");
}

Result<graph::Graph> interfere(graph::Graph graph, const std::vector<DeviceOps>& devices,
                               double slowdown) {
  graph::GraphBuilder builder(std::move(graph));
  comm::interfere(builder, devices, slowdown);
  return std::move(builder).build();
}

const std::vector<DeviceOps> kOps = {{{OpId(0), OpId(1)}, {OpId(3)}}};

TEST_CASE("kernels that overlap a collective take longer by the slowdown") {
  const Result<graph::Graph> graph = interfere(device(), kOps, 1.25);
  REQUIRE(graph);
  const Result<graph::Timeline> timeline = engine::run(*graph);
  REQUIRE(timeline);
  // 2 us before, 4 us in which 4 / 1.25 = 3.2 us of work are done, 4.8 us after: 10.8 us.
  CHECK((*timeline)[OpId(0)].end.seconds().us() == Approx(10.8));
  CHECK((*timeline)[OpId(1)].end.seconds().us() == Approx(10.8));
  CHECK((*timeline)[OpId(3)].end.seconds().us() == Approx(6));
}

TEST_CASE("a collective continues when an overlapping kernel ends") {
  // Kernels of 2 and 4 us one after the other, a collective of 5 us from the beginning: 2.5 us,
  // then 2.5 us in which 2 us of work are done, then 2 us: 7 us. The collective ends at 5 us.
  const auto two = graph::parse_graph(R"(rehearse-graph 1
server 0 "stream"
demand 1 server 0
op 0 "a" compute 2000000ps on 1
op 1 "b" compute 4000000ps on 1
op 2 "all_reduce" communication 5000000ps
)",
                                      "test");
  REQUIRE(two);
  const std::vector<DeviceOps> ops = {{{OpId(0), OpId(1)}, {OpId(2)}}};
  const Result<graph::Graph> graph = interfere(*two, ops, 1.25);
  REQUIRE(graph);
  for (const engine::Division division :
       {engine::Division::kFair, engine::Division::kCoflow, engine::Division::kFirstCome}) {
    const Result<graph::Timeline> timeline = engine::run(*graph, {.division = division});
    REQUIRE(timeline);
    CHECK((*timeline)[OpId(0)].end.seconds().us() == Approx(2.5));
    CHECK((*timeline)[OpId(1)].end.seconds().us() == Approx(7));
    CHECK((*timeline)[OpId(2)].end.seconds().us() == Approx(5));
  }
}

TEST_CASE("short kernels lose more of their time to a collective than long ones") {
  // 0.5 of a share of 0.2, and 10 us of it: 1 + 0.1 + 2 / 10. At most 2.6 times that loss.
  const Estimate<double> shorter = slowdown_by_collectives(Seconds::us(10));
  CHECK(shorter.value == Approx(1.3));
  CHECK(shorter.low == 1);
  CHECK(shorter.high == Approx(1.78));
  CHECK(slowdown_by_collectives(Seconds::s(1)).value == Approx(1 + kOverlapPenalty).epsilon(1e-5));
  CHECK(slowdown_by_collectives(Seconds::s(0)).value == Approx(1 + kOverlapPenalty));
}

TEST_CASE("a collective slows the kernels of two calls") {
  graph::GraphBuilder builder(device());
  const DeviceOps first{{OpId(0)}, {OpId(3)}}, second{{OpId(1)}, {OpId(3)}};
  comm::interfere(builder, std::span(&first, 1), 1.25);
  comm::interfere(builder, std::span(&second, 1), 2);
  const Result<graph::Graph> graph = std::move(builder).build();
  REQUIRE(graph);
  const Result<graph::Timeline> timeline = engine::run(*graph);
  REQUIRE(timeline);
  // 2 us, 4 us at 1 / 1.25 and at 1 / 2 of the speed, and the rest: 10 + 0.8 us and 10 + 2 us.
  CHECK((*timeline)[OpId(0)].end.seconds().us() == Approx(10.8));
  CHECK((*timeline)[OpId(1)].end.seconds().us() == Approx(12));
  CHECK((*timeline)[OpId(3)].end.seconds().us() == Approx(6));
}

TEST_CASE("a slowdown of 1 does not change the graph") {
  const Result<graph::Graph> graph = interfere(device(), kOps, 1);
  REQUIRE(graph);
  CHECK(graph::to_text(*graph) == graph::to_text(device()));
}

TEST_CASE("a device that does not communicate keeps its times") {
  const std::vector<DeviceOps> none = {{{OpId(0), OpId(1)}, {}}};
  const Result<graph::Graph> graph = interfere(device(), none, 1.25);
  REQUIRE(graph);
  const Result<graph::Timeline> timeline = engine::run(*graph);
  REQUIRE(timeline);
  CHECK((*timeline)[OpId(0)].end.seconds().us() == Approx(10));
}

}  // namespace
}  // namespace rehearse::comm
