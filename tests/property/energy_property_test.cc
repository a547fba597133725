// Energy on random traces: it is neither created nor lost, whatever runs concurrently.
#include <random>

#include <catch2/catch.hpp>

#include "profiler/replay/energy.h"
#include "tests/support/trace_builder.h"

namespace rehearse::replay {
namespace {

using test::RankBuilder;

struct Random {
  std::mt19937_64 engine;
  int below(int n) { return static_cast<int>(engine() % static_cast<unsigned>(n)); }
  double upto(double most) { return most * static_cast<double>(engine() >> 11) * 0x1p-53; }
};

/// Some processes on some boards of one machine, with MIG or without, that run anything at any time
/// and read power now and then.
trace::Trace random_trace(Random& random) {
  trace::Trace trace;
  const int boards = 1 + random.below(3);
  const int ranks = 1 + random.below(4);
  const bool mig = random.below(3) == 0;
  for (int r = 0; r < ranks; ++r) {
    RankBuilder rank(trace);
    const int devices = 1 + random.below(boards);
    for (int d = 0; d < devices; ++d) {
      trace::Board& board = rank.rank().boards.emplace_back(
          trace::Board{.uuid = "GPU-" + std::to_string((r + d) % boards)});
      board.device = static_cast<std::uint32_t>(d);
      if (random.below(4) != 0) board.multiprocessors = 132;
      if (mig) {
        board.instance = "MIG-" + std::to_string((r + d) % boards) + std::to_string(r % 2);
        board.multiprocessors = r % 2 == 0 ? 60 : 16;
        board.all_multiprocessors = 132;
      }
      for (int i = random.below(40); i > 0; --i) {
        trace::PowerReading reading{.board = static_cast<std::uint32_t>(d),
                                    .time = RankBuilder::ns(random.upto(10000))};
        if (random.below(5) != 0) reading.power = Watts::w(random.upto(700));
        rank.rank().power.push_back(reading);
      }
    }
    for (int i = random.below(60); i > 0; --i) {
      trace::GpuOp& op = rank.kernel("k", random.upto(10000), random.upto(1000), {},
                                     static_cast<std::uint32_t>(random.below(4)));
      op.device = static_cast<std::uint16_t>(random.below(devices));
      if (random.below(3) == 0) op.kind = trace::GpuKind::kCopy;
      if (random.below(3) == 0) {
        op.launch_shape = trace::LaunchShapeId(rank.rank().launch_shapes.size());
        rank.rank().launch_shapes.push_back(
            {{static_cast<std::uint32_t>(1 + random.below(300)), 1, 1}, {1, 1, 1}, 1, 0});
      }
    }
  }
  return trace;
}

TEST_CASE(
    "the energy of ops, idle time and others adds up to the board's, and that of steps to the "
    "total") {
  std::size_t boards = 0, steps = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    Random random{std::mt19937_64(seed)};
    const trace::Trace trace = random_trace(random);
    std::vector<Recording> recordings;
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) recordings.emplace_back(trace, r);
    std::vector<std::vector<StepSpan>> none(recordings.size());
    const auto whole = measure_energy(recordings, none);
    if (!whole) continue;

    double total = 0, ops = 0, of_ops = 0, idle = 0;
    for (const BoardEnergy& board : whole->boards) {
      ++boards;
      CHECK(board.ops.j() >= 0);
      CHECK(board.idle.j() >= -1e-9);
      CHECK(board.other.j() >= 0);
      CHECK((board.ops + board.idle + board.other).j() ==
            Approx(board.total.j()).epsilon(1e-9).margin(1e-12));
      total += board.total.j();
      ops += board.ops.j();
      idle += board.idle.j();
    }
    for (const auto& of_rank : whole->ops)
      for (const Joules op : of_rank) {
        CHECK(op.j() >= -1e-9);
        of_ops += op.j();
      }
    CHECK(of_ops == Approx(ops).epsilon(1e-9).margin(1e-12));
    CHECK(ops <= total * (1 + 1e-9));

    // Steps that cover all there is, of one board: together they are the board.
    if (whole->boards.size() != 1) continue;
    const BoardEnergy& board = whole->boards[0];
    const Nanoseconds middle = board.first + (board.last - board.first) * 0.37;
    for (auto& of_rank : none) of_rank = {{board.first, middle}, {middle, board.last}};
    const auto parts = measure_energy(recordings, none);
    double of_steps = 0;
    bool complete = true;
    for (const auto& of_rank : parts->steps)
      for (const auto& step : of_rank) {
        complete = complete && step;
        if (step) of_steps += step->total().j();
        ++steps;
      }
    if (complete && ops > 0) CHECK(of_steps == Approx(ops + idle).epsilon(1e-9));
  }
  CHECK(boards > 300);
  CHECK(steps > 100);
}

}  // namespace
}  // namespace rehearse::replay
