#include <set>

#include <catch2/catch.hpp>

#include "models/job/lower_parts.h"
#include "sim/program/rank_builder.h"
#include "tests/support/random.h"

namespace rehearse::job {
namespace {

using program::ProgramOp, program::RankProgram, program::Task;

/// A rank with these tasks, and for each op the earlier ops that it waits for.
RankProgram rank(const std::vector<std::pair<Task, std::vector<std::uint32_t>>>& ops) {
  RankProgram program;
  for (const auto& [task, after] : ops)
    program::append(program, ProgramOp{.name = NameId(0), .task = task}, after);
  return program;
}

constexpr Task kOp = Task::kCompute, kAll = Task::kCollective, kHost = Task::kHost;

TEST_CASE("a collective between two products overlaps neither") {
  CHECK(may_overlap(rank({{kOp, {}}, {kAll, {0}}, {kOp, {1}}})) == std::vector<char>{0, 0, 0});
}

TEST_CASE("a product that waits for what a collective waits for overlaps it") {
  // 0 → 1 (collective) → 3, and 0 → 2 → 3.
  CHECK(may_overlap(rank({{kOp, {}}, {kAll, {0}}, {kOp, {0}}, {kOp, {1, 2}}})) ==
        std::vector<char>{0, 1, 1, 0});
}

TEST_CASE("ops without a dependency overlap, and a dependency may lead through other ops") {
  CHECK(may_overlap(rank({{kOp, {}}, {kAll, {}}})) == std::vector<char>{1, 1});
  CHECK(may_overlap(rank({{kOp, {}}, {kHost, {0}}, {kAll, {1}}})) == std::vector<char>{0, 0, 0});
}

TEST_CASE("an op that waits for some of its dependencies may start before the others end") {
  RankProgram some = rank({{kOp, {}}, {kOp, {}}, {kAll, {0, 1}}});
  // The second does not follow the first, which is as much as is seen.
  CHECK(may_overlap(some) == std::vector<char>{0, 1, 1});
  some.ops[2].need = 1;
  CHECK(may_overlap(some) == std::vector<char>{1, 1, 1});
}

TEST_CASE(
    "ops that are not said to overlap are connected by dependencies with all that they could") {
  std::size_t apart = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    test::Random random(seed);
    RankProgram program;
    std::vector<std::set<std::uint32_t>> precede;  // by op: all ops that end before it
    for (std::uint32_t i = 0; i < 12; ++i) {
      std::vector<std::uint32_t> after;
      if (i > 0 && random() % 4 > 0) after.push_back(i - 1);
      if (i > 0 && random() % 2 > 0) after.push_back(static_cast<std::uint32_t>(random() % i));
      std::set<std::uint32_t>& all = precede.emplace_back();
      for (const std::uint32_t op : after) {
        all.insert(op);
        all.insert(precede[op].begin(), precede[op].end());
      }
      program::append(program, ProgramOp{.name = NameId(0), .task = random() % 3 > 0 ? kOp : kAll},
                      after);
    }
    const std::vector<char> overlaps = may_overlap(program);
    for (std::uint32_t i = 0; i < 12; ++i)
      for (std::uint32_t j = 0; j < i; ++j) {
        if (program.ops[i].task == program.ops[j].task || (overlaps[i] && overlaps[j])) continue;
        CHECK(precede[i].contains(j));
        ++apart;
      }
  }
  CHECK(apart > 1000);
}

}  // namespace
}  // namespace rehearse::job
