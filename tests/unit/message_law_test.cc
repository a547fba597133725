// Recorded collectives with more or fewer bytes.
#include <catch2/catch.hpp>

#include "cli/commands/kernel_laws.h"

namespace rehearse::cli {
namespace {

constexpr double kSmall = 8, kLarge = 32 << 20;

program::ProgramOp sum_of(double bytes, double us) {
  return {.name = NameId(0),
          .task = program::Task::kCollective,
          .duration = Picoseconds::from(Seconds::us(us)),
          .bytes = Bytes::b(bytes),
          .collective = CollectiveKind::kAllReduce};
}

double us(Picoseconds time) { return time.seconds().us(); }

/// One rank of two with these collectives.
replay::RecordedProgram recorded(const std::vector<program::ProgramOp>& ops) {
  replay::RecordedProgram program;
  program.programs.resize(1);
  program.programs[0].ops = ops;
  program.program_of = {0};
  program.groups = {{.name = "tensor", .members = {RankId(0)}, .of_ranks = 2}};
  program.groups_of = {{0}};
  return program;
}

TEST_CASE("the fixed time of a group's collectives follows from their sizes") {
  // 20 us for 8 bytes and 200 for 32 MiB: 20 us and 180 in proportion to the bytes.
  const program::ProgramOp large = sum_of(kLarge, 200);
  const MessageLaw law(recorded({large, sum_of(kSmall, 20)}));
  CHECK(us(law.with_bytes(0, large, 2, Bound::kValue)) == Approx(20 + 2 * 180).epsilon(1e-3));
  CHECK(us(law.with_bytes(0, large, 0.5, Bound::kValue)) == Approx(20 + 90).epsilon(1e-3));
  // At most the shortest is fixed, at least nothing.
  CHECK(us(law.with_bytes(0, large, 2, Bound::kLow)) == Approx(20 + 2 * 180));
  CHECK(us(law.with_bytes(0, large, 2, Bound::kHigh)) == Approx(2 * 200));
  CHECK(us(law.with_bytes(0, large, 0.5, Bound::kLow)) == Approx(200 / 2));
  CHECK(us(law.with_bytes(0, large, 0.5, Bound::kHigh)) == Approx(20 + 90));
}

TEST_CASE("collectives of one size are in proportion, or unchanged at one bound") {
  const program::ProgramOp only = sum_of(kLarge, 200);
  const MessageLaw law(recorded({only, only}));
  CHECK(us(law.with_bytes(0, only, 2, Bound::kValue)) == Approx(400));
  CHECK(us(law.with_bytes(0, only, 2, Bound::kLow)) == Approx(200));
  CHECK(us(law.with_bytes(0, only, 2, Bound::kHigh)) == Approx(400));
}

}  // namespace
}  // namespace rehearse::cli
