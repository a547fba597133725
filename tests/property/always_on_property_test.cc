// The always-on mode keeps what the formula of docs/concepts/always-on.md says. A failure prints
// the seed.
#include <algorithm>
#include <random>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "sim/base/file.h"
#include "tests/support/always_on.h"
#include "tests/support/data.h"

namespace rehearse {
namespace {

using capture::Trigger;
using Kind = Trigger::Kind;
using test::AlwaysOn;
using test::AlwaysOnResult;
using test::KeptInSimulation;

/// The share of a step that is kept, with a ring that holds `horizon` seconds.
double formula(double horizon, double step, double known) {
  return std::clamp((horizon - known) / step, 0.0, 1.0);
}

double drawn(std::mt19937_64& random, double least, double most) {
  return least + (most - least) * static_cast<double>(random() >> 11) * 0x1p-53;
}

struct Tally {
  std::size_t whole = 0, in_part = 0, gone = 0;
};

/// Every step that was asked for, against the formula.
void check_formula(const AlwaysOn& job, Tally& tally) {
  const AlwaysOnResult result = test::simulate(job);
  INFO("seed " << job.seed << ", ring " << job.ring << ", rate " << job.rate << ", block "
               << job.block << ", step " << job.step_s << " s, flush " << job.flush_s
               << " s, announce " << job.announce_s << " s");
  for (const KeptInSimulation& step : result.kept) {
    const double expected = formula(result.horizon_s, step.seconds, step.known_s);
    const double kept = static_cast<double>(step.kept) / static_cast<double>(step.added);
    // Bytes come in blocks: the one at the edge is lost whole, and at the end of the ring's memory
    // lies idle what is too short for the next; a block that ends with a step or a flush is
    // rounded by up to 40 bytes.
    const double bytes = step.seconds * job.rate;
    const double cuts = result.horizon_s * (1 / job.flush_s + 1 / job.step_s) + 2;
    const double rounded = 40 * cuts / bytes;
    const double blocks = result.longest_block / bytes;
    INFO("rank " << step.rank << ", step " << step.step << ": T " << step.seconds << " s, D "
                 << step.known_s << " s, H " << result.horizon_s << " s");
    CHECK(kept <= expected + rounded);
    CHECK(kept >= expected - 2 * blocks - rounded);
    (step.kept == step.added ? tally.whole : step.kept == 0 ? tally.gone : tally.in_part) += 1;
  }
}

TEST_CASE("the share of a step that is kept is that of the horizon") {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    AlwaysOn job{.ranks = 1 + static_cast<std::uint32_t>(random() % 3),
                 .steps = 100,
                 .step_s = drawn(random, 0.02, 3),
                 .slow_share = 0.1,
                 .slow_factor = drawn(random, 1.5, 5),
                 .block = 512u << (random() % 4),
                 .seed = seed};
    job.flush_s = drawn(random, 0.1, 1);
    job.announce_s = drawn(random, 0, 6);
    job.on_one_rank = 0.5;
    // A horizon around what decides: long enough to be kept whole, or far too short.
    const double horizon = drawn(random, 0.05, 2) * (job.announce_s + job.flush_s + 2 * job.step_s);
    job.ring = static_cast<std::uint64_t>(drawn(random, 200, 1500)) * job.block;
    job.rate = static_cast<double>(job.ring) / horizon;
    job.trigger = seed % 4 == 0   ? Trigger{Kind::kPercentile, 90000}
                  : seed % 4 == 1 ? Trigger{Kind::kTimesMedian, 1300}
                  : seed % 4 == 2
                      ? Trigger{Kind::kEvery, 7}
                      : Trigger{Kind::kLonger, static_cast<std::uint64_t>(job.step_s * 1.2 * 1e9)};
    check_formula(job, tally);
  }
  // The draws reach all three parts of the formula.
  CHECK(tally.whole > 50);
  CHECK(tally.in_part > 50);
  CHECK(tally.gone > 20);
}

TEST_CASE("always-on: the worked example of docs/concepts/always-on.md") {
  // 64 MiB at 5 MB/s: H = 13.42 s. T = 2 s, known after D = 12 s: (13.42 - 12) / 2 = 0.71.
  const double horizon = 64.0 * 1048576 / 5e6;
  CHECK(horizon == Approx(13.42).margin(0.005));
  CHECK(formula(horizon, 2, 12) == Approx(0.71).margin(0.005));
  CHECK(formula(horizon, 2, 1) == 1);
  CHECK(formula(horizon, 2, 14) == 0);
  // The same by the ring: steps of 2 s, announced 11.9 s after a flush that came at once.
  AlwaysOn job{.ranks = 2, .steps = 40, .step_s = 2, .block = 16384, .seed = 5};
  job.slow_share = 0.2;
  job.slow_factor = 1.5;
  job.on_one_rank = 1;
  job.flush_s = 0.05;
  job.announce_s = 11.95;
  job.trigger = {Kind::kLonger, 2500000000};
  const AlwaysOnResult result = test::simulate(job);
  std::size_t announced = 0;
  for (const KeptInSimulation& step : result.kept) {
    const double kept = static_cast<double>(step.kept) / static_cast<double>(step.added);
    if (step.announced) {
      ++announced;
      CHECK(step.known_s == Approx(12).margin(0.11));
      CHECK(kept == Approx(formula(horizon, step.seconds, step.known_s)).margin(0.005));
    } else {
      CHECK(kept == 1);
    }
  }
  CHECK(announced > 3);
}

TEST_CASE("a percentile of steps that are all alike names none of them") {
  AlwaysOn job{.ranks = 1, .steps = 2000, .step_s = 0.01, .rate = 1e5, .ring = 1 << 20};
  job.trigger = {Kind::kTimesMedian, 1500};
  const AlwaysOnResult result = test::simulate(job);
  CHECK(result.kept.empty());
  CHECK(result.bytes_written == 0);
}

AlwaysOn compared(double slow_share, Trigger trigger) {
  AlwaysOn job{.ranks = 4, .steps = 20000, .step_s = 0.1, .rate = 1e5, .ring = 1 << 20};
  job.slow_share = slow_share;
  job.slow_factor = 1.6;
  job.announce_s = 1;
  job.on_one_rank = 0.5;
  job.trigger = trigger;
  return job;
}

/// The rows of the table on the page, as they come out.
std::string table() {
  struct Way {
    const char* text;
    Trigger trigger;
  };
  std::string rows;
  for (const Way& way :
       {Way{"`step_time > p99`", {Kind::kPercentile, 99000}},
        Way{"`step_time > 1.5x median`", {Kind::kTimesMedian, 1500}},
        Way{"`every 100` (1 %)", {Kind::kEvery, 100}}, Way{"`every 20` (5 %)", {Kind::kEvery, 20}},
        Way{"`every 10` (10 %)", {Kind::kEvery, 10}}}) {
    const AlwaysOnResult result = test::simulate(compared(0.005, way.trigger));
    rows += fmt::format(
        "| {} | {:.1f} % | {:.1f} % |\n", way.text,
        100.0 * static_cast<double>(result.slow_whole) / static_cast<double>(result.slow_steps),
        100.0 * static_cast<double>(result.bytes_written) / static_cast<double>(result.bytes));
  }
  return rows;
}

TEST_CASE("retroactive against head sampling: the table of docs/concepts/always-on.md") {
  const std::string rows = table();
  INFO(rows);
  const auto page = read_file(test::source_file("docs/concepts/always-on.md"));
  REQUIRE(page);
  CHECK(page->find(rows) != std::string::npos);
  // A percentile below the share of slow steps keeps but the slowest of them.
  AlwaysOn job = compared(0.02, {Kind::kPercentile, 99000});
  job.on_one_rank = 0;
  const AlwaysOnResult many = test::simulate(job);
  CHECK(static_cast<double>(many.slow_whole) / static_cast<double>(many.slow_steps) ==
        Approx(0.5).margin(0.1));
}

}  // namespace
}  // namespace rehearse
