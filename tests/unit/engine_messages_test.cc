#include <catch2/catch.hpp>

#include "models/comm/schedule.h"
#include "sim/engine/engine.h"
#include "tests/support/star.h"

namespace rehearse::engine {
namespace {

using graph::Capacity;
using graph::Category;
using graph::Demand;
using graph::GraphBuilder;
using graph::Op;

/// Three flows of two units on a link of one unit per second, released at 1, 2 and 3 s, each
/// followed by a step of one second on one consumer. Flows are one group and due when the consumer
/// could take them: 2, 3 and 4 s after the first began.
double last_consumed_s(Division division) {
  GraphBuilder builder;
  const NameId name = builder.intern("op");
  const CapacityId link = builder.add(Capacity{.name = builder.intern("link"), .rate = 1});
  const ServerId consumer = builder.add(graph::Server{.name = builder.intern("consumer")});
  const DemandId consuming = builder.add(Demand{.server = consumer});
  std::optional<OpId> before;
  for (int i = 0; i < 3; ++i) {
    const OpId flow =
        builder.add(Op{.name = name,
                       .category = Category::kCommunication,
                       .duration = Picoseconds::from(Seconds::s(1 + i)),
                       .demand = builder.add(Demand{.capacities = {link},
                                                    .group = FlowGroupId(0),
                                                    .due = Picoseconds::from(Seconds::s(2 + i))}),
                       .work = 2});
    const OpId step = builder.add(Op{.name = name,
                                     .category = Category::kCompute,
                                     .duration = Picoseconds::from(Seconds::s(1)),
                                     .demand = consuming});
    builder.add_edge(flow, step);
    if (before) builder.add_edge(*before, step);
    before = step;
  }
  const auto graph = std::move(builder).build();
  REQUIRE(graph);
  const auto timeline = run(*graph, {.division = division});
  REQUIRE(timeline);
  return timeline->makespan().seconds().s();
}

TEST_CASE("three flows and a consumer: fair 8.5 s, coflow 10 s, echelon 8 s") {
  // Fair: alone until 2 s, halves until 3 s, thirds: the flows end at 4.5, 6.5 and 7 s; consumed
  // until 5.5, 7.5 and 8.5 s.
  CHECK(last_consumed_s(Division::kFair) == Approx(8.5).epsilon(1e-9));
  // Coflow: all end together at 1 + 3 x 2 = 7 s; consumed one after the other until 10 s.
  CHECK(last_consumed_s(Division::kCoflow) == Approx(10).epsilon(1e-9));
  // Echelon: one after the other at 3, 5 and 7 s, each consumed while the next arrives: 8 s.
  CHECK(last_consumed_s(Division::kEchelon) == Approx(8).epsilon(1e-9));
}

TEST_CASE("coflows: the shorter group first, then the other takes what is left") {
  // One link of 1/s. Group 0 needs 3 + 3, group 1 needs 2, all at once: group 1 ends at 2, both
  // flows of group 0 at 8. Fair shares would end group 1 at 6.
  GraphBuilder builder;
  const CapacityId link = builder.add(Capacity{.name = builder.intern("link"), .rate = 1});
  const auto flow = [&](int group, double work) {
    return builder.add(
        Op{.name = builder.intern("flow"),
           .category = Category::kCommunication,
           .duration = Picoseconds(0),
           .demand = builder.add(Demand{.capacities = {link}, .group = FlowGroupId(group)}),
           .work = work});
  };
  const OpId a = flow(0, 3), b = flow(0, 3), c = flow(1, 2);
  const auto graph = std::move(builder).build();
  REQUIRE(graph);
  const auto timeline = run(*graph, {.division = Division::kCoflow});
  REQUIRE(timeline);
  CHECK((*timeline)[c].end.seconds().s() == Approx(2));
  CHECK((*timeline)[a].end.seconds().s() == Approx(8));
  CHECK((*timeline)[b].end.seconds().s() == Approx(8));
}

const cluster::PointToPoint kPath{Seconds::us(1), ByteRate::gb_per_s(10)};

/// A message of `bytes` from each `from` to each `to`, all at once, on a star.
std::vector<double> ends_us(std::uint32_t ranks,
                            const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs,
                            double bytes, Division division,
                            const std::vector<double>& begins_us = {}) {
  GraphBuilder builder;
  test::Star star(builder, ranks, kPath);
  std::vector<OpId> receivers;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [from, to] = pairs[i];
    auto flows = std::make_shared<graph::MessageFlows>(
        2, std::vector<graph::MessageFlow>{{0, 1, 1, 1}}, std::vector<graph::Wait>{});
    auto routes = std::make_shared<std::vector<graph::FlowRoute>>(1, star.route(from, to));
    const std::vector<OpId> members = test::add_transfer(builder, flows, routes, bytes);
    if (!begins_us.empty())
      builder.set_duration(members[0], Picoseconds::from(Seconds::us(begins_us[i])));
    receivers.push_back(members[1]);
  }
  const auto graph = std::move(builder).build();
  REQUIRE(graph);
  const auto timeline = run(*graph, {.division = division});
  REQUIRE(timeline);
  std::vector<double> ends;
  for (const OpId op : receivers) ends.push_back((*timeline)[op].end.seconds().us());
  return ends;
}

TEST_CASE("two messages into one port: shared fairly, or one after the other") {
  // 100 kB take 10 us alone.
  CHECK_THAT(ends_us(3, {{0, 2}, {1, 2}}, 1e5, Division::kFair),
             Catch::Matchers::Approx(std::vector<double>{21, 21}));
  CHECK_THAT(ends_us(3, {{0, 2}, {1, 2}}, 1e5, Division::kFirstCome),
             Catch::Matchers::Approx(std::vector<double>{11, 21}));
}

TEST_CASE("a message that was alone shares from the moment another flows") {
  // The first flows from 1 us to 11 us; the second leaves at 5 us and flows from 6 us: until then
  // the first has moved half. Both share for 10 us (first ends at 16), then the second has half
  // left.
  CHECK_THAT(ends_us(3, {{0, 2}, {1, 2}}, 1e5, Division::kFair, {0, 5}),
             Catch::Matchers::Approx(std::vector<double>{16, 21}));
  // The second leaves while the first is still on its way to the port: both flow from about 1 us.
  CHECK_THAT(ends_us(3, {{0, 2}, {1, 2}}, 1e5, Division::kFair, {0, 0.5}),
             Catch::Matchers::Approx(std::vector<double>{20.5, 21}));
}

TEST_CASE("messages alone on a link leave it in any order, and the others meet one that joins") {
  // A link of 4/s. Three messages of 1, 3 and 2 with at most 1/s each flow from 0 s: alone, they end
  // at 1, 3 and 2 s. A fourth of 6 without a cap joins at 1.5 s, when two are left. It gets 2/s until
  // 2 s, 3/s until 3 s, then 4/s: 1 + 3 + 2 = 6 at 3.5 s.
  GraphBuilder builder;
  const CapacityId link = builder.add(Capacity{.name = builder.intern("link"), .rate = 4});
  const auto one = std::make_shared<graph::MessageFlows>(
      2, std::vector<graph::MessageFlow>{{0, 1, 1, 1}}, std::vector<graph::Wait>{});
  const auto send = [&](double begin, double size, Demand demand) {
    demand.capacities = {link};
    const auto op = [&](double s) {
      return builder.add(Op{.name = builder.intern("end"),
                            .category = Category::kCommunication,
                            .duration = Picoseconds::from(Seconds::s(s))});
    };
    const OpId from = op(begin), to = op(0);
    const auto routes = std::make_shared<std::vector<graph::FlowRoute>>();
    routes->push_back({builder.add(std::move(demand)), Picoseconds(0)});
    builder.add(graph::Transfer{one, routes, {from, to}, size});
    return to;
  };
  const OpId ends[] = {send(0, 1, {.rate_cap = 1}), send(0, 3, {.rate_cap = 1}),
                       send(0, 2, {.rate_cap = 1}), send(1.5, 6, {})};
  const auto graph = std::move(builder).build();
  REQUIRE(graph);
  const auto timeline = run(*graph);
  REQUIRE(timeline);
  const double expected[] = {1, 3, 2, 3.5};
  for (std::size_t i = 0; i < 4; ++i)
    CHECK((*timeline)[ends[i]].end.seconds().s() == Approx(expected[i]));
}

TEST_CASE("a transfer begins when its members take part, and each ends with its own last message") {
  GraphBuilder builder;
  test::Star star(builder, 3, kPath);
  // 0 -> 1 -> 2, 100 kB each: a chain.
  auto flows = std::make_shared<graph::MessageFlows>(
      3, std::vector<graph::MessageFlow>{{0, 1, 1, 1}, {1, 2, 1, 1}},
      std::vector<graph::Wait>{{1, 0, 1}});
  const std::vector<OpId> members = test::add_transfer(builder, flows, star.routes(*flows), 1e5);
  builder.set_duration(members[1], Picoseconds::from(Seconds::us(100)));
  const auto graph = std::move(builder).build();
  REQUIRE(graph);
  const auto timeline = run(*graph);
  REQUIRE(timeline);
  const auto end = [&](int m) { return (*timeline)[members[static_cast<std::size_t>(m)]].end; };
  CHECK(end(0).seconds().us() == Approx(111));
  CHECK(end(1).seconds().us() == Approx(122));
  CHECK(end(2).seconds().us() == Approx(122));
}

TEST_CASE("a member without flows ends at once, and its successors start once") {
  // Op 3 waits for the member without flows (ends at 0) and for `late` (ends at 10 ps).
  GraphBuilder builder;
  test::Star star(builder, 3, kPath);
  auto flows = std::make_shared<graph::MessageFlows>(
      3, std::vector<graph::MessageFlow>{{0, 2, 1, 1}}, std::vector<graph::Wait>{});
  const std::vector<OpId> members = test::add_transfer(builder, flows, star.routes(*flows), 1e5);
  const auto delay = [&](int ps) {
    return builder.add(Op{.name = builder.intern("delay"),
                          .category = Category::kCompute,
                          .duration = Picoseconds(ps)});
  };
  const OpId next = delay(1), late = delay(10), last = delay(1);
  builder.add_edge(members[1], next);
  builder.add_edge(next, last);
  builder.add_edge(late, last);
  const auto graph = std::move(builder).build();
  REQUIRE(graph);
  const auto timeline = run(*graph);
  REQUIRE(timeline);
  CHECK((*timeline)[members[1]].end == Picoseconds(0));
  CHECK((*timeline)[last].start == Picoseconds(10));
}

TEST_CASE("a transfer whose member never arrives, or whose link is down, is named") {
  GraphBuilder builder;
  const CapacityId down = builder.add(Capacity{.name = builder.intern("nic 3"), .rate = 0});
  auto flows = std::make_shared<graph::MessageFlows>(
      2, std::vector<graph::MessageFlow>{{0, 1, 1, 1}}, std::vector<graph::Wait>{});
  auto routes = std::make_shared<std::vector<graph::FlowRoute>>(
      1, graph::FlowRoute{builder.add(Demand{.capacities = {down}}), Picoseconds(0)});
  const auto members = test::add_transfer(builder, flows, routes, 8);
  SECTION("down") {
    const auto graph = std::move(builder).build();
    REQUIRE(graph);
    for (const Division division : {Division::kFair, Division::kFirstCome}) {
      const auto timeline = run(*graph, {.division = division});
      REQUIRE_FALSE(timeline);
      CHECK(to_string(timeline.error()).find("capacity 'nic 3', whose rate is zero") !=
            std::string::npos);
    }
  }
  SECTION("absent") {
    // Member 1 waits for an op that waits for member 0.
    const OpId between = builder.add(Op{.name = builder.intern("between"),
                                        .category = Category::kCompute,
                                        .duration = Picoseconds(1)});
    builder.add_edge(members[0], between);
    builder.add_edge(between, members[1]);
    const auto graph = std::move(builder).build();
    REQUIRE(graph);
    const auto timeline = run(*graph);
    REQUIRE_FALSE(timeline);
    CHECK(to_string(timeline.error()).find("member 1 of its transfer") != std::string::npos);
  }
}

TEST_CASE("a link that slows down and comes back") {
  // 10 GB/s, from 6 us half of it, down from 10 us to 20 us: 50 kB until 6 us, 20 kB until 10 us,
  // nothing until 20 us, the last 30 kB at 5 GB/s until 26 us.
  for (const Division division : {Division::kFair, Division::kFirstCome}) {
    GraphBuilder builder;
    const auto at = [](double us) { return Picoseconds::from(Seconds::us(us)); };
    const CapacityId link =
        builder.add(Capacity{.name = builder.intern("link"),
                             .rate = 10e9,
                             .changes = {{at(6), 5e9}, {at(10), 0}, {at(20), 5e9}}});
    auto flows = std::make_shared<graph::MessageFlows>(
        2, std::vector<graph::MessageFlow>{{0, 1, 1, 1}}, std::vector<graph::Wait>{});
    // The latency of 1 us comes before the flow, or after it where messages are first come.
    auto routes = std::make_shared<std::vector<graph::FlowRoute>>(
        1, graph::FlowRoute{builder.add(Demand{.capacities = {link}}), at(1)});
    test::add_transfer(builder, flows, routes, 1e5);
    const auto graph = std::move(builder).build();
    REQUIRE(graph);
    const auto timeline = run(*graph, {.division = division});
    REQUIRE(timeline);
    // First come flows from 0: 60 kB until 6 us, 20 kB until 10 us, 20 kB from 20 to 24 us, then 1
    // us.
    const double expected = division == Division::kFair ? 26 : 25;
    CHECK(timeline->makespan().seconds().us() == Approx(expected));
  }
}

/// 100 kB from 0 at 10 GB/s over a link that is down from 4 us to 14 us.
Result<graph::Timeline> over_a_link_that_fails(Division division, OnFailure on_failure) {
  GraphBuilder builder;
  const auto at = [](double us) { return Picoseconds::from(Seconds::us(us)); };
  const CapacityId link = builder.add(Capacity{
      .name = builder.intern("nic 2"), .rate = 10e9, .changes = {{at(4), 0}, {at(14), 10e9}}});
  auto flows = std::make_shared<graph::MessageFlows>(
      2, std::vector<graph::MessageFlow>{{0, 1, 1, 1}}, std::vector<graph::Wait>{});
  auto routes = std::make_shared<std::vector<graph::FlowRoute>>(
      1, graph::FlowRoute{builder.add(Demand{.capacities = {link}}), Picoseconds(0)});
  test::add_transfer(builder, flows, routes, 1e5);
  const auto graph = std::move(builder).build();
  REQUIRE(graph);
  return run(*graph, {.division = division, .on_failure = on_failure});
}

TEST_CASE("a link that fails: the run stalls, sends again, or ends with a line") {
  for (const Division division : {Division::kFair, Division::kFirstCome}) {
    // 40 kB by 4 us; the other 60 kB, or all of it again, from 14 us on.
    const auto stalled = over_a_link_that_fails(division, OnFailure::kStall);
    REQUIRE(stalled);
    CHECK(stalled->makespan().seconds().us() == Approx(20));
    const auto retried = over_a_link_that_fails(division, OnFailure::kRetry);
    REQUIRE(retried);
    CHECK(retried->makespan().seconds().us() == Approx(24));
    const auto failed = over_a_link_that_fails(division, OnFailure::kFail);
    REQUIRE_FALSE(failed);
    CHECK(to_string(failed.error()).find("capacity 'nic 2' fails") == 0);
  }
}

TEST_CASE("an op that uses part of a device slows the others during its run") {
  // A device of 1; a kernel of 10 us of work on it. A collective of 4 us holds 0.25 of it from 2
  // us: 2 us of work by then, 3 by 6 us, and the last 5 by 11 us.
  GraphBuilder builder;
  const CapacityId device = builder.add(Capacity{.name = builder.intern("device"), .rate = 1});
  const DemandId held =
      builder.add(Demand{.capacities = {device}, .rate_cap = 0.25, .priority = 1});
  const ServerId stream = builder.add(graph::Server{.name = builder.intern("stream")});
  const NameId name = builder.intern("op");
  const OpId kernel = builder.add(Op{.name = name,
                                     .category = Category::kCompute,
                                     .duration = Picoseconds(0),
                                     .demand = builder.add(Demand{.capacities = {device}}),
                                     .work = 10e-6});
  const OpId before = builder.add(
      Op{.name = name, .category = Category::kDelay, .duration = Picoseconds(2'000'000)});
  const OpId collective =
      builder.add(Op{.name = name,
                     .category = Category::kCommunication,
                     .duration = Picoseconds(4'000'000),
                     .demand = builder.add(Demand{.server = stream, .hold = held})});
  builder.add_edge(before, collective);
  const auto graph = std::move(builder).build();
  REQUIRE(graph);
  for (const Division division : {Division::kFair, Division::kCoflow, Division::kEchelon}) {
    const auto timeline = run(*graph, {.division = division});
    REQUIRE(timeline);
    CHECK((*timeline)[collective].end.seconds().us() == Approx(6));
    CHECK((*timeline)[kernel].end.seconds().us() == Approx(11));
  }
}

}  // namespace
}  // namespace rehearse::engine
