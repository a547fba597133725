// Runs at one level as a single run, and the store that they are kept in.
#include <numeric>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "cli/check/run_store.h"
#include "profiler/compare/effect.h"
#include "profiler/compare/pool.h"
#include "tests/support/data.h"
#include "tests/support/database.h"

namespace rehearse::compare {
namespace {

OpSlot slot(const std::string& name, std::vector<double> times) {
  return {.kind = OpKind::kKernel,
          .name = name,
          .from = "aten::" + name,
          .layer = "",
          .shapes = "[[8, 8]]",
          .grid = "1x1x1 of 32x1x1",
          .place = 0.5,
          .calls = 2,
          .times = std::move(times)};
}

/// Steps of 4 and 6 about a level of 5, in units of `unit`.
Run run_of(double unit, std::size_t steps = 4) {
  std::vector<double> times;
  for (std::size_t s = 0; s < steps; ++s) times.push_back(unit * (s % 2 ? 6 : 4));
  return {.source = "run",
          .ranks = 1,
          .devices = {"GPU"},
          .steps_from = "step marks",
          .step_time = times,
          .compute = times,
          .memory = Bytes::b(100 * unit),
          .slots = {slot("gemm", times)}};
}

TEST_CASE("pooled runs are shifted to the mean of their levels, with their variation kept") {
  const Run one = run_of(1), two = run_of(2, 6);
  const std::vector<const Run*> runs = {&one, &two};
  const Pool pool = pool_runs(runs);
  CHECK(pool.runs == 2);
  CHECK(pool.run.steps() == 10);
  CHECK(level_of(pool.run.step_time) == Approx(7.5));
  CHECK(pool.run.step_time[0] == Approx(6.5));  // 4 of 5, moved to 7.5
  CHECK(pool.run.step_time[4] == Approx(5.5));  // 8 of 10
  CHECK(pool.run.compute == pool.run.step_time);
  CHECK(pool.run.energy.empty());
  CHECK(pool.run.memory == Bytes::b(200));  // of the newest
  REQUIRE(pool.run.slots.size() == 1);
  CHECK(pool.run.slots[0].times == pool.run.step_time);
  CHECK(pool_runs(std::vector<const Run*>{&one}).run.step_time == one.step_time);
}

TEST_CASE("runs are pooled back to the first on another machine or with other work") {
  const Run same = run_of(1);
  Run elsewhere = run_of(1), other = run_of(1), little = run_of(1);
  elsewhere.devices = {"Other GPU"};
  other.slots = {slot("convolution", other.step_time)};
  other.slots[0].from = "aten::conv2d";
  other.slots[0].grid = "7x1x1 of 64x1x1";
  other.slots[0].shapes = "";
  const auto pooled = [](std::vector<const Run*> runs) { return pool_runs(runs).runs; };
  CHECK(pooled({&same, &same, &same}) == 3);
  CHECK(pooled({&same, &elsewhere, &same}) == 1);
  CHECK(pooled({&same, &other, &same, &same}) == 2);
  // An op of little time that a run lacks does not stop it: the newest's steps stand for it.
  little.slots.push_back(slot("tiny", {0.04, 0.06, 0.04, 0.06}));
  little.slots[1].from = "aten::tiny";
  const Run* const with[] = {&same, &little};
  const Pool pool = pool_runs(with);
  CHECK(pool.runs == 2);
  REQUIRE(pool.run.slots.size() == 2);
  CHECK(pool.run.slots[1].times == std::vector<double>{.04, .06, .04, .06, .04, .06, .04, .06});
}

}  // namespace
}  // namespace rehearse::compare

namespace rehearse::cli {
namespace {

using compare::run_of;

TEST_CASE("a store returns its runs once each, oldest first") {
  const auto path = test::scratch_folder() / "a.history";
  CHECK_FALSE(is_run_store(path));
  compare::Run one = run_of(1), two = run_of(2);
  one.windows = {{{Nanoseconds(0), Nanoseconds(1)}}};
  two.energy = {1, 2, 3, 4};
  two.devices = {"A", "B 'x'"};
  two.slots.push_back(compare::slot("a\n\"b\"", two.step_time));
  for (const compare::Run& run : {one, two}) {
    const Result<bool> added = add_run(path, kept(run, "it", 0.03));
    REQUIRE(added);
    CHECK(*added);
  }
  CHECK(is_run_store(path));
  CHECK_FALSE(*add_run(path, kept(one, "again", 0.5)));
  const auto runs = read_runs(path);
  REQUIRE(runs);
  REQUIRE(runs->size() == 2);
  CHECK((*runs)[0].name == "it");
  CHECK((*runs)[0].level == Approx(5));
  CHECK((*runs)[0].allowed == 0.03);
  CHECK((*runs)[0].date.size() == 20);
  REQUIRE((*runs)[1].run);
  const compare::Run& read = *(*runs)[1].run;
  CHECK(read.devices == two.devices);
  CHECK(read.steps_from == two.steps_from);
  CHECK(read.step_time == two.step_time);
  CHECK(read.energy == two.energy);
  CHECK(read.copies.empty());
  CHECK(read.memory == two.memory);
  REQUIRE(read.slots.size() == 2);
  CHECK(read.slots[1].name == "a\n\"b\"");
  CHECK(read.slots[1].times == two.step_time);
  CHECK(read.slots[0].calls == 2);
}

TEST_CASE("a store does not grow without end") {
  const auto path = test::scratch_folder() / "a.history";
  for (std::size_t k = 0; k < kKeptWhole + 3; ++k)
    REQUIRE(add_run(path, kept(run_of(1 + 0.01 * static_cast<double>(k), 250), "r", 0.03)));
  auto runs = read_runs(path);
  REQUIRE(runs);
  REQUIRE(runs->size() == kKeptWhole + 3);
  for (std::size_t k = 0; k < runs->size(); ++k) CHECK((*runs)[k].run.has_value() == (k >= 3));
  CHECK(runs->back().run->steps() == kKeptSteps);
  CHECK(runs->back().run->slots[0].times.size() == kKeptSteps);
  // Levels of old runs, as many as are kept.
  test::Database(path).run(fmt::format(
      "PRAGMA user_version = 1;"  // without a digest
      "WITH RECURSIVE n(k) AS (SELECT 1000 UNION ALL SELECT k + 1 FROM n WHERE k < {}) "
      "INSERT INTO run SELECT k, 'old', 'then', 1, 0.03, k, 1, '', 'step marks', NULL, 0 FROM n",
      999 + kKeptLevels));
  REQUIRE(add_run(path, kept(run_of(2), "newest", 0.03)));
  runs = read_runs(path);
  REQUIRE(runs);
  CHECK(runs->size() == kKeptLevels);
  CHECK(runs->back().name == "newest");
  CHECK(runs->front().name == "old");
}

}  // namespace
}  // namespace rehearse::cli
