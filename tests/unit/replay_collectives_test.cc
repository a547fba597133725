// Collectives of a replay: how they are matched between ranks, and what their time is made of.
#include <catch2/catch.hpp>

#include "tests/support/replayed.h"
#include "tests/support/trace_builder.h"

namespace rehearse::replay {
namespace {

using test::RankBuilder;
using test::Replayed;
using trace::Trace;

/// Two ranks; each computes, then both run an all-reduce whose transfer takes 50 us. Rank 1 arrives
/// 300 us later, so rank 0's kernel lasts 350 us.
Trace straggler() {
  Trace trace;
  for (int rank_number = 0; rank_number < 2; ++rank_number) {
    RankBuilder rank(trace);
    const double late = 300.0 * rank_number;
    rank.step(1, 0, 1000);
    rank.host("compute", 0, 100 + late);
    rank.call("cudaLaunchKernel", 100 + late, 5, 1);
    trace::GpuOp& kernel = rank.kernel("ncclKernel_AllReduce_RING_LL", 108 + late, 350 - late, 1);
    rank.rank().collectives.push_back({.kind = CollectiveKind::kAllReduce});
    kernel.collective = trace::CollectiveId(0);
    rank.call("cudaDeviceSynchronize", 110 + late, 354 - late, 2);
  }
  return trace;
}

TEST_CASE("a collective ends when the last rank has arrived and its data have moved") {
  Replayed r(straggler());
  CHECK(r.program.collectives.matched.size() == 1);
  CHECK(r.end_us(0, 0) == Approx(458));
  CHECK(r.end_us(0, 1) == Approx(458));
  // The straggler computes twice as long (400 us more): both ranks end that much later.
  Replayed slower(straggler());
  for (program::ProgramOp& op : slower.program.programs[1].ops)
    if (slower.program.names[op.name] == "compute") op.duration = *op.duration * 2;
  slower.run(slower.program);
  CHECK(slower.end_us(0, 0) == Approx(858));
  CHECK(slower.end_us(0, 1) == Approx(858));
  // A slower network costs the transfer only, not the wait: 50 us more.
  r.scale("collective:2");
  CHECK(r.end_us(0, 0) == Approx(508));
}

TEST_CASE("a recorded collective is a collective of its program, with its group and its duration") {
  const Replayed r(straggler());
  const auto collective_of = [&](std::size_t rank) {
    const program::RankProgram& of = r.program.programs[rank];
    const program::ProgramOp& op = of.ops[r.of_rank(rank).device_last[0]];
    CHECK(op.task == program::Task::kCollective);
    CHECK(op.collective == CollectiveKind::kAllReduce);
    CHECK_FALSE(op.sized);  // its bytes were not recorded
    CHECK(of.streams[op.stream].kind == program::Stream::Kind::kDevice);
    CHECK(of.streams[op.stream].number == 0);
    CHECK(of.recorded[r.of_rank(rank).device_last[0]].row == 0U);
    return op;
  };
  const program::ProgramOp first = collective_of(0), second = collective_of(1);
  CHECK(first.tag == second.tag);
  REQUIRE(r.program.groups.size() == 1);
  CHECK(r.program.groups[0].members == std::vector<RankId>{RankId(0), RankId(1)});
  // Of 350 us on the first rank 300 are waiting for the second.
  CHECK(first.duration->seconds().us() == Approx(50));
  CHECK(second.duration->seconds().us() == Approx(50));
}

TEST_CASE("numbered collectives are matched by number, regardless of clocks") {
  // Rank 1 has no record of the first, and its clock is 5 ms off.
  const auto recorded = [](bool numbered) {
    Trace trace;
    for (int rank_number = 0; rank_number < 2; ++rank_number) {
      RankBuilder rank(trace);
      const double off = 5000.0 * rank_number;
      rank.step(1, off, 4000);
      rank.rank().collectives.push_back({.kind = CollectiveKind::kAllReduce});
      for (int k = rank_number; k < 4; ++k) {
        const auto correlation = static_cast<std::uint32_t>(k + 1);
        rank.call("cudaLaunchKernel", off + 1000 * k, 5, correlation);
        trace::GpuOp& kernel = rank.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                                           off + 1000 * k + 8, 50, correlation);
        kernel.collective = trace::CollectiveId(0);
        if (numbered) kernel.collective_number = static_cast<std::uint64_t>(k);
      }
    }
    return trace;
  };
  const auto pairs = [](const Trace& of) {
    std::vector<Recording> recordings;
    std::vector<std::vector<CommunicationOp>> communication;
    for (std::size_t r = 0; r < 2; ++r) {
      recordings.emplace_back(of, r);
      communication.push_back(find_communication(recordings.back()));
    }
    const CollectiveMatches matches = match_collectives(recordings, communication);
    std::vector<std::pair<GpuIndex, GpuIndex>> found;
    for (const MatchedCollective& matched : matches.matched)
      found.emplace_back(matched.members[0].op, matched.members[1].op);
    CHECK(matches.unmatched == (found.empty() ? 7 : 1));
    return found;
  };
  using Pairs = std::vector<std::pair<GpuIndex, GpuIndex>>;
  CHECK(pairs(recorded(true)) == Pairs{{1, 0}, {2, 1}, {3, 2}});
  CHECK(pairs(recorded(false)).empty());
  // Two of one number: numbers tell nothing.
  Trace repeated = recorded(true);
  repeated.ranks[1].gpu_ops[2].collective_number = 1;
  CHECK(pairs(repeated).empty());
}

TEST_CASE("a rank alone cannot separate its wait from the transfer") {
  Trace trace = straggler();
  trace.ranks.pop_back();
  Replayed r(std::move(trace));
  CHECK(r.program.collectives.matched.empty());
  r.scale("collective:2");
  CHECK(r.end_us(0) == Approx(108 + 700));
}

}  // namespace
}  // namespace rehearse::replay
