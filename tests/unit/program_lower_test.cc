// Programs as graphs without a cluster, worked by hand.
#include <catch2/catch.hpp>

#include "sim/engine/engine.h"
#include "sim/program/lower.h"
#include "sim/program/lowered_ops.h"
#include "sim/program/rank_builder.h"

namespace rehearse::program {
namespace {

Picoseconds us(double value) { return Picoseconds::from(Seconds::us(value)); }

/// Rank 0 computes 10 us, rank 1 30 us; both sum for 5 us and compute 1 us more. The second stream
/// of rank 0 copies for 100 us meanwhile.
Program two_ranks() {
  Program job;
  const NameId name = job.names.intern("op");
  for (const double first : {10.0, 30.0}) {
    RankBuilder builder;
    const std::uint32_t stream = builder.add(Stream{.name = name});
    const std::uint32_t copies = builder.add(Stream{.name = name, .number = 1});
    const auto add = [&](Task task, double time, std::uint32_t on) {
      return builder.add({.name = name, .task = task, .duration = us(time), .stream = on});
    };
    const std::uint32_t compute = add(Task::kCompute, first, stream);
    const std::uint32_t sum = add(Task::kCollective, 5, stream);
    const std::uint32_t last = add(Task::kCompute, 1, stream);
    add(Task::kMemory, 100, copies);
    builder.depend(sum, compute);
    builder.depend(last, sum);
    job.programs.push_back(std::move(builder).build());
  }
  job.program_of = {0, 1};
  job.groups = {{"all", {RankId(0), RankId(1)}}};
  job.groups_of = {{0}, {0}};
  return job;
}

struct Ran {
  explicit Ran(const Program& job) {
    Result<Lowered> result = lower(job);
    REQUIRE(result);
    lowered = std::move(*result);
    Result<graph::Timeline> run = engine::run(lowered.graph);
    REQUIRE(run);
    timeline = std::move(*run);
  }
  double end_us(std::size_t rank, std::uint32_t op) const {
    return timeline[lowered.op(rank, op)].end.seconds().us();
  }
  Lowered lowered;
  graph::Timeline timeline;
};

TEST_CASE("a collective with a duration begins with the arrival of the last member") {
  const Program job = two_ranks();
  const Ran ran(job);
  for (const std::size_t rank : {0U, 1U}) {
    CHECK(ran.end_us(rank, 1) == Approx(35));
    CHECK(ran.end_us(rank, 2) == Approx(36));
    CHECK(ran.end_us(rank, 3) == Approx(100));  // on a stream of its own
  }
  // Rank 0 arrives at 10 us; the arrival is at the place of its collective.
  const OpId arrival = ran.lowered.start_of(ran.lowered.op(0, 1));
  CHECK(arrival != ran.lowered.op(0, 1));
  CHECK(ran.timeline[arrival].start.seconds().us() == Approx(10));
  REQUIRE(ran.lowered.place_of(arrival));
  CHECK(ran.lowered.place_of(arrival)->run == 0);
  CHECK(ran.lowered.place_of(arrival)->op == 1);
  CHECK(ran.lowered.start_of(ran.lowered.op(0, 0)) == ran.lowered.op(0, 0));
  // What both wait for belongs to no rank.
  const LoweredOps ops(job, ran.lowered, ran.timeline);
  const OpId both(static_cast<std::uint32_t>(ran.lowered.graph.size() - 1));
  CHECK_FALSE(ops.rank(both));
  CHECK(ops.of_rank(0).size() == 5);
  CHECK(ops.on_device(arrival));
}

TEST_CASE("members of a collective are those of one tag") {
  Program job = two_ranks();
  job.programs[1].ops[1].tag = 7;
  const Ran ran(job);
  CHECK(ran.end_us(0, 1) == Approx(15));
  CHECK(ran.end_us(1, 1) == Approx(35));
}

TEST_CASE("an op without a duration cannot be lowered without a cluster") {
  Program job = two_ranks();
  job.programs[1].ops[0].duration.reset();
  const Result<Lowered> lowered = lower(job);
  REQUIRE_FALSE(lowered);
  CHECK_THAT(to_string(lowered.error()), Catch::Contains("of rank 1 has no duration"));
}

TEST_CASE("a rewritten program keeps its numbers and orders its dependencies") {
  Program job = two_ranks();
  RankBuilder builder(job.programs[0]);
  const std::uint32_t added =
      builder.add({.name = job.names.intern("more"), .task = Task::kHost, .duration = us(50)});
  CHECK(added == 4);
  builder.depend(2, added);
  builder.depend(2, added);  // said twice
  builder.depend(added, 0);
  job.programs[0] = std::move(builder).build();
  CHECK(job.programs[0].first_dependency == std::vector<std::uint32_t>{0, 0, 1, 3, 3, 4});
  CHECK(job.programs[0].dependencies == std::vector<std::uint32_t>{0, 1, 4, 0});
  CHECK(Ran(job).end_us(0, 2) == Approx(61));
}

TEST_CASE("a service loads for a rank, and its loads share its pools") {
  Program job = two_ranks();
  const NameId name = job.names.intern("load");
  RankBuilder service;
  const std::uint32_t cores = service.add(Pool{.name = name, .rate = 1}),
                      slow = service.add(Pool{.name = name, .rate = 0.5});
  const std::uint32_t shared = service.add(Stream{.name = name, .slots = 0, .pools = {cores}}),
                      bound = service.add(Stream{.name = name, .slots = 2, .pools = {cores, slow}});
  const auto load = [&](double work, std::uint32_t on, const std::vector<OpIndex>& after) {
    const OpIndex op =
        service.add({.name = name, .task = Task::kInput, .duration = us(0), .stream = on}, after);
    service.set_work(op, Seconds::us(work).s());
    return op;
  };
  // Two loads of 10 and 20 us on one core: the first ends at 20 us, the second at 30 us.
  const OpIndex first = load(10, shared, {}), second = load(20, shared, {});
  // Each thread keeps to a pool: after that, 10 us on one, 20 us on the other at half the speed.
  const OpIndex fast = load(10, bound, {second, second}), late = load(10, bound, {first, second});
  const OpIndex asked = load(5, shared, {});
  job.services.push_back(std::move(service).build());
  // Rank 0 starts with the first load, and the last load with the end of rank 0's first op.
  job.orders = {{{0, 0}, {2, asked}}, {{2, first}, {0, 0}}};
  const Ran ran(job);
  const auto end_us = [&](OpRef op) { return ran.timeline[ran.lowered.op(op)].end.seconds().us(); };
  CHECK(end_us({2, first}) == Approx(20));
  CHECK(end_us({2, second}) == Approx(30));
  CHECK(ran.end_us(0, 0) == Approx(30));
  CHECK(end_us({2, late}) == Approx(50));
  // From 30 us on, `fast` and the last load share the first pool.
  CHECK(end_us({2, asked}) == Approx(40));
  CHECK(end_us({2, fast}) == Approx(45));
  CHECK(ran.end_us(1, 1) == Approx(35));  // the ranks sum when the last of them has computed

  // A service is no rank: its ops take the time of none.
  const LoweredOps ops(job, ran.lowered, ran.timeline);
  CHECK(ops.ranks() == 2);
  CHECK_FALSE(ops.rank(ran.lowered.op(OpRef{2, first})));
}

TEST_CASE("programs in one graph share the pools of their device, and leases of all") {
  // Two programs of one rank: 10 us of a pool's work in a lease that lasts until a 5 us mark after
  // it. Rank 0 of both is on one device: 10 us and 10 us become 20 us where they do not take turns.
  const auto program = [](Scope pool, std::optional<std::uint32_t> lease) {
    Program job;
    const NameId name = job.names.intern("op");
    RankBuilder builder;
    builder.add(Pool{.name = name, .rate = 1, .scope = pool});
    const std::uint32_t work =
        builder.add(Stream{.name = name, .slots = 0, .pools = {0}, .units_per_work = {1}});
    const std::uint32_t slots =
        builder.add(Stream{.name = name, .leases = true, .scope = Scope::kAll});
    const std::uint32_t turn = builder.add(Stream{.name = name, .slots_of = slots, .lease = lease});
    const auto add = [&](Picoseconds time, std::uint32_t on, const std::vector<OpIndex>& after) {
      return builder.add({.name = name, .task = Task::kCompute, .duration = time, .stream = on},
                         after);
    };
    const std::uint32_t bound = lease ? turn : kNoStream;
    const OpIndex begin = add(us(0), bound, {}), op = add(us(0), work, {begin});
    builder.set_work(op, Seconds::us(10).s());
    add(us(5), bound, {op});
    job.programs.push_back(std::move(builder).build());
    job.program_of = {0};
    job.groups_of = {{}};
    return job;
  };
  const auto makespan_us = [&](Scope pool, bool in_turns) {
    Assembly onto;
    for (const std::uint32_t lease : {0U, 1U})
      REQUIRE(add(program(pool, in_turns ? std::optional(lease) : std::nullopt), onto));
    const Result<graph::Graph> graph = std::move(onto.builder).build();
    REQUIRE(graph);
    return engine::run(*graph)->makespan().seconds().us();
  };
  CHECK(makespan_us(Scope::kOwn, false) == Approx(15));
  CHECK(makespan_us(Scope::kDevice, false) == Approx(25));
  CHECK(makespan_us(Scope::kDevice, true) == Approx(30));
}

}  // namespace
}  // namespace rehearse::program
