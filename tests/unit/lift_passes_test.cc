// Which microbatch and which chunk of an interleaved pipeline stage each unit belongs to.
#include <catch2/catch.hpp>

#include "models/workload/lift_ops.h"
#include "models/workload/lift_steps.h"

namespace rehearse::workload::lifting {
namespace {

/// Units of 1 ns each, named by chunk: 'h' and 't' have no backward unit, 'a' and 'b' have one.
class Step {
 public:
  void forward(std::string_view names) {
    for (std::size_t i = 0; i < names.size(); ++i) add(names.substr(i, 1), Phase::kForward);
  }
  /// Undoes the forward units with these numbers.
  void backward(std::initializer_list<std::size_t> undone) {
    for (const std::size_t f : undone) {
      add(units[f].name, Phase::kBackward);
      units.back().forward = f;
    }
  }
  std::vector<Unit> units;

 private:
  void add(std::string_view name, Phase phase) {
    const auto at = static_cast<std::int64_t>(units.size());
    units.push_back({.op = static_cast<HostIndex>(at),
                     .name = name,
                     .phase = phase,
                     .start = Nanoseconds{at},
                     .time = Nanoseconds{1}});
  }
};

std::string names_of(const std::vector<Unit>& units, std::uint32_t chunk) {
  std::string names;
  for (const Unit& unit : units)
    if (unit.phase == Phase::kForward && unit.chunk == chunk) names += unit.name;
  return names;
}

TEST_CASE("an interleaved stage has as many chunks as its first backward pass is rounds away") {
  // Two microbatches through the chunk h a a t, then through the chunk b b: forward passes begin at
  // units 0, 4, 8 and 10. Backward goes through b of both, then through a of both. The first
  // backward pass undoes the third forward one: 2 / 2 microbatches of a round + 1 = 2 chunks.
  Step step;
  step.forward("haathaatbbbb");
  step.backward({9, 8, 11, 10, 2, 1, 6, 5});
  const Passes passes = fold_passes(step.units);
  CHECK(passes.microbatches == 2);
  CHECK(passes.chunks == 2);
  CHECK(names_of(step.units, 0) == "haat");
  CHECK(names_of(step.units, 1) == "bb");
  CHECK(passes.later ==
        std::vector{Nanoseconds{14}, Nanoseconds{15}, Nanoseconds{18}, Nanoseconds{19}});
  // Units of the first microbatch have the time of both, and undo units of it.
  REQUIRE(step.units.size() == 10);
  for (const Unit& unit : step.units) CHECK(unit.time == Nanoseconds{2});
  CHECK(step.units[6].forward == 5U);  // the last b
  CHECK(step.units[8].forward == 2U);  // the last a
}

TEST_CASE("backward passes of one chunk that run in another order are not told apart") {
  Step step;
  step.forward("aabbaabb");
  step.backward({7, 6, 3, 2, 1, 0, 5, 4});  // b of the second, b of the first, a of both
  const Passes passes = fold_passes(step.units);
  CHECK(passes.microbatches == 1);
  CHECK(passes.chunks == 1);
  CHECK(step.units.size() == 16);
}

TEST_CASE("a stage that runs forward passes ahead has one chunk") {
  Step step;
  step.forward("aaaa");  // two microbatches of a a
  step.backward({1, 0});
  step.forward("aa");
  step.backward({3, 2, 7, 6});
  const Passes passes = fold_passes(step.units);
  CHECK(passes.microbatches == 3);
  CHECK(passes.chunks == 1);
  CHECK(step.units.size() == 4);
}

TEST_CASE("samples are those of the texts that are looked up, where attention runs tokens first") {
  const auto tensor = [](std::vector<double> extents) {
    return Operand{std::move(extents), 4, Dtype::kFp32};
  };
  std::vector<Unit> units;
  const auto add = [&](std::string_view name, std::vector<Operand> operands) {
    units.push_back({.op = 0, .name = name, .phase = Phase::kForward, .start = Nanoseconds{0}});
    units.back().operands = std::move(operands);
  };
  for (int block = 0; block < 4; ++block) {
    add("aten::linear", {tensor({64, 8, 128}), tensor({384, 128})});
    add("aten::linear", {tensor({64, 8, 128}), tensor({128, 128})});
    add("aten::layer_norm", {tensor({8, 64, 128})});
  }
  CHECK(find_samples(units) == 64);
  Operand text{{8, 64}, 8};
  add("aten::embedding", {tensor({1000, 128}), text});
  CHECK(find_samples(units) == 8);
  CHECK(find_tokens(units, 8) == 64);
  // Positions of one text for all samples tell nothing.
  units.back().operands[1].extents = {1, 64};
  CHECK(find_samples(units) == 64);
}

}  // namespace
}  // namespace rehearse::workload::lifting
