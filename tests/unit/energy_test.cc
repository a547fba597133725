// What boards drew, shared out to what ran on them.
#include "profiler/replay/energy.h"

#include <catch2/catch.hpp>

#include "tests/support/trace_builder.h"

namespace rehearse::replay {
namespace {

using test::RankBuilder;
using trace::Trace;

constexpr std::uint32_t kMultiprocessors = 100;

/// A board of 100 multiprocessors that is the rank's device 0.
trace::Board& add_board(trace::Rank& rank, const std::string& uuid = "GPU-a") {
  rank.boards.push_back({.uuid = uuid, .device = 0, .multiprocessors = kMultiprocessors});
  return rank.boards.back();
}
void read_power(trace::Rank& rank, double us, double watts) {
  rank.power.push_back({.board = 0, .time = RankBuilder::ns(us), .power = Watts::w(watts)});
}
void read_counter(trace::Rank& rank, double us, double joules) {
  rank.power.push_back({.board = 0, .time = RankBuilder::ns(us), .energy = Joules::j(joules)});
}
void set_blocks(trace::Rank& rank, trace::GpuOp& op, std::uint32_t blocks) {
  op.launch_shape = trace::LaunchShapeId(rank.launch_shapes.size());
  rank.launch_shapes.push_back({{blocks, 1, 1}, {128, 1, 1}, 32, 0});
}

std::optional<Energy> measure(const Trace& trace,
                              const std::vector<std::vector<StepSpan>>& steps = {}) {
  std::vector<Recording> recordings;
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) recordings.emplace_back(trace, r);
  return measure_energy(
      recordings, steps.empty() ? std::vector<std::vector<StepSpan>>(trace.ranks.size()) : steps);
}
StepSpan span(double from, double to) { return {RankBuilder::ns(from), RankBuilder::ns(to)}; }

// The example of docs/concepts/energy.md. A board of 100 multiprocessors draws
// P(t) = 100 W + 20 W/ms x t for 10 ms: 2 J. Kernel A runs from 2 to 6 ms with 100 blocks, B from 4
// to 6 ms with 50.
//   2 .. 4 ms: (140 + 180) / 2 W x 2 ms = 0.32 J, all A's
//   4 .. 6 ms: (180 + 220) / 2 W x 2 ms = 0.40 J, of it A 100/150, B 50/150
//   A = 0.5867 J, B = 0.1333 J, idle = 2 - 0.72 = 1.28 J
// A step from 0 to 5 ms: 2 .. 4 ms and 4 .. 5 ms, (180 + 200) / 2 W x 1 ms = 0.19 J, run: 0.51 J;
// idle 0 .. 2 ms, (100 + 140) / 2 W x 2 ms = 0.24 J.
TEST_CASE("concurrent kernels share the board's power by the multiprocessors that they use") {
  Trace trace;
  RankBuilder rank(trace);
  add_board(rank.rank());
  read_power(rank.rank(), 0, 100);
  read_power(rank.rank(), 10000, 300);
  set_blocks(rank.rank(), rank.kernel("A", 2000, 4000, {}), 100);
  set_blocks(rank.rank(), rank.kernel("B", 4000, 2000, {}, 8), 50);
  const auto energy = measure(trace, {{span(0, 5000), span(5000, 11000)}});
  REQUIRE(energy);
  REQUIRE(energy->boards.size() == 1);
  const BoardEnergy& board = energy->boards[0];
  CHECK(board.total.j() == Approx(2));
  CHECK(energy->ops[0][0].j() == Approx(0.32 + 0.40 * 2 / 3));
  CHECK(energy->ops[0][1].j() == Approx(0.40 / 3));
  CHECK(board.ops.j() == Approx(0.72));
  CHECK(board.idle.j() == Approx(1.28));
  CHECK(board.other.j() == 0);
  CHECK_FALSE(board.shared);
  REQUIRE(energy->steps[0][0]);
  CHECK(energy->steps[0][0]->ops.j() == Approx(0.51));
  CHECK(energy->steps[0][0]->idle.j() == Approx(0.24));
  CHECK(energy->steps[0][0]->total().j() == Approx(0.75));
  CHECK_FALSE(energy->steps[0][1]);  // no reading after 10 ms
}

TEST_CASE("kernels of more blocks than multiprocessors use all, copies use one") {
  Trace trace;
  RankBuilder rank(trace);
  add_board(rank.rank());
  read_power(rank.rank(), 0, 101);
  read_power(rank.rank(), 1000, 101);
  set_blocks(rank.rank(), rank.kernel("large", 0, 1000, {}), 4'000'000'000);
  rank.copy(trace::CopyDirection::kHostToDevice, trace::HostMemory::kPinned, 0, 1000, 4096, 1, 8);
  const auto energy = measure(trace);
  CHECK(energy->ops[0][0].j() == Approx(0.100));
  CHECK(energy->ops[0][1].j() == Approx(0.001));
  CHECK(energy->boards[0].idle.j() == Approx(0).margin(1e-12));
}

TEST_CASE("ops before, after and across the readings are charged only for the readings") {
  Trace trace;
  RankBuilder rank(trace);
  add_board(rank.rank());
  read_power(rank.rank(), 1000, 200);
  read_power(rank.rank(), 3000, 200);
  rank.kernel("before", 0, 500, {});
  rank.kernel("across", 500, 1000, {});
  rank.kernel("nothing", 2000, 0, {});
  rank.kernel("after", 3500, 500, {});
  const auto energy = measure(trace);
  CHECK(energy->ops[0][0].j() == 0);
  CHECK(energy->ops[0][1].j() == Approx(0.1));
  CHECK(energy->ops[0][2].j() == 0);
  CHECK(energy->ops[0][3].j() == 0);
  CHECK(energy->boards[0].total.j() == Approx(0.4));
}

TEST_CASE("processes on one board share its energy, marked as an estimate") {
  Trace trace;
  RankBuilder a(trace), b(trace);
  for (RankBuilder* rank : {&a, &b}) {
    rank->rank().info.host = "node";
    add_board(rank->rank());
    read_power(rank->rank(), 0, 100);
    read_power(rank->rank(), 4000, 100);
  }
  a.kernel("A", 0, 2000, {});
  b.kernel("B", 1000, 2000, {});
  const auto energy = measure(trace, {{span(0, 4000)}, {span(0, 4000)}});
  REQUIRE(energy->boards.size() == 1);
  CHECK(energy->boards[0].shared);
  CHECK(energy->boards[0].total.j() == Approx(0.4));
  CHECK(energy->ops[0][0].j() == Approx(0.15));
  CHECK(energy->ops[1][0].j() == Approx(0.15));
  CHECK(energy->steps[0][0]->ops.j() == Approx(0.15));
  CHECK(energy->steps[0][0]->idle.j() == Approx(0.05));  // half of what nobody used
  // Of another machine, a board with the same UUID is another board.
  b.rank().info.host = "other";
  CHECK(measure(trace)->boards.size() == 2);
}

TEST_CASE("a MIG instance has its part of the board, and the rest belongs to no recorded process") {
  Trace trace;
  RankBuilder rank(trace);
  trace::Board& board = add_board(rank.rank());
  board.instance = "MIG-b";
  board.multiprocessors = 16;
  board.all_multiprocessors = 64;
  read_power(rank.rank(), 0, 400);
  read_power(rank.rank(), 2000, 400);
  rank.kernel("A", 0, 1000, {});
  const auto energy = measure(trace);
  const BoardEnergy& found = energy->boards[0];
  CHECK(found.shared);
  CHECK(found.total.j() == Approx(0.8));
  CHECK(found.ops.j() == Approx(0.1));
  CHECK(found.idle.j() == Approx(0.1));
  CHECK(found.other.j() == Approx(0.6));
}

TEST_CASE("the energy counter is a check of the readings of power") {
  Trace trace;
  RankBuilder rank(trace);
  add_board(rank.rank());
  read_counter(rank.rank(), -500, 1000);  // before any power
  read_power(rank.rank(), 0, 100);
  read_counter(rank.rank(), 1000, 1000.5);
  read_power(rank.rank(), 5000, 100);
  read_counter(rank.rank(), 4000, 1000.8);
  rank.kernel("A", 0, 1000, {});
  const auto energy = measure(trace);
  REQUIRE(energy->boards[0].counted);
  CHECK(energy->boards[0].counted->j() == Approx(0.3));
  CHECK(energy->boards[0].counted_by_power->j() == Approx(0.3));
}

TEST_CASE("without readings there is no energy") {
  Trace trace;
  RankBuilder rank(trace);
  rank.kernel("A", 0, 1000, {});
  CHECK_FALSE(measure(trace));
  add_board(rank.rank());
  CHECK_FALSE(measure(trace, {{span(0, 1000)}}));
  read_power(rank.rank(), 500, 100);  // one reading covers no time
  CHECK_FALSE(measure(trace));
  // A board that no op ran on is idle, and no step's.
  read_power(rank.rank(), 900, 100);
  rank.rank().boards[0].device = 3;
  const auto energy = measure(trace, {{span(500, 900)}});
  REQUIRE(energy);
  CHECK(energy->boards[0].idle.j() == Approx(energy->boards[0].total.j()));
  CHECK(energy->ops[0][0].j() == 0);
  CHECK_FALSE(energy->steps[0][0]);
}

}  // namespace
}  // namespace rehearse::replay
